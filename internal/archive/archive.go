// Package archive reads stored runs, and results of other tools, into outcomes. A run stored by bench
// gives exactly the measured outcome, so its report is identical byte for byte. A result of another
// tool gives the figures it contains. There is one file for each format.
package archive

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/store"
)

// Open reads the single run in path, like All. change may replace the configuration of a summary. If
// change is nil, the configuration stays as stored.
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

// openKept reads a run stored by bench.
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
			"%d lines could not be read (first %v): copy the run again from its origin, or measure again", d.Lines, d.First)})
	}
	if len(run.Levels) > 0 {
		run.Began = run.Levels[0].Epoch
	}
	run.Order()
	return run, nil
}

// Summary reads the summary that a run wrote at its end, without its records.
func Summary(dir string) (*outcome.Run, error) {
	path := filepath.Join(dir, store.SummaryFile)
	b, err := atomicfile.Read(path)
	if err != nil {
		return nil, err
	}
	runs, err := decodeRuns(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if len(runs) != 1 {
		return nil, fmt.Errorf("%s has %d runs", path, len(runs))
	}
	return &runs[0], nil
}

// sums holds the sums over the records of a level.
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
		if d := kept.Damaged(); d.Lines > 0 {
			return nil, fmt.Errorf("%s: %w, or its records are damaged: %d lines could not be read (first %w)", kept.Dir, errNothing, d.Lines, d.First)
		}
		return nil, fmt.Errorf("%s: %w", kept.Dir, errNothing)
	}
	return all, nil
}

func readLevel(kept *store.Run, i int, s *sums, samples []instrument.Sample, change func(*metric.Config) error) (*outcome.Level, error) {
	stage := &kept.Levels[i]
	c := stage.Config
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(kept.Dir, store.StagesFile), err)
	}
	// Only the last level of a run can be incomplete.
	c.Interrupted = c.Interrupted || !kept.Complete && i == len(kept.Levels)-1 && !stage.Complete()
	if err := change(&c); err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.GPUs == 0 { // the level does not contain the number of GPUs
		for _, g := range kept.Manifest.Target.GPUs {
			c.GPUs += float64(g.Count)
		}
	}
	c.Engine = cmp.Or(c.Engine, metric.EngineOf(kept.Manifest.Target.Servers, func(s store.Server) string { return s.Name }))
	if m := kept.Mismatch(stage); m != nil {
		c.Known = append(slices.Clip(c.Known), outcome.RecordsReason(m.String()))
	}
	out := &outcome.Level{Setting: stage.Setting, Summary: s.requests.Measured(c), Samples: samples, Records: records(kept.Dir, stage.Index)}
	out.Summary.Conclude(instrument.Summarize(samples, out.Summary.DurationS), s.probes.Probe())
	return out, nil
}

// anyStage selects all levels.
const anyStage = -1

// records yields the requests of a level of a stored run, without probes.
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

// Level yields the requests of a level of an open run, without probes.
func Level(kept *store.Run, stage int) iter.Seq2[*tacho.Record, error] { return requests(kept, stage) }

// Requests yields the requests of all levels of an open run, without probes.
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

// About returns the description of a run stored in dir, from its manifest.
func About(dir string, m *store.Manifest) outcome.About {
	var plan struct { // with the names of the options
		Label     string   `json:"label"`
		Tokenizer string   `json:"tokenizer"`
		Path      string   `json:"dataset_path"`
		Metadata  []string `json:"metadata"`
		BaseURL   []string `json:"base_url"`
		Sim       string   `json:"sim"`
	}
	_ = json.Unmarshal(m.Plan, &plan) // missing values are left out
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
		a.URLs, a.Engine = nil, m.Target.Servers[0].Name
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

// hostOf describes a machine.
func hostOf(h store.Host) string {
	if h.Name == "" {
		return ""
	}
	return fmt.Sprintf("%s, %d cores, %s/%s", h.Name, h.CPUs, h.OS, h.Arch)
}
