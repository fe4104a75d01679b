package store_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/store"
)

// A run that a stranger sent has limits. Each error names the file and the limit.
func TestRunIsBounded(t *testing.T) {
	manyLevels := func(n int) []byte {
		var b bytes.Buffer
		for i := range n {
			fmt.Fprintf(&b, "{\"index\":%d}\n", i)
		}
		return b.Bytes()
	}
	for _, c := range []struct {
		name, file string
		text       []byte
		want       string
	}{
		{"levels", store.StagesFile, manyLevels(10_001), "more than 10000 levels"},
		{"long record", store.RecordsFile, bytes.Repeat([]byte("x"), 129<<20), "longer than 128 MiB"},
		{"samples", store.InstrumentsFile, bytes.Repeat([]byte("{}\n"), 1<<20+1), "more than 1048576 samples"},
		{"manifest", store.ManifestFile, append([]byte(`{"schema":1,"label":"`), bytes.Repeat([]byte("x"), 16<<20)...), "larger than 16 MiB"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := create(t).Dir()
			path := filepath.Join(dir, c.file)
			must.Do(t, os.WriteFile(path, c.text, 0o600))
			bounded.Run(t, 1<<30, func() {
				if err := readAll(dir); err == nil || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%v, want %s and %q", err, path, c.want)
				}
			})
		})
	}
}

// Lines beyond a limit are damage, and the others are read.
func TestLinesAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ line, want string }{
		"events":     {`{"stage":0,"events":{"at_ns":[` + strings.Repeat("1,", 1<<20) + `1]}}`, "more than 1048576"},
		"numbers":    {`{"stage":0,"events":{"at_ns":[],"x":[` + strings.Repeat("1,", 6<<20) + `1]}}`, "more than 6291456 numbers"},
		"far time":   {`{"stage":0,"end_ns":2000000000000000000}`, "a time is more than 36 years"},
		"far events": {`{"stage":0,"events":{"at_ns":[999999999999999999,999999999999999999]}}`, "a time is more than 36 years"},
	} {
		t.Run(name, func(t *testing.T) {
			w := create(t)
			must.Do(t, w.Level(store.Level{Config: metric.Config{}}))
			must.Do(t, os.WriteFile(filepath.Join(w.Dir(), store.RecordsFile), []byte(c.line+"\n{\"stage\":0}\n"), 0o600))
			bounded.Run(t, 512<<20, func() {
				run, got := read(t, w.Dir())
				if d := run.Damaged(); len(got) != 1 || d.Lines != 1 || !strings.Contains(d.First.Error(), store.RecordsFile+":1: ") || !strings.Contains(d.First.Error(), c.want) {
					t.Errorf("%d records, %+v, want %q", len(got), d, c.want)
				}
			})
		})
	}
}

// readAll reads every file of a run.
func readAll(dir string) error {
	r, err := store.Open(dir)
	if err != nil {
		return err
	}
	for _, err := range r.Records() {
		if err != nil {
			return err
		}
	}
	_, err = r.Samples()
	return err
}
