package cli

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tacho"
	"tacho/instrument"
	"tacho/internal/redact"
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
	return checkPlaces(p)
}

func metadata(p *run.Plan) (out []report.Field, err error) {
	for _, m := range p.Metadata {
		key, value, ok := strings.Cut(m, "=")
		if !ok {
			return nil, fmt.Errorf("--metadata %q: write KEY=VALUE", m)
		}
		if redact.NamesSecret(key) {
			value = redact.Mark
		}
		out = append(out, report.Field{Name: key, Value: value})
	}
	return out, nil
}

func thresholds(p *run.Plan) (out []float64, err error) {
	for s := range strings.SplitSeq(p.TimelineITL, ",") {
		f, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
		if err != nil || !(f >= 0) || math.IsInf(f, 0) {
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
		Date: s.Epoch, EndpointType: p.Backend, Backend: p.Backend, Label: b.env.secrets.Sweep(p.Label),
		ModelID: b.env.secrets.Sweep(b.runner.ModelID), TokenizerID: b.env.secrets.Sweep(p.Tokenizer), NumPrompts: s.Inputs, Metadata: fields, Summary: sum,
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
	var saved, drawn error // neither is lost with the other
	if p.SaveResult || p.AppendResult {
		v.Records, v.Detailed = b.recordsOf(s.Index), p.SaveDetailed
		saved = b.wrote("Result saved in", path, writeResult(path, p.AppendResult, v))
	}
	if p.PlotTimeline {
		path = strings.TrimSuffix(path, ".json") + ".timeline.html"
		drawn = b.wrote("Timeline drawn in", path, b.plotTimeline(s, path))
	}
	return errors.Join(saved, drawn)
}

// wrote tells of a file beside the run that is there now, or why it is not.
func (b *benchRun) wrote(what, path string, err error) error {
	if err != nil {
		return fmt.Errorf("%s was not written: %w", path, err)
	}
	b.say(what + " " + path)
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
		kept, err := b.keep.Read()
		if err != nil {
			yield(nil, err)
			return
		}
		for rec, err := range kept.Records() {
			if err == nil && (rec.Stage != stage || rec.Probe) {
				continue
			}
			if !yield(rec, err) {
				return
			}
		}
	}
}

// writeResult writes the file; appending, it adds a line to it.
func writeResult(path string, appending bool, v *report.VLLMResult) error {
	if appending {
		var line bytes.Buffer
		if err := v.Write(&line); err != nil {
			return err
		}
		return appendLine(path, line.Bytes())
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(v.Write(f), f.Close())
}

// appendLine adds a line to a file that other processes may be adding to: whole,
// or not at all.
func appendLine(path string, line []byte) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // which lets the others in
	_ = lock(f)                                          // where files have no locks, one write must do
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() > 0 {
		line = append([]byte("\n"), line...)
	}
	if _, err := f.Write(line); err != nil {
		return errors.Join(err, f.Truncate(info.Size()))
	}
	return nil
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
	sums, probes := map[int]*metric.Accumulator{}, map[int]*metric.Accumulator{}
	configs := make([]metric.Config, len(kept.Stages))
	for i, s := range kept.Stages {
		if configs[i], err = stageConfig(kept, i, change); err != nil {
			return nil, err
		}
		sums[s.Index], probes[s.Index] = &metric.Accumulator{Goodput: configs[i].Goodput}, &metric.Accumulator{}
	}
	measured := false
	for rec, err := range kept.Records() {
		if err != nil {
			return nil, err
		}
		to := sums
		if rec.Probe {
			to = probes
		}
		measured = measured || !rec.Probe
		if err := to[rec.Stage].Add(rec); err != nil {
			return nil, err
		}
	}
	if !measured {
		return nil, fmt.Errorf("%s: nothing was measured: the run was stopped or failed before a request finished", dir)
	}
	samples, err := kept.Samples()
	if err != nil {
		return nil, err
	}
	for i, s := range kept.Stages {
		configs[i].Known = append(configs[i].Known, damage(kept)...)
		sum := sums[s.Index].Summary(configs[i])
		sum.Beside(instrument.Summarize(samples[s.Index], sum.DurationS), probes[s.Index].Probe())
		out.Stages = append(out.Stages, report.Stage{Name: s.Name, Value: s.Value, Summary: sum})
	}
	return out, nil
}

// damage is what could not be read of a run.
func damage(kept *store.Run) []metric.Reason {
	d := kept.Damaged()
	if d.Lines == 0 {
		return nil
	}
	return []metric.Reason{{Code: "damaged", Level: metric.Note, Text: fmt.Sprintf(
		"%d lines of this run could not be read, and what they told is missing here (the first: %v): copy the run again from where it was made, or measure again", d.Lines, d.First)}}
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
