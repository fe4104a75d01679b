package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"time"

	"tacho/archive"
	"tacho/outcome"
	"tacho/plan"
	"tacho/store"
)

// lastRun is what --resume takes in place of a directory.
const lastRun = "last"

// cutShort is the directory of the last run below another, if it did not come to
// its end; empty is none.
func cutShort(runs string) string {
	entries, _ := os.ReadDir(runs) // none is no run
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

// readResumed takes the plan of the run that is to go on, and what it came to so
// far. The plan has to be as it was.
func readResumed(env *Env, o *benchOptions, p *plan.Plan) error {
	if o.file != "" && o.resume != "" {
		return errors.New("--resume goes without --plan: the run has its own")
	}
	if o.resume == lastRun {
		env.again.Store(true)
		o.resume = cutShort(p.RunsDir)
	}
	if o.resume == "" {
		return nil
	}
	kept, err := store.Open(o.resume)
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	mismatched, err := kept.Mismatched()
	if err != nil {
		return fmt.Errorf("--resume: %w", err)
	}
	if kept.Whole && len(mismatched) == 0 {
		return fmt.Errorf("--resume: %s came to its end: there is nothing to go on with (--plan %[1]s measures it again)", o.resume)
	}
	if err := p.Read(kept.Manifest.Plan, env.secrets); err != nil {
		return fmt.Errorf("--resume %s: %w", o.resume, err)
	}
	public := p.Public(env.secrets)
	now, err := json.Marshal(&public)
	if err != nil {
		return err
	}
	if names := unlike(kept.Manifest.Plan, now); len(names) > 0 {
		return fmt.Errorf("--resume goes on with the plan as it was: leave out --%s", strings.Join(names, ", --"))
	}
	o.seed = &kept.Manifest.Seed
	o.resumed, err = finished(o.resume, kept)
	return err
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

// resume takes up the run that is to go on, if there is one.
func (b *benchRun) resume(o *benchOptions) error {
	if o.resume == "" {
		return nil
	}
	kept, err := store.Open(o.resume)
	if err != nil {
		return err
	}
	if was, is := kept.Manifest.Target, b.manifest().Target; was.Model != is.Model || was.Dataset != is.Dataset {
		return usage(fmt.Errorf("--resume: the run measured model %s with dataset %s, and now there is model %s with dataset %s: measure anew",
			was.Model, was.Dataset, is.Model, is.Dataset))
	}
	keep, err := store.Resume(o.resume, time.Now(), b.env.secrets.SweepJSON)
	if err != nil {
		return err
	}
	if name := kept.Manifest.Cluster; b.agents != nil && name != "" {
		b.agents.name, b.agents.goOn = name, true
	}
	if was, is := kept.Manifest.Version, b.manifest().Version; was != is {
		b.say(fmt.Sprintf("The run was begun by tacho %s, and this is tacho %s: levels may not be comparable if definitions differ.", was, is))
	}
	b.say(fmt.Sprintf("Going on with %s. Measured before: %d.", o.resume, len(o.resumed.Levels)))
	if err := b.keepIn(keep); err != nil {
		return err
	}
	if b.run.Levels = o.resumed.Levels; len(b.run.Levels) > 0 {
		b.run.Began = o.resumed.Began
	}
	return nil
}
