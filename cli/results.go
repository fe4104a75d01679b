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
	"regexp"
	"strconv"
	"strings"

	"tacho"
	"tacho/compare"
	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/report"
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
func checkResults(p *plan.Plan) error {
	if err := checkMetadata(p); err != nil {
		return err
	}
	if err := report.CheckStyle(p.ReportStyle); err != nil {
		return fmt.Errorf("--report-style: %w", err)
	}
	if p.Dialect != "" {
		if _, err := metric.DialectNamed(p.Dialect); err != nil {
			return fmt.Errorf("--dialect: %w", err)
		}
	}
	if conditions, err := gateOf(p).parse(); err != nil {
		return err
	} else if err := compare.CheckAlone(conditions); err != nil {
		return fmt.Errorf("--fail-if: %w", err)
	}
	if err := checkPublish(p); err != nil {
		return err
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

func checkMetadata(p *plan.Plan) error {
	for _, m := range p.Metadata {
		if !strings.Contains(m, "=") {
			return fmt.Errorf("--metadata %q: write KEY=VALUE", m)
		}
	}
	return nil
}

func thresholds(p *plan.Plan) (out []float64, err error) {
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
func (b *benchRun) saveResult(l *outcome.Level) error {
	p := &b.runner.Plan
	if !p.SaveResult && !p.AppendResult && !p.PlotTimeline {
		return nil
	}
	v := report.NewVLLMResult(&b.run, l, p.SaveDetailed)
	path := b.resultPath(v)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("--result-dir: %w", err)
	}
	var saved, drawn error // neither is lost with the other
	if p.SaveResult || p.AppendResult {
		saved = b.wrote("Result saved in", path, writeResult(path, p.AppendResult, v))
	}
	if p.PlotTimeline {
		path = strings.TrimSuffix(path, ".json") + ".timeline.html"
		drawn = b.wrote("Timeline drawn in", path, b.plotTimeline(l, path))
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

// unfit is what a part of a file's name does without.
var unfit = regexp.MustCompile(`[^A-Za-z0-9._+=-]+`)

// resultPath is where the result of a level goes. Levels do not overwrite each
// other: where they would share a name, it tells them apart.
func (b *benchRun) resultPath(v *report.VLLMResult) string {
	p := &b.runner.Plan
	name := p.ResultFilename
	if name == "" {
		name = v.FileName()
	}
	if p.Virtual {
		name = predictedName(name)
	}
	if v.Value != "" && !p.AppendResult {
		ext := filepath.Ext(name)
		name = strings.TrimSuffix(name, ext) + "-" + strings.Trim(unfit.ReplaceAllString(v.Value, "-"), "-") + ext
	}
	return filepath.Join(p.ResultDir, name)
}

// recordsOf are the records that of picks, read back from where they are kept.
func (b *benchRun) recordsOf(of func(*store.Run) iter.Seq2[*tacho.Record, error]) func() iter.Seq2[*tacho.Record, error] {
	return func() iter.Seq2[*tacho.Record, error] {
		kept, err := b.keep.Read()
		if err != nil {
			return func(yield func(*tacho.Record, error) bool) { yield(nil, err) }
		}
		return of(kept)
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

// writePage writes the page of the run beside its records.
func (b *benchRun) writePage(r *report.Report) error {
	path := filepath.Join(b.keep.Dir(), store.PageFile)
	var page bytes.Buffer
	err := show(&page, "html", r)
	if err == nil {
		err = b.keep.Page(page.Bytes())
	}
	return b.wrote("Page:", path, err)
}

// plotTimeline writes the page of one level, with the colours of its gaps as
// asked for.
func (b *benchRun) plotTimeline(l *outcome.Level, path string) (err error) {
	limits, err := thresholds(&b.runner.Plan)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	one := outcome.Run{About: b.run.About, Levels: []outcome.Level{*l}, Records: l.Records}
	return show(f, "html", &report.Report{Runs: []outcome.Run{one}, Thresholds: limits})
}
