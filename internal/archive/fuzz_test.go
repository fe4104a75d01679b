package archive_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/bounded"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/store"
)

// Limits of what a file of n bytes may allocate. Rendering has a fixed part, such as an image and the scripts of a page.
const (
	maxInput     = 1 << 16
	fixedBytes   = 192 << 20
	bytesPerByte = 4 << 10
)

// FuzzResult reads files as results of other tools, and renders them. Each must be read, or refused with the name of the
// file, in bounded time and memory.
func FuzzResult(f *testing.F) {
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		f.Add(filepath.Base(path), short(b), byte(len(path)))
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add("report.txt", []byte("============ Serving Benchmark Result ============\nSuccessful requests: 3\nMean TTFT (ms): 1e309\n==================================================\n"), byte(0))
	for _, number := range []string{"1e308", "-1e308", "1e-320", "9223372036854775808", "-1"} {
		f.Add("r.json", []byte(`{"model_id":"m","request_throughput":`+number+`,"duration":`+number+`,"completed":`+number+
			`,"mean_ttft_ms":`+number+`,"p1e2_ttft_ms":`+number+`,"ttfts":[`+number+`,1],"itls":[[`+number+`],[]],"input_lens":[`+number+`,1],"output_lens":[`+number+`,2],"start_times":[`+number+`,0]}`), byte(0))
	}
	f.Fuzz(func(t *testing.T, name string, b []byte, format byte) {
		if len(b) > maxInput {
			return
		}
		name = filepath.Base(name)
		path := filepath.Join(t.TempDir(), "r"+name)
		if strings.Contains(name, "\x00") || os.WriteFile(path, b, 0o600) != nil {
			return // not a name of a file
		}
		bounded.Run(t, fixedBytes+bytesPerByte*uint64(len(b)), func() { use(t, path, format) })
	})
}

// FuzzRunDirectory reads a run directory that a stranger sent, and renders it.
func FuzzRunDirectory(f *testing.F) {
	names := []string{store.ManifestFile, store.StagesFile, store.RecordsFile, store.InstrumentsFile, store.LimitFile, store.SummaryFile}
	dir := keptRun(f)
	var files [][]byte
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			b = nil // a search alone has a limit
		}
		files = append(files, b)
	}
	add := func(manifest, stages, records, instruments, limit, summary []byte) {
		f.Add(manifest, stages, records, instruments, limit, summary, byte(3))
	}
	add(files[0], files[1], files[2], files[3], files[4], files[5])
	for _, huge := range []string{"9223372036854775807", "-9223372036854775808", "1"} {
		records := bytes.ReplaceAll(files[2], []byte(`"end_ns":3000000000`), []byte(`"end_ns":`+huge))
		add(files[0], files[1], records, []byte(`{"stage":0,"at":`+huge+`}`), []byte(`{"sentence":"x","probe":`+huge+`}`), files[5])
		add(files[0], bytes.ReplaceAll(files[1], []byte(`"index":0`), []byte(`"index":`+huge)), records, nil, nil, nil)
	}
	f.Fuzz(func(t *testing.T, manifest, stages, records, instruments, limit, summary []byte, format byte) {
		dir, size := t.TempDir(), 0
		for i, b := range [][]byte{manifest, stages, records, instruments, limit, summary} {
			if size += len(b); len(b) == 0 && i > 1 {
				continue
			}
			must.Do(t, os.WriteFile(filepath.Join(dir, names[i]), b, 0o600))
		}
		if size > maxInput {
			return
		}
		bounded.Run(t, fixedBytes+bytesPerByte*uint64(size), func() {
			use(t, dir, format)
			if run, err := archive.Summary(dir); err == nil {
				render(&report.Report{Runs: []outcome.Run{*run}}, format)
			}
		})
	})
}

// keptRun returns the directory of a short run.
func keptRun(f *testing.F) string {
	began := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	w, err := store.Create(f.TempDir(), store.Manifest{Tool: "tacho", Started: began, Plan: json.RawMessage(`{"label":"x"}`)}, bytes.Clone)
	if err != nil {
		f.Fatal(err)
	}
	level := store.Level{Setting: outcome.Setting{Name: "num-prompts=2", Prompts: 2, Rate: 1.5, Concurrency: 4, Epoch: began}, Config: metric.DefaultConfig()}
	level.Config.Client = &metric.Client{}
	r := &tacho.Record{ID: "a-1", Input: 80, Timeline: tacho.NewTimeline(time.Second), Output: 2, OutputFrom: tacho.FromUsage, Finish: "length"}
	r.Sent, r.End, r.Clock = time.Second, 3*time.Second, tacho.KernelClock
	r.Events = tacho.Events{{At: 2 * time.Second, Tokens: 1}, {At: 2100 * time.Millisecond, Tokens: 1}}
	failed := &tacho.Record{Session: 1, Timeline: tacho.NewTimeline(0), Failure: &tacho.Failure{Cause: tacho.Status, Status: 429, Message: "busy"}}
	for _, err := range []error{w.Level(level), w.Add(r), w.Add(failed), w.End(level)} {
		if err != nil {
			f.Fatal(err)
		}
	}
	run, err := archive.Open(w.Dir(), nil)
	if err != nil {
		f.Fatal(err)
	}
	if err := w.Summary(report.Report{Runs: []outcome.Run{*run}}); err != nil {
		f.Fatal(err)
	}
	return w.Dir()
}

// use reads the runs in path and renders them. An error must name the path.
func use(t *testing.T, path string, format byte) {
	runs, err := archive.All(path, nil)
	if err != nil {
		if !strings.Contains(err.Error(), path) {
			t.Errorf("the error does not name the file: %v", err)
		}
		return
	}
	render(&report.Report{Runs: runs}, format)
}

// render renders a report in one format. It may be refused, for example a format of one run.
func render(r *report.Report, format byte) {
	_ = report.Formats[int(format)%len(report.Formats)].Render(io.Discard, r)
}

// short cuts the lists of a JSON text to two items, because small seeds are mutated faster.
func short(b []byte) []byte {
	var one any
	if json.Unmarshal(b, &one) != nil {
		return b[:min(len(b), 12<<10)]
	}
	out, err := json.Marshal(shortLists(one))
	if err != nil {
		panic(err) // it was JSON before
	}
	return out
}

func shortLists(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, item := range v {
			v[name] = shortLists(item)
		}
	case []any:
		v = v[:min(len(v), 2)]
		for i := range v {
			v[i] = shortLists(v[i])
		}
		return v
	}
	return v
}
