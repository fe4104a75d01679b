package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tacho/plan"
	"tacho/report"
)

// standardOutput is the path of what is printed.
const standardOutput = "-"

// orders are the files that --report asks for.
func orders(texts []string) ([]report.Order, error) {
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

// checkOrders complains about places where no report can be written.
func checkOrders(p *plan.Plan) error {
	list, err := orders(p.Reports)
	if err != nil {
		return err
	}
	for i := range list {
		path := list[i].Path
		if path == "" || path == standardOutput {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return fmt.Errorf("--report: %s is a directory: name a file", path)
		}
		if err := writable(filepath.Dir(path)); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	return nil
}

// writeOrders writes the reports of a run that the plan asks for. None is lost
// with another.
func (b *benchRun) writeOrders(r *report.Report) error {
	list, err := orders(b.runner.Plan.Reports)
	r.Style = b.runner.Plan.ReportStyle
	for i := range list {
		path := list[i].Path
		switch {
		case path == standardOutput:
			err = errors.Join(err, deliver(b.env, r, &list[i], path))
			continue
		case path == "":
			path = filepath.Join(b.keep.Dir(), list[i].File())
		case b.runner.Plan.Virtual:
			path = predictedName(path)
		}
		err = errors.Join(err, b.wrote("Report saved in", path, deliver(b.env, r, &list[i], path)))
	}
	return err
}

// predictedName is the name of a file that nobody shall take for measured.
func predictedName(path string) string {
	return filepath.Join(filepath.Dir(path), "predicted-"+filepath.Base(path))
}

// deliver writes one report to its place.
func deliver(env *Env, r *report.Report, o *report.Order, path string) (err error) {
	one := *r
	one.Rows = o.Rows
	if path == standardOutput {
		return env.print(o.Format, &one)
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
