package store_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/store"
)

// Resume drops the data of incomplete levels: cut lines, levels without an end, and interrupted levels.
func TestResume(t *testing.T) {
	w := create(t)
	level := func(index int, c metric.Config) {
		must.Do(t, w.Level(store.Level{Setting: outcome.Setting{Index: index}, Config: c}))
		for range 3 {
			must.Do(t, w.Add(&tacho.Record{Stage: index, Timeline: tacho.NewTimeline(0)}))
		}
		must.Do(t, w.Samples(index, []instrument.Sample{{Target: "x"}}))
	}
	level(2, metric.Config{})
	level(2, metric.Config{Client: &metric.Client{}})
	level(0, metric.Config{Client: &metric.Client{}, Interrupted: true})
	level(1, metric.Config{})
	must.Do(t, w.Close())
	f := must.Get(os.OpenFile(filepath.Join(w.Dir(), store.RecordsFile), os.O_APPEND|os.O_WRONLY, 0))(t)
	if _, err := f.WriteString(`{"stage":2,"sess`); err != nil || f.Close() != nil {
		t.Fatal(err)
	}
	w = must.Get(store.Resume(w.Dir(), began, bytes.Clone))(t)
	if _, err := store.Resume(w.Dir(), began, bytes.Clone); err == nil || !strings.Contains(err.Error(), "another process writes to") {
		t.Errorf("it was taken from whoever is at it: %v", err)
	}
	level(1, metric.Config{Client: &metric.Client{}})
	if err := w.Summary(1); err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	run, records := read(t, w.Dir())
	samples, err := run.Samples()
	if err != nil || len(run.Levels) != 2 || run.Levels[0].Index != 2 || run.Levels[1].Index != 1 || len(records) != 9 || len(samples[2]) != 2 || len(samples[0]) != 0 || len(samples[1]) != 1 {
		t.Errorf("%d levels, %d records, readings %v, %v", len(run.Levels), len(records), samples, err)
	}
	if d := run.Damaged(); d.Lines > 0 || len(run.Manifest.Resumed) != 1 || !run.Complete || string(run.Manifest.Plan) == "" {
		t.Errorf("damage %+v, manifest %+v", d, run.Manifest)
	}
	if _, err := store.Resume(w.Dir(), began, bytes.Clone); err == nil || !strings.Contains(err.Error(), "is complete") {
		t.Errorf("a whole run: %v", err)
	}
	names, err := os.ReadDir(w.Dir())
	if err != nil || len(names) != 5 {
		t.Errorf("files %v, %v", names, err)
	}
}
