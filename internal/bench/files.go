package bench

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/store"
)

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

// saveResult writes the result files of a level.
func (b *Bench) saveResult(l *outcome.Level) error {
	p := &b.Runner.Plan
	if !p.SaveResult && !p.AppendResult && !p.PlotTimeline {
		return nil
	}
	v := report.NewVLLMResult(&b.Outcome, l, p.SaveDetailed)
	path := b.resultPath(v, ".json")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return fmt.Errorf("--result-dir: %w", err)
	}
	var saved, drawn error // an error in one file does not affect the other
	if p.SaveResult || p.AppendResult {
		saved = b.wrote("Result saved in", path, writeResult(path, p.AppendResult, v))
	}
	if p.PlotTimeline {
		path = b.resultPath(v, ".timeline.html")
		drawn = b.wrote("Timeline saved in", path, b.plotTimeline(l, path))
	}
	return errors.Join(saved, drawn)
}

// wrote reports a written file to the user, or returns an error.
func (b *Bench) wrote(what, path string, err error) error {
	if err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	b.Message(what + " " + path)
	return nil
}

// resultPath returns the path of a level's result file, or of its timeline. If
// several levels would share a name, their coordinates are added.
func (b *Bench) resultPath(v *report.VLLMResult, ending string) string {
	p := &b.Runner.Plan
	name := p.ResultFilename
	if name == "" {
		name = v.FileName()
	}
	if p.Virtual {
		name = predictedName(name)
	}
	if v.Value != "" && !p.AppendResult {
		ext := filepath.Ext(name)
		name = strings.TrimSuffix(name, ext) + "-" + strings.Trim(sanitize.FileName(v.Value), "-") + ext
	}
	if ending != ".json" {
		name = strings.TrimSuffix(name, ".json") + ending
	}
	dir, base := filepath.Split(name)
	return filepath.Join(p.ResultDir, dir, sanitize.Short(base))
}

// writeResult writes the result file, or appends a line to it.
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

// appendLine appends an entire line to a file that other processes may append
// to as well.
func appendLine(path string, line []byte) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }() // also releases the lock
	_ = lock(f)                                          // without file locks, a single write has to suffice
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

// writePage writes the HTML report to the run directory.
func (b *Bench) writePage(r *report.Report) error {
	path := filepath.Join(b.Keep.Dir(), store.PageFile)
	var page bytes.Buffer
	err := report.Write(&page, "html", r)
	if err == nil {
		err = b.Keep.Page(page.Bytes())
	}
	return b.wrote("Page:", path, err)
}

// plotTimeline writes the HTML timeline of one level with the plan's color
// thresholds.
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
	return report.Write(f, "html", &report.Report{Runs: []outcome.Run{one}, Thresholds: limits})
}

// StandardOutput is the path of a printed report.
const StandardOutput = "-"

// startsReport matches a part of --report that begins a report. Other parts after a comma belong to a path.
var startsReport = regexp.MustCompile(`^[a-z]+(:[a-z]+)?(=|$)`)

// Outputs parses the values of --report. A value may be a list, as in json=a.json,html=b.html.
func Outputs(texts []string) ([]report.Output, error) {
	var parts []string
	for _, text := range texts {
		for i, part := range strings.Split(text, ",") {
			if i == 0 || startsReport.MatchString(part) {
				parts = append(parts, part)
			} else {
				parts[len(parts)-1] += "," + part
			}
		}
	}
	var out []report.Output
	for _, part := range parts {
		o, err := report.ParseOutput(part)
		if err != nil {
			return nil, fmt.Errorf("--report: %w", err)
		}
		out = append(out, o)
	}
	return out, nil
}

// writeOutputs writes the reports the plan asks for. An error in one report does
// not affect the others.
func (b *Bench) writeOutputs(r *report.Report) error {
	list, err := Outputs(b.Runner.Plan.Reports)
	r.Style = b.Runner.Plan.ReportStyle
	for i := range list {
		path := list[i].Path
		switch {
		case path == StandardOutput:
			err = errors.Join(err, WriteReport(r, &list[i], path, b.o.Print))
			continue
		case path == "":
			path = filepath.Join(b.Keep.Dir(), list[i].File())
		case b.Runner.Plan.Virtual:
			path = predictedName(path)
		}
		err = errors.Join(err, b.wrote("Report saved in", path, WriteReport(r, &list[i], path, b.o.Print)))
	}
	return err
}

// predictedName returns the file name for predicted results, which must not be
// mistaken for measured ones.
func predictedName(path string) string {
	return filepath.Join(filepath.Dir(path), "predicted-"+filepath.Base(path))
}

// WriteReport writes one report to a file, or prints it. A nil print ignores reports for standard output.
func WriteReport(r *report.Report, o *report.Output, path string, print func(report.Format, *report.Report) error) (err error) {
	one := *r
	one.Rows = o.Rows
	switch {
	case path == StandardOutput && print == nil:
		return nil
	case path == StandardOutput:
		return print(o.Format, &one)
	}
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

// writeText stores the full text report of each level.
func (b *Bench) writeText(r *report.Report) error {
	var text bytes.Buffer
	whole := *r
	whole.Style, whole.Wide, whole.Wrap = b.Runner.Plan.ReportStyle, 0, report.TextWidth
	if err := report.Write(&text, report.Text, &whole); err != nil {
		return err
	}
	return b.Keep.Text([]byte(b.o.Env.Secrets.Sweep(text.String())))
}
