package bench

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/store"
)

// CutShort returns the directory of the last run in runs if that run is
// incomplete, otherwise an empty string.
func CutShort(runs string) string {
	all := store.Newest(runs)
	if len(all) == 0 || all[0].Complete {
		return ""
	}
	return all[0].Dir
}

// presentation lists the options that change neither the requests nor the results of a run. --resume accepts other
// values of them.
var presentation = []string{
	"progress", "progress-interval", "plain", "verbose", "disable-tqdm", "no-html", "report", "report-style", "dialect", "fail-if", "allow-unjudged", "junit",
	"metrics-listen", "otlp-endpoint", "otlp-header", "on-disk-full", "runs-dir",
}

// unlike returns the names of options that differ between two plans, except presentation.
func unlike(a, b []byte) (names []string) {
	var x, y map[string]any
	_, _ = json.Unmarshal(a, &x), json.Unmarshal(b, &y) // both were written by this program
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		flag := strings.ReplaceAll(name, "_", "-")
		if !slices.Contains(presentation, flag) && !reflect.DeepEqual(x[name], y[name]) {
			names = append(names, flag)
		}
	}
	return names
}

// finished returns the run with its complete levels.
func finished(dir string, kept *store.Run) (*outcome.Run, error) {
	if !slices.ContainsFunc(kept.Levels, func(l store.Level) bool { return l.Complete() }) {
		return &outcome.Run{}, nil
	}
	run, err := archive.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	run.Levels = slices.DeleteFunc(run.Levels, func(l outcome.Level) bool {
		return l.LacksRecords() != "" || !slices.ContainsFunc(kept.Levels, func(k store.Level) bool { return k.Index == l.Index && k.Complete() })
	})
	return run, nil
}

// ReadResumed returns the plan, the results so far and the seed of an
// incomplete run. Options already set in p must have the same values, except presentation.
func ReadResumed(dir string, p *plan.Plan, secrets *redact.Secrets) (before *outcome.Run, seed uint64, err error) {
	kept, err := store.Open(dir)
	if err != nil {
		return nil, 0, fmt.Errorf("--resume: %w", err)
	}
	mismatched, err := kept.Mismatched()
	if err != nil {
		return nil, 0, fmt.Errorf("--resume: %w", err)
	}
	if kept.Complete && len(mismatched) == 0 {
		return nil, 0, fmt.Errorf("--resume: %s is complete (--plan %[1]s measures it again)", dir)
	}
	if err := p.Read(kept.Manifest.Plan, secrets); err != nil {
		return nil, 0, fmt.Errorf("--resume %s: %w", dir, err)
	}
	now, err := json.Marshal(new(p.Public(secrets)))
	if err != nil {
		return nil, 0, err
	}
	if names := unlike(kept.Manifest.Plan, now); len(names) > 0 {
		return nil, 0, fmt.Errorf("--resume continues the original plan, remove --%s", strings.Join(names, ", --"))
	}
	before, err = finished(dir, kept)
	return before, kept.Manifest.Seed, err
}

// Resume continues an incomplete run. The levels of before are not measured
// again.
func (b *Bench) Resume(dir string, before *outcome.Run) (*store.Manifest, error) {
	kept, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	if was, is := kept.Manifest.Target, b.manifest().Target; was.Model != is.Model || was.Dataset != is.Dataset {
		return nil, &run.UsageError{Err: fmt.Errorf("--resume: the run measured model %s with dataset %s, but the server has model %s with dataset %s; start a new run",
			was.Model, was.Dataset, is.Model, is.Dataset)}
	}
	keep, err := store.Resume(dir, time.Now(), b.o.Env.Secrets.SweepJSON)
	if err != nil {
		return nil, err
	}
	if was := kept.Manifest.Version; was != Build() {
		b.Message(fmt.Sprintf("The run was started by tacho %s, and this is tacho %s. Levels may not be comparable if definitions differ.", was, Build()))
	}
	b.Message(fmt.Sprintf("Continuing %s. Levels measured before: %d.", dir, len(before.Levels)))
	if err := b.keepIn(keep); err != nil {
		return nil, err
	}
	if b.Outcome.Levels = before.Levels; len(b.Outcome.Levels) > 0 {
		b.Outcome.Began = before.Began
	}
	return &kept.Manifest, nil
}
