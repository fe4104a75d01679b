package metric_test

import (
	"encoding/json"
	"flag"
	"iter"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

var writeDialects = flag.Bool("dialects", false, "write testdata/dialects with the tools themselves")

// spokenRecords returns requests for which the dialects differ: connections take time, events have
// several tokens, answers have very different lengths, and one answer has a single token.
func spokenRecords() []*tacho.Record {
	rng := rand.New(rand.NewPCG(5, 6))
	var out []*tacho.Record
	for i := range 60 {
		r := &tacho.Record{Session: uint64(i), Input: 50 + rng.IntN(100), Timeline: tacho.NewTimeline(time.Duration(i) * 40 * time.Millisecond)}
		r.Slot, r.Start = r.Due, r.Due
		r.Sent = r.Start + time.Duration(rng.IntN(5e6))
		at := r.Sent + time.Duration(50e6+rng.IntN(1e8))
		for range 1 + rng.IntN(1+i%30) {
			n := 1 + rng.IntN(3)
			r.Events = append(r.Events, tacho.Event{At: at, Tokens: int16(n)})
			r.Output += n
			at += time.Duration(5e6 + rng.IntN(4e7))
		}
		r.OutputFrom, r.End = tacho.FromUsage, r.Last()+time.Duration(rng.IntN(1e6))
		out = append(out, r)
	}
	return out
}

func each(records []*tacho.Record) iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

// TestDialects compares each dialect with the tool's own code for the same requests, in
// testdata/dialects, written by `make dialects`.
func TestDialects(t *testing.T) {
	records := spokenRecords()
	for i := range metric.Dialects {
		d := &metric.Dialects[i]
		if d.Name == "tacho" {
			continue
		}
		path := filepath.Join("testdata", "dialects", d.Name+".json")
		if *writeDialects {
			ask(t, d.Name, path, records)
		}
		b := must.Get(os.ReadFile(path))(t)
		var want struct {
			Metrics map[string]map[string]float64 `json:"metrics"`
			Totals  map[string]float64            `json:"totals"`
		}
		must.Do(t, json.Unmarshal(b, &want))
		got := must.Get(d.Summarize(each(records), []float64{90, 99}))(t)
		if len(want.Metrics) != len(got.Dists) {
			t.Errorf("%s: %d metrics, its tool has %d", d.Name, len(got.Dists), len(want.Metrics))
		}
		for _, dist := range got.Dists {
			for statistic, value := range want.Metrics[dist.Name] {
				if v := statisticOf(dist.Stats, statistic); math.Abs(v-value) > 1e-6*math.Abs(value) {
					t.Errorf("%s: %s of %s is %v, its tool says %v", d.Name, statistic, dist.Name, v, value)
				}
			}
		}
		for k, name := range got.Names {
			if value, told := want.Totals[name]; told && math.Abs(got.Totals[k]-value) > 1e-6*value {
				t.Errorf("%s: %s is %v, its tool says %v", d.Name, name, got.Totals[k], value)
			}
		}
	}
}

func statisticOf(s *metric.Stats, name string) float64 {
	switch name {
	case "mean":
		return s.Mean
	case "median":
		return s.Median
	case "std":
		return s.Std
	case "p90":
		return s.Percentile(90)
	}
	return s.Percentile(99)
}

// ask summarizes the requests with the tool itself.
func ask(t *testing.T, tool, path string, records []*tacho.Record) {
	t.Helper()
	type request struct {
		Start  int64      `json:"start"`
		Events [][2]int64 `json:"events"`
		End    int64      `json:"end"`
		Input  int        `json:"input"`
		Output int        `json:"output"`
	}
	var list []request
	for _, r := range records {
		q := request{Start: int64(r.Start), End: int64(r.End), Input: r.Input, Output: r.Output}
		for _, e := range r.Events {
			q.Events = append(q.Events, [2]int64{int64(e.At), int64(e.Tokens)})
		}
		list = append(list, q)
	}
	b := must.Get(json.Marshal(list))(t)
	python := must.Get(filepath.Abs(filepath.Join("..", ".cache", "peers", tool, "bin", "python")))(t)
	if tool == "vllm" {
		python = os.Getenv("VLLM")
	}
	cmd := exec.Command(python, "testdata/dialects.py", tool)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(b)), os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must.Do(t, os.WriteFile(path, append(out, '\n'), 0o644))
}
