package store_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/store"
)

var began = time.Date(2026, 3, 1, 12, 30, 5, 0, time.UTC)

func records() []*tacho.Record {
	ok := &tacho.Record{
		Session: 7, ID: "bench-7", Input: 80, Asked: 3, Timeline: tacho.NewTimeline(time.Second), Output: 4,
		OutputFrom: tacho.FromUsage, Usage: &tacho.Usage{Prompt: 81, Completion: 4}, Finish: "length",
		Labels: tacho.Labels{{Key: "z", Value: "chat\n\""}, {Key: "a", Value: ""}}, Agent: "two", Probe: true,
	}
	ok.Clock, ok.Sent, ok.End = tacho.KernelClock, time.Second+12345, 3*time.Second
	ok.Events = tacho.Events{
		{At: 2 * time.Second, ReadLag: 900, Tokens: 1, Kind: tacho.Reasoning, Slack: 77},
		{At: 2 * time.Second, Tokens: 2},
		{At: 2*time.Second + 50*time.Millisecond, Tokens: 1, Kind: tacho.ToolCall},
	}
	bad := &tacho.Record{Session: 8, Timeline: tacho.NewTimeline(0), Failure: &tacho.Failure{Cause: tacho.Status, Status: 429, Message: "busy \x00\n\"<b>"}}
	bad.Events = tacho.Events{}
	return []*tacho.Record{ok, bad}
}

func create(t *testing.T) *store.Writer {
	t.Helper()
	return must.Get(store.Create(t.TempDir(), store.Manifest{Tool: "tacho", Started: began, Label: "a b/../c", Plan: json.RawMessage(`{"x":1}`)}, bytes.Clone))(t)
}

func read(t *testing.T, dir string) (*store.Run, []*tacho.Record) {
	t.Helper()
	r := must.Get(store.Open(dir))(t)
	var got []*tacho.Record
	for rec, err := range r.Records() {
		must.Do(t, err)
		got = append(got, rec)
	}
	return r, got
}

func TestRoundTrip(t *testing.T) {
	w := create(t)
	if got, want := filepath.Base(w.Dir()), "20260301-123005-a-b-..-c"; got != want {
		t.Errorf("directory %q, want %q", got, want)
	}
	stage := store.Level{
		Setting: outcome.Setting{Index: 0, Name: "num-prompts=2", Prompts: 2, Rate: 1.5, Concurrency: 4, Epoch: began, Monotonic: 12.5},
		Config:  metric.Config{MaxConcurrency: 2, Burstiness: 1},
	}
	early := stage
	early.Config = metric.Config{MaxConcurrency: 1}
	for _, s := range []store.Level{early, stage} {
		must.Do(t, w.Level(s))
	}
	want := records()
	for _, r := range want {
		must.Do(t, w.Add(r))
	}
	// Nothing is closed or flushed, as after a killed process.
	run, got := read(t, w.Dir())
	if run.Complete {
		t.Error("a run without a summary is not whole")
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]store.Level{stage}, run.Levels); d != "" {
		t.Error(d)
	}
	must.Do(t, w.Summary(map[string]int{"ok": 1}))
	if run, _ := read(t, w.Dir()); !run.Complete {
		t.Error("a run with a summary is whole")
	}
	must.Do(t, w.Close())
}

// A record that was being written when the process died is skipped, and earlier records are read.
func TestCutLastLine(t *testing.T) {
	w := create(t)
	must.Do(t, w.Level(store.Level{Config: metric.Config{}}))
	for _, r := range records() {
		must.Do(t, w.Add(r))
	}
	path := filepath.Join(w.Dir(), store.RecordsFile)
	b := must.Get(os.ReadFile(path))(t)
	for cut := 1; cut < 60; cut += 7 {
		must.Do(t, os.WriteFile(path, b[:len(b)-cut], 0o644))
		if _, got := read(t, w.Dir()); len(got) != 1 {
			t.Errorf("%d bytes cut off: %d records, want 1", cut, len(got))
		}
	}
}

// A damaged line affects only itself: all other lines are read, and the damage is counted and named.
func TestDamageCostsALine(t *testing.T) {
	w := create(t)
	must.Do(t, w.Level(store.Level{}))
	path := filepath.Join(w.Dir(), store.RecordsFile)
	lines := []string{`{"session":1}`, `{"stage":"x"}`, `{"session":2,"id":"{"session":3}`, `{"session":4}`, `{"stage":9}`, "\x00\x00", `{"session":5}`}
	must.Do(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
	run, got := read(t, w.Dir())
	var sessions []uint64
	for _, r := range got {
		sessions = append(sessions, r.Session)
	}
	if d := cmp.Diff([]uint64{1, 4, 5}, sessions); d != "" {
		t.Error(d)
	}
	if d := run.Damaged(); d.Lines != 4 || d.First == nil || !strings.Contains(d.First.Error(), "records.jsonl:2:") {
		t.Errorf("%+v", d)
	}
}

// A manifest without a format number is rejected, and not read as a run without records.
func TestNoFormat(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, store.ManifestFile), []byte(`{"tool":"tacho","version":"0","plan":{}}`), 0o600))
	if _, err := store.Open(dir); err == nil || !strings.Contains(err.Error(), "has no format number") {
		t.Errorf("error %v", err)
	}
}

func TestNamesDoNotCollide(t *testing.T) {
	root := t.TempDir()
	a, err1 := store.Create(root, store.Manifest{Started: began}, bytes.Clone)
	b, err2 := store.Create(root, store.Manifest{Started: began}, bytes.Clone)
	if err1 != nil || err2 != nil || a.Dir() == b.Dir() {
		t.Errorf("%v %v %v %v", a.Dir(), b.Dir(), err1, err2)
	}
}

func TestNotARun(t *testing.T) {
	if _, err := store.Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a run") {
		t.Errorf("error %v", err)
	}
}

// Only the owner can read a run.
func TestNobodyElseReadsIt(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("rights are told another way")
	}
	w := create(t)
	must.Do(t, errors.Join(w.Level(store.Level{Config: metric.Config{}}), w.Add(records()[0]), w.Summary(1), w.Close()))
	must.Do(t, filepath.WalkDir(w.Dir(), func(path string, _ fs.DirEntry, err error) error {
		info, statErr := os.Stat(path)
		if err := errors.Join(err, statErr); err != nil {
			return err
		}
		if rights := info.Mode().Perm(); rights&0o077 != 0 {
			t.Errorf("%s has the rights %v", path, rights)
		}
		return nil
	}))
}
