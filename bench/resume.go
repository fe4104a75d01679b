package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"tacho/archive"
	"tacho/internal/redact"
	"tacho/outcome"
	"tacho/plan"
	"tacho/run"
	"tacho/store"
)

// CutShort is the directory of the last run below another, if it did not come to
// its end; empty is none.
func CutShort(runs string) string {
	entries, _ := os.ReadDir(runs) // without the directory there is no run
	var last *store.Run
	for _, e := range entries {
		r, err := store.Open(filepath.Join(runs, e.Name()))
		if err == nil && (last == nil || r.Manifest.Started.After(last.Manifest.Started)) {
			last = r
		}
	}
	if last == nil || last.Whole {
		return ""
	}
	return last.Dir
}

// unlike names the options in which two plans differ.
func unlike(a, b []byte) (names []string) {
	var x, y map[string]any
	_, _ = json.Unmarshal(a, &x), json.Unmarshal(b, &y) // both were written by this program
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if !reflect.DeepEqual(x[name], y[name]) {
			names = append(names, strings.ReplaceAll(name, "_", "-"))
		}
	}
	return names
}

// finished is the run with the levels that came to their end and have all of
// their records.
func finished(dir string, kept *store.Run) (*outcome.Run, error) {
	if !slices.ContainsFunc(kept.Levels, func(l store.Level) bool { return l.Over() }) {
		return &outcome.Run{}, nil
	}
	run, err := archive.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	run.Levels = slices.DeleteFunc(run.Levels, func(l outcome.Level) bool {
		return l.LacksRecords() != "" || !slices.ContainsFunc(kept.Levels, func(k store.Level) bool { return k.Index == l.Index && k.Over() })
	})
	return run, nil
}

// ReadResumed takes the plan of a run that is to go on, what it came to so far, and its
// seed. Options that p already has must be as they were.
func ReadResumed(dir string, p *plan.Plan, secrets *redact.Secrets) (before *outcome.Run, seed uint64, err error) {
	kept, err := store.Open(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("--resume: %w", err)
	}
	mismatched, err := kept.Mismatched()
	if err != nil {
		return nil, 0, fmt.Errorf("--resume: %w", err)
	}
	if kept.Whole && len(mismatched) == 0 {
		return nil, 0, fmt.Errorf("--resume: %s came to its end: there is nothing to go on with (--plan %[1]s measures it again)", dir)
	}
	if err := p.Read(kept.Manifest.Plan, secrets); err != nil {
		return nil, 0, fmt.Errorf("--resume %s: %w", dir, err)
	}
	now, err := json.Marshal(new(p.Public(secrets)))
	if err != nil {
		return nil, 0, err
	}
	if names := unlike(kept.Manifest.Plan, now); len(names) > 0 {
		return nil, 0, fmt.Errorf("--resume goes on with the plan as it was: leave out --%s", strings.Join(names, ", --"))
	}
	before, err = finished(dir, kept)
	return before, kept.Manifest.Seed, err
}

// Resume takes up a run that was cut short: levels of before are not measured again.
func (b *Bench) Resume(dir string, before *outcome.Run) (*store.Manifest, error) {
	kept, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	if was, is := kept.Manifest.Target, b.manifest().Target; was.Model != is.Model || was.Dataset != is.Dataset {
		return nil, &run.UsageError{Err: fmt.Errorf("--resume: the run measured model %s with dataset %s, and now there is model %s with dataset %s: measure anew",
			was.Model, was.Dataset, is.Model, is.Dataset)}
	}
	keep, err := store.Resume(dir, time.Now(), b.o.Env.Secrets.SweepJSON)
	if err != nil {
		return nil, err
	}
	if was := kept.Manifest.Version; was != Build() {
		b.say(fmt.Sprintf("The run was begun by tacho %s, and this is tacho %s: levels may not be comparable if definitions differ.", was, Build()))
	}
	b.say(fmt.Sprintf("Going on with %s. Measured before: %d.", dir, len(before.Levels)))
	if err := b.keepIn(keep); err != nil {
		return nil, err
	}
	if b.Outcome.Levels = before.Levels; len(b.Outcome.Levels) > 0 {
		b.Outcome.Began = before.Began
	}
	return &kept.Manifest, nil
}
