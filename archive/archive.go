// Package archive reads any run, or anybody's report of one, back into the same
// outcomes. Of a run that bench kept they are the very outcomes that were
// measured: a report of what was read is the report of what was run, byte for
// byte. Of somebody's result they are what it tells, one file for each form.
package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"tacho"
	"tacho/instrument"
	"tacho/internal/wholefile"
	"tacho/metric"
	"tacho/outcome"
	"tacho/store"
)

// Open reads the one run that path holds, as All does. change may replace what a
// summary is asked for; nil leaves it as it was.
func Open(path string, change func(*metric.Config) error) (*outcome.Run, error) {
	runs, err := All(path, change)
	if err != nil {
		return nil, err
	}
	if len(runs) > 1 {
		return nil, fmt.Errorf("%s holds %d runs: name one of them", path, len(runs))
	}
	return &runs[0], nil
}

var errNothing = errors.New("nothing was measured: the run was stopped or failed before a request finished")

// openKept reads a run that bench kept in a directory.
func openKept(dir string, change func(*metric.Config) error) (*outcome.Run, error) {
	kept, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	if change == nil {
		change = func(*metric.Config) error { return nil }
	}
	sums, err := sumUp(kept, change)
	if err != nil {
		return nil, err
	}
	samples, err := kept.Samples()
	if err != nil {
		return nil, err
	}
	run := &outcome.Run{About: About(dir, &kept.Manifest), Records: records(dir, anyStage)}
	for i := range kept.Levels {
		level, err := readLevel(kept, i, sums[kept.Levels[i].Index], samples[kept.Levels[i].Index], change)
		if err != nil {
			return nil, err
		}
		run.Levels = append(run.Levels, *level)
	}
	if limit, probe := kept.Limit(); limit != "" {
		run.Notes, run.HeldProbe = append(run.Notes, outcome.LimitNote(limit)), probe
	}
	if d := kept.Damaged(); d.Lines > 0 {
		run.Notes = append(run.Notes, metric.Reason{Code: "damaged", Severity: metric.Note, Text: fmt.Sprintf(
			"lines that could not be read: %d (the first: %v); what they told is missing here: copy the run again from where it was made, or measure again", d.Lines, d.First)})
	}
	if len(run.Levels) > 0 {
		run.Began = run.Levels[0].Epoch
	}
	run.Order()
	return run, nil
}

// Summary reads what a run wrote down when it was over, without a look at its
// records: enough to know it by.
func Summary(dir string) (*outcome.Run, error) {
	b, err := wholefile.Read(filepath.Join(dir, store.SummaryFile))
	if err != nil {
		return nil, err
	}
	var document struct {
		Runs []outcome.Run `json:"runs"`
	}
	if err := json.Unmarshal(b, &document); err != nil {
		return nil, fmt.Errorf("%s: %w", store.SummaryFile, err)
	}
	if len(document.Runs) != 1 {
		return nil, fmt.Errorf("%s has %d runs", store.SummaryFile, len(document.Runs))
	}
	return &document.Runs[0], nil
}

// sums is what the records of a level add up to.
type sums struct{ requests, probes metric.Accumulator }

func sumUp(kept *store.Run, change func(*metric.Config) error) (map[int]*sums, error) {
	all := map[int]*sums{}
	for _, s := range kept.Levels {
		c := s.Config
		if err := change(&c); err != nil {
			return nil, err
		}
		all[s.Index] = &sums{requests: metric.Accumulator{Goodput: c.Goodput, Stall: c.StallMillis}}
	}
	measured := false
	for rec, err := range kept.Records() {
		if err != nil {
			return nil, err
		}
		to := &all[rec.Stage].requests
		if rec.Probe {
			to = &all[rec.Stage].probes
		}
		measured = measured || !rec.Probe
		if err := to.Add(rec); err != nil {
			return nil, err
		}
	}
	if !measured && !slices.ContainsFunc(kept.Levels, func(l store.Level) bool { return kept.Mismatch(&l) != nil }) {
		return nil, fmt.Errorf("%s: %w", kept.Dir, errNothing)
	}
	return all, nil
}

func readLevel(kept *store.Run, i int, s *sums, samples []instrument.Sample, change func(*metric.Config) error) (*outcome.Level, error) {
	stage := &kept.Levels[i]
	c := stage.Config
	// Only the last level of a run can have been cut short.
	c.Interrupted = c.Interrupted || !kept.Whole && i == len(kept.Levels)-1 && !stage.Over()
	if err := change(&c); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.GPUs == 0 { // the level was kept when only the run knew them
		for _, g := range kept.Manifest.Target.GPUs {
			c.GPUs += float64(g.Count)
		}
	}
	if m := kept.Mismatch(stage); m != nil {
		c.Known = append(slices.Clip(c.Known), outcome.RecordsReason(m.String()))
	}
	out := &outcome.Level{Setting: stage.Setting, Summary: s.requests.Summary(c), Samples: samples, Records: records(kept.Dir, stage.Index)}
	out.Summary.Beside(instrument.Summarize(samples, out.Summary.DurationS), s.probes.Probe())
	return out, nil
}

// anyStage stands for all levels.
const anyStage = -1

// records are the requests of a level of a kept run, probes left out.
func records(dir string, stage int) func() iter.Seq2[*tacho.Record, error] {
	return func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) {
			kept, err := store.Open(dir)
			if err != nil {
				yield(nil, err)
				return
			}
			requests(kept, stage)(yield)
		}
	}
}

// Level is the requests of a level of an open run, probes left out.
func Level(kept *store.Run, stage int) iter.Seq2[*tacho.Record, error] { return requests(kept, stage) }

// Requests are those of all levels of an open run, probes left out.
func Requests(kept *store.Run) iter.Seq2[*tacho.Record, error] { return requests(kept, anyStage) }

func requests(kept *store.Run, stage int) iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		for rec, err := range kept.Records() {
			if err == nil && (stage != anyStage && rec.Stage != stage || rec.Probe) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// About is what a manifest says of a run that is kept in dir.
func About(dir string, m *store.Manifest) outcome.About {
	var plan struct { // as options are called there
		Label     string   `json:"label"`
		Tokenizer string   `json:"tokenizer"`
		Path      string   `json:"dataset_path"`
		Metadata  []string `json:"metadata"`
		BaseURL   []string `json:"base_url"`
		Sim       string   `json:"sim"`
	}
	_ = json.Unmarshal(m.Plan, &plan) // what it does not tell is left out
	a := outcome.About{
		Name: filepath.Base(dir), Tool: m.Tool, Version: m.Version, Began: m.Started, Varies: m.Varies, Swept: m.Swept, Args: m.Args, Host: hostOf(m.Host),
		Label: plan.Label, Backend: m.Target.Backend, Model: m.Target.Model, Tokenizer: plan.Tokenizer, Dataset: m.Target.Dataset, URLs: plan.BaseURL,
	}
	if plan.Path != "" {
		a.Dataset = strings.TrimSpace(a.Dataset + " " + plan.Path)
	}
	for _, field := range plan.Metadata {
		name, value, _ := strings.Cut(field, "=")
		a.Metadata = append(a.Metadata, outcome.Field{Name: name, Value: value})
	}
	switch {
	case plan.Sim != "":
		a.URLs = []string{outcome.SimulatedEngine + plan.Sim}
	case len(m.Target.Servers) > 0:
		a.URLs = nil
		for _, s := range m.Target.Servers {
			a.URLs = append(a.URLs, s.URL)
		}
	}
	var gpus []string
	for _, g := range m.Target.GPUs {
		gpus = append(gpus, fmt.Sprintf("%d x %s", g.Count, g.Name))
	}
	a.GPUs = strings.Join(gpus, ", ")
	return a
}

// hostOf is a machine in words.
func hostOf(h store.Host) string {
	if h.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s, %d cores, %s/%s", h.Name, h.CPUs, h.OS, h.Arch)
}
