package bench

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"tacho/outcome"
	"tacho/plan"
	"tacho/report"
	"tacho/store"
)

// render writes a report in the named format.
func render(w io.Writer, format string, r *report.Report) error {
	f, err := report.FormatNamed(format)
	if err != nil {
		return err
	}
	return f.Render(w, r)
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
func (b *Bench) saveResult(l *outcome.Level) error {
	p := &b.Runner.Plan
	if !p.SaveResult && !p.AppendResult && !p.PlotTimeline {
		return nil
	}
	v := report.NewVLLMResult(&b.Outcome, l, p.SaveDetailed)
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
func (b *Bench) wrote(what, path string, err error) error {
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
func (b *Bench) resultPath(v *report.VLLMResult) string {
	p := &b.Runner.Plan
	name := p.ResultFilename
	if name == "" {
		name = v.FileName()
	}
	if p.Virtual {
		name = PredictedName(name)
	}
	if v.Value != "" && !p.AppendResult {
		ext := filepath.Ext(name)
		name = strings.TrimSuffix(name, ext) + "-" + strings.Trim(unfit.ReplaceAllString(v.Value, "-"), "-") + ext
	}
	return filepath.Join(p.ResultDir, name)
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
func (b *Bench) writePage(r *report.Report) error {
	path := filepath.Join(b.Keep.Dir(), store.PageFile)
	var page bytes.Buffer
	err := render(&page, "html", r)
	if err == nil {
		err = b.Keep.Page(page.Bytes())
	}
	return b.wrote("Page:", path, err)
}

// plotTimeline writes the page of one level, with the colours of its gaps as
// asked for.
func (b *Bench) plotTimeline(l *outcome.Level, path string) (err error) {
	limits, err := thresholds(&b.Runner.Plan)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	one := outcome.Run{About: b.Outcome.About, Levels: []outcome.Level{*l}, Records: l.Records}
	return render(f, "html", &report.Report{Runs: []outcome.Run{one}, Thresholds: limits})
}

// StandardOutput is the path of a report that is printed.
const StandardOutput = "-"

// Orders are the files that --report asks for.
func Orders(texts []string) ([]report.Order, error) {
	var out []report.Order
	for _, text := range texts {
		o, err := report.ParseOrder(text)
		if err != nil {
			return nil, fmt.Errorf("--report: %w", err)
		}
		out = append(out, o)
	}
	return out, nil
}

// writeOrders writes the reports of a run that the plan asks for. None is lost
// with another.
func (b *Bench) writeOrders(r *report.Report) error {
	list, err := Orders(b.Runner.Plan.Reports)
	r.Style = b.Runner.Plan.ReportStyle
	for i := range list {
		path := list[i].Path
		switch {
		case path == StandardOutput:
			err = errors.Join(err, b.deliver(r, &list[i], path))
			continue
		case path == "":
			path = filepath.Join(b.Keep.Dir(), list[i].File())
		case b.Runner.Plan.Virtual:
			path = PredictedName(path)
		}
		err = errors.Join(err, b.wrote("Report saved in", path, b.deliver(r, &list[i], path)))
	}
	return err
}

// PredictedName is the name of a file with predicted figures, so that they are not taken for
// measured ones.
func PredictedName(path string) string {
	return filepath.Join(filepath.Dir(path), "predicted-"+filepath.Base(path))
}

// deliver writes one report to its place.
func (b *Bench) deliver(r *report.Report, o *report.Order, path string) error {
	if path != StandardOutput {
		return Deliver(r, o, path)
	}
	if b.o.Print == nil {
		return nil
	}
	one := *r
	one.Rows = o.Rows
	return b.o.Print(o.Format, &one)
}

// Deliver writes one report into a file.
func Deliver(r *report.Report, o *report.Order, path string) (err error) {
	one := *r
	one.Rows = o.Rows
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	return o.Format.Render(f, &one)
}

// writeText keeps the whole report of each level with the run.
func (b *Bench) writeText(r *report.Report) error {
	var text bytes.Buffer
	whole := *r
	whole.Style = b.Runner.Plan.ReportStyle
	if err := render(&text, report.Text, &whole); err != nil {
		return err
	}
	return b.Keep.Text([]byte(b.o.Env.Secrets.Sweep(text.String())))
}
