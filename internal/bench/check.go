package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/publish"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/internal/traceid"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/sim/step"
)

// checks validate a plan, by group of options.
var checks = []struct {
	group string
	check func(p *plan.Plan, say func(string)) error
}{
	{"the simulated engine and virtual time", alone(checkEngine)},
	{"requests, arrivals and servers", target.Check},
	{"gates", alone(checkGate)},
	{"metrics during the run", alone(checkPublish)},
	{"reports and result files", alone(checkResults)},
	{"output directories", alone(checkPlaces)},
}

// alone adapts a check without messages.
func alone(check func(p *plan.Plan) error) func(*plan.Plan, func(string)) error {
	return func(p *plan.Plan, _ func(string)) error { return check(p) }
}

// Check validates a plan. It sends nothing and leaves no files. If the plan
// names a dataset file but no dataset, Check sets the dataset and reports it
// with say.
func Check(p *plan.Plan, say func(string)) error {
	for _, c := range checks {
		if err := c.check(p, say); err != nil {
			return &run.UsageError{Err: err}
		}
	}
	return nil
}

// checkEngine checks the options of the simulated engine.
func checkEngine(p *plan.Plan) error {
	if err := checkVirtual(p); err != nil {
		return err
	}
	if p.Sim == "" {
		if p.Given("sim-speedup") {
			return errors.New("--sim-speedup needs a simulated engine, set --sim or remove the option")
		}
		return nil
	}
	for _, text := range p.Values("sim-speedup") {
		if f, err := strconv.ParseFloat(text, 64); err != nil || !(f > 0) || math.IsInf(f, 0) {
			return fmt.Errorf("--sim-speedup %s: want a value above 0", text)
		}
	}
	if len(p.BaseURL) > 0 || p.Given("host") || p.Given("port") {
		return errors.New("--sim (predict: --engine) starts its own server and cannot be combined with --base-url, --host or --port")
	}
	for _, name := range p.Values("sim") {
		if _, err := step.Load(name); err != nil {
			return err
		}
	}
	return nil
}

// checkVirtual checks the options of virtual time.
func checkVirtual(p *plan.Plan) error {
	for _, o := range p.Options() {
		if o.Group == "Prediction" && o.Given() && !p.Virtual {
			return fmt.Errorf("--%s needs virtual time, add --virtual and --sim or remove the option", o.Name)
		}
	}
	switch {
	case p.Virtual && p.Sim == "":
		return errors.New("--virtual simulates an engine, remove the server and set --sim (predict: --engine)")
	case p.Virtual && p.Given("sim-speedup"):
		return errors.New("--virtual cannot be combined with --sim-speedup")
	}
	return nil
}

// checkGate parses the conditions of --fail-if.
func checkGate(p *plan.Plan) error {
	conditions, err := Conditions(p.FailIf, p.JUnit)
	if err != nil {
		return err
	}
	if err := compare.CheckAlone(conditions); err != nil {
		return fmt.Errorf("--fail-if: %w", err)
	}
	return nil
}

// Conditions parses the conditions of --fail-if. junit is the file of --junit.
func Conditions(failIf, junit string) ([]metric.Condition, error) {
	switch {
	case failIf == "" && junit != "":
		return nil, errors.New("--junit needs --fail-if")
	case failIf == "":
		return nil, nil
	}
	conditions, err := metric.ParseConditions(failIf)
	if err != nil {
		return nil, fmt.Errorf("--fail-if: %w", err)
	}
	return conditions, nil
}

// checkPublish checks the options for metrics during the run.
func checkPublish(p *plan.Plan) error {
	switch {
	case p.Virtual && (p.MetricsListen != "" || p.OTLP != ""):
		return errors.New("--metrics-listen and --otlp-endpoint cannot be combined with a predicted run, use --report openmetrics")
	case !(p.Traceparent >= 0 && p.Traceparent <= 1):
		return fmt.Errorf("--traceparent %g: want a fraction from 0 to 1", p.Traceparent)
	case p.Traceparent > 0 && slices.ContainsFunc(p.Header, func(h string) bool {
		return strings.EqualFold(strings.TrimSpace(strings.SplitN(h, "=", 2)[0]), traceid.Header)
	}):
		return fmt.Errorf("--traceparent sends a %s header of its own, remove it from --header", traceid.Header)
	case p.OTLP == "":
		return nil
	}
	s := publish.Settings{Endpoint: p.OTLP, Headers: p.OTLPHeaders}
	_, err := s.Collector()
	return err
}

// checkResults checks the options of reports and result files.
func checkResults(p *plan.Plan) error {
	for _, m := range p.Metadata {
		if !strings.Contains(m, "=") {
			return fmt.Errorf("--metadata %q: want KEY=VALUE", m)
		}
	}
	if err := report.CheckStyle(p.ReportStyle); err != nil {
		return fmt.Errorf("--report-style: %w", err)
	}
	if p.Dialect != "" {
		if _, err := metric.DialectNamed(p.Dialect); err != nil {
			return fmt.Errorf("--dialect: %w", err)
		}
	}
	if p.PlotTimeline {
		if _, err := thresholds(p); err != nil {
			return err
		}
	}
	if !p.SaveResult && !p.AppendResult && p.SaveDetailed {
		return errors.New("--save-detailed needs --save-result or --append-result")
	}
	return nil
}

// checkPlaces checks that all output directories are writable, before the
// measurement. It leaves no files.
func checkPlaces(p *plan.Plan) error {
	if err := writable(p.RunsDir); err != nil {
		return fmt.Errorf("--runs-dir: %w", err)
	}
	if err := checkOutputs(p); err != nil {
		return err
	}
	if p.JUnit != "" {
		if err := WritableFile(p.JUnit); err != nil {
			return fmt.Errorf("--junit: %w", err)
		}
	}
	if !p.SaveResult && !p.AppendResult && !p.PlotTimeline {
		return nil
	}
	if err := writable(p.ResultDir); err != nil {
		return fmt.Errorf("--result-dir: %w", err)
	}
	if p.ResultFilename == "" {
		return nil
	}
	if err := WritableFile(filepath.Join(p.ResultDir, p.ResultFilename)); err != nil {
		return fmt.Errorf("--result-filename: %w", err)
	}
	return nil
}

// checkOutputs checks that all reports can be written.
func checkOutputs(p *plan.Plan) error {
	list, err := Outputs(p.Reports)
	if err != nil {
		return err
	}
	for i := range list {
		path := list[i].Path
		if path == "" || path == StandardOutput {
			continue
		}
		if err := WritableFile(path); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	return nil
}

// WritableFile returns an error if a file cannot be written. It does not change the file.
func WritableFile(path string) error {
	if name := filepath.Base(path); len(name) > sanitize.MaxFileName {
		return fmt.Errorf("the file name %s has %d bytes, use at most %d", sanitize.Short(name), len(name), sanitize.MaxFileName)
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return writable(filepath.Dir(path))
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory, name a file", path)
	case !info.Mode().IsRegular():
		return nil
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return f.Close()
}

// writable returns an error if no file can be created in a directory. The
// directory need not exist yet.
func writable(dir string) error {
	dir = filepath.Clean(dir)
	info, err := os.Stat(dir)
	for errors.Is(err, fs.ErrNotExist) && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		info, err = os.Stat(dir)
	}
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is not a directory, choose another", dir)
	}
	f, err := os.CreateTemp(dir, ".tacho-*")
	if err != nil {
		return fmt.Errorf("cannot write to %s: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
