package cli

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tacho"
	"tacho/instrument"
	"tacho/metric"
	"tacho/pace"
	"tacho/report"
	"tacho/run"
	"tacho/store"
)

// show renders r in the named format.
func show(w io.Writer, format string, r *report.Report) error {
	f, err := report.FormatNamed(format)
	if err != nil {
		return usage(err)
	}
	return f.Render(w, r)
}

// checkResults complains about result options before anything is measured.
func checkResults(p *run.Plan) error {
	if _, err := metadata(p); err != nil {
		return err
	}
	if err := report.CheckStyle(p.ReportStyle); err != nil {
		return fmt.Errorf("--report-style: %w", err)
	}
	if p.PlotTimeline {
		if _, err := thresholds(p); err != nil {
			return err
		}
	}
	if !p.SaveResult && !p.AppendResult && p.SaveDetailed {
		return errors.New("--save-detailed goes with --save-result or --append-result")
	}
	return nil
}

func metadata(p *run.Plan) (out []report.Field, err error) {
	for _, m := range p.Metadata {
		key, value, ok := strings.Cut(m, "=")
		if !ok {
			return nil, fmt.Errorf("--metadata %q: write KEY=VALUE", m)
		}
		out = append(out, report.Field{Name: key, Value: value})
	}
	return out, nil
}

func thresholds(p *run.Plan) (out []float64, err error) {
	for s := range strings.SplitSeq(p.TimelineITL, ",") {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil {
			return nil, fmt.Errorf("--timeline-itl-thresholds: %q is not a number of milliseconds", s)
		}
		out = append(out, f)
	}
	return out, nil
}

// saveResult writes the files of a level that the plan asks for.
func (b *benchRun) saveResult(s run.Stage, sum *metric.Summary) error {
	p := &b.runner.Plan
	if !p.SaveResult && !p.AppendResult && !p.PlotTimeline {
		return nil
	}
	fields, err := metadata(p)
	if err != nil {
		return err
	}
	v := &report.VLLMResult{
		Date: s.Epoch, EndpointType: p.Backend, Backend: p.Backend, Label: p.Label,
		ModelID: b.runner.ModelID, TokenizerID: p.Tokenizer, NumPrompts: s.Inputs, Metadata: fields, Summary: sum,
		EpochMonotonicS: s.Monotonic,
	}
	if v.TokenizerID == "" {
		v.TokenizerID = v.ModelID
	}
	b.ramp(s, v)
	path := b.resultPath(s, v)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("--result-dir: %w", err)
	}
	if p.PlotTimeline {
		if err := b.plotTimeline(s, strings.TrimSuffix(path, ".json")+".timeline.html"); err != nil {
			return err
		}
	}
	if !p.SaveResult && !p.AppendResult {
		return nil
	}
	v.Records, v.Detailed = b.recordsOf(s.Index), p.SaveDetailed
	if err := writeResult(path, p.AppendResult, v); err != nil {
		return fmt.Errorf("save the result: %w", err)
	}
	b.say("Result saved in " + path)
	return nil
}

// resultPath is where the result of a level goes. Levels do not overwrite each
// other: where they would share a name, it tells them apart.
func (b *benchRun) resultPath(s run.Stage, v *report.VLLMResult) string {
	p := &b.runner.Plan
	name := p.ResultFilename
	if name == "" {
		name = v.FileName()
	}
	if s.Value != "" && !p.AppendResult {
		ext := filepath.Ext(name)
		name = strings.TrimSuffix(name, ext) + "-" + strings.ReplaceAll(s.Value, " ", "-") + ext
	}
	return filepath.Join(p.ResultDir, name)
}

// ramp adds what the result of a rising rate has more.
func (b *benchRun) ramp(s run.Stage, v *report.VLLMResult) {
	p := &b.runner.Plan
	if p.RampUpStrategy == "" {
		return
	}
	v.RampUp = &report.RampUp{Strategy: p.RampUpStrategy, StartRPS: int(*p.RampUpStartRPS), EndRPS: int(*p.RampUpEndRPS)}
	pacer, err := b.runner.Pacer(s.Level)
	if err != nil {
		return // the level ran with it
	}
	ramp := pacer.(pace.Ramp)
	last := v.RampUp.StartRPS
	v.RateChanges = []report.RateChange{{RPS: last, Timestamp: s.Epoch}}
	i := 0
	for at := range ramp.Arrivals() {
		for last < int(ramp.RateBefore(i)) {
			last++
			v.RateChanges = append(v.RateChanges, report.RateChange{RPS: last, Timestamp: s.Epoch.Add(at)})
		}
		i++
	}
}

// recordsOf are the records of a level, read back from where they are kept.
func (b *benchRun) recordsOf(stage int) iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		kept, err := store.Open(b.keep.Dir())
		if err != nil {
			yield(nil, err)
			return
		}
		for rec, err := range kept.Records() {
			if err == nil && (rec.Stage != stage || run.IsProbe(rec)) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// writeResult writes the file; appending, it begins a new line.
func writeResult(path string, appending bool, v *report.VLLMResult) (err error) {
	mode := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if appending {
		mode = os.O_CREATE | os.O_WRONLY | os.O_APPEND
	}
	f, err := os.OpenFile(path, mode, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if info, err := f.Stat(); err != nil {
		return err
	} else if appending && info.Size() > 0 {
		if _, err := io.WriteString(f, "\n"); err != nil {
			return err
		}
	}
	return v.Write(f)
}

func (b *benchRun) plotTimeline(s run.Stage, path string) (err error) {
	limits, err := thresholds(&b.runner.Plan)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	b.say("Timeline drawn in " + path)
	return report.Timeline(f, b.recordsOf(s.Index), limits)
}

// readRun sums a kept run up again. Options that are set replace those the run
// was made with.
func readRun(dir string, change func(*metric.Config) error) (*report.Report, error) {
	kept, err := store.Open(dir)
	if err != nil {
		return nil, err
	}
	out := &report.Report{Title: "tacho bench", Began: kept.Manifest.Started}
	sums := make([]metric.Accumulator, len(kept.Stages))
	probes := make([]metric.Accumulator, len(kept.Stages))
	for rec, err := range kept.Records() {
		if err != nil {
			return nil, err
		}
		if rec.Stage < 0 || rec.Stage >= len(sums) {
			return nil, fmt.Errorf("%s: a record of level %d, of which nothing is known", dir, rec.Stage)
		}
		to := &sums[rec.Stage]
		if run.IsProbe(rec) {
			to = &probes[rec.Stage]
		}
		if err := to.Add(rec); err != nil {
			return nil, err
		}
	}
	samples, err := readSamples(dir)
	if err != nil {
		return nil, err
	}
	for i, s := range kept.Stages {
		config, err := stageConfig(kept, i, change)
		if err != nil {
			return nil, err
		}
		sum := sums[i].Summary(config)
		sum.Probe = probes[i].Probe()
		sum.Instruments = instrument.Summarize(samples[i])
		out.Stages = append(out.Stages, report.Stage{Name: s.Name, Value: s.Value, Summary: sum})
	}
	return out, nil
}

func stageConfig(kept *store.Run, i int, change func(*metric.Config) error) (metric.Config, error) {
	var c metric.Config
	if err := unmarshalStrict(kept.Stages[i].Config, &c); err != nil {
		return c, fmt.Errorf("%s: level %d: %w", kept.Dir, i, err)
	}
	// Only the last level of a run can have been cut short.
	if !kept.Whole && i == len(kept.Stages)-1 {
		c.Interrupted = true
	}
	if err := change(&c); err != nil {
		return c, err
	}
	return c, c.Validate()
}
