package store

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// keepTwo stores a run with two levels of 100 requests of two turns and three probes, and returns its
// directory.
func keepTwo(t *testing.T) string {
	t.Helper()
	w := must.Get(Create(t.TempDir(), Manifest{Started: time.Unix(0, 0), Plan: []byte(`{}`)}, bytes.Clone))(t)
	for index := range 2 {
		l := Level{Setting: outcome.Setting{Index: index}, Config: metric.Config{Client: &metric.Client{}}}
		must.Do(t, w.Level(l))
		for i := range 203 {
			r := &tacho.Record{Stage: index, Session: uint64(i / 2), Turn: i % 2, Timeline: tacho.NewTimeline(0)}
			if i >= 200 {
				r.Session, r.Turn, r.Probe = 0, 0, true
			}
			must.Do(t, w.Add(r))
		}
		must.Do(t, w.End(l))
	}
	if err := w.Summary(1); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	return w.Dir()
}

// Missing, duplicated or cut records are noticed in their level, and Resume removes only that level.
func TestMismatch(t *testing.T) {
	for name, c := range map[string]struct {
		change func(lines []string) []string
		want   string
	}{
		"untouched":       {func(lines []string) []string { return lines }, ""},
		"another order":   {func(lines []string) []string { slices.Reverse(lines); return lines }, ""},
		"half removed":    {func(lines []string) []string { return slices.Delete(lines, 203, 303) }, "records.jsonl has the records of 103 of 203 requests of this level"},
		"all removed":     {func(lines []string) []string { return lines[:203] }, "records.jsonl has the records of 0 of 203 requests of this level"},
		"doubled":         {func(lines []string) []string { return append(lines, lines[203:]...) }, "records.jsonl has the records of 203 of 203 requests of this level, and 203 duplicates"},
		"one for another": {func(lines []string) []string { lines[204] = lines[203]; return lines }, "records.jsonl has the records of 202 of 203 requests of this level, and 1 duplicates"},
		"cut":             {func(lines []string) []string { lines[405] = lines[405][:20]; return lines }, "records.jsonl has the records of 202 of 203 requests of this level"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := keepTwo(t)
			path := filepath.Join(dir, RecordsFile)
			b := must.Get(os.ReadFile(path))(t)
			after := strings.Join(c.change(slices.Collect(strings.Lines(string(b)))), "")
			must.Do(t, os.WriteFile(path, []byte(after), 0o600))
			run := must.Get(Open(dir))(t)
			if got, want := run.SizeChanged(), len(after) != len(b); got != want {
				t.Errorf("touched: %v, want %v", got, want)
			}
			mismatched, err := run.Mismatched()
			if err != nil || mismatched[0] || mismatched[1] != (c.want != "") {
				t.Errorf("%v, %v", mismatched, err)
			}
			if m := run.Mismatch(&run.Levels[1]); m != nil && m.String() != c.want {
				t.Errorf("%q, want %q", m, c.want)
			}
			w, err := Resume(dir, time.Unix(1, 0), bytes.Clone)
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), "is complete") {
					t.Errorf("a whole run: %v", err)
				}
				return
			}
			if err != nil || w.Close() != nil {
				t.Fatal(err)
			}
			if run, err = Open(dir); err != nil || run.Complete || len(run.Levels) != 1 || run.Levels[0].Index != 0 {
				t.Errorf("went on with %+v, %v", run.Levels, err)
			}
		})
	}
}

// A disk that stays full leaves a level without some of its records, although the last line in the file
// is complete.
func TestMismatchAfterFullDisk(t *testing.T) {
	w, _, _ := onDisk(t, 500)
	for n := range 20 {
		must.Do(t, w.Add(record(n)))
	}
	must.Do(t, w.End(Level{}))
	_ = w.Close() // reports the full disk
	run := must.Get(Open(w.Dir()))(t)
	must.Get(run.Mismatched())(t)
	if m := run.Mismatch(&run.Levels[0]); m == nil || m.Had != 20 || m.Found == 0 || m.Found >= 20 {
		t.Errorf("%+v", m)
	}
}
