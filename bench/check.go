package bench

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"tacho/compare"
	"tacho/internal/target"
	"tacho/metric"
	"tacho/plan"
	"tacho/publish"
	"tacho/report"
	"tacho/run"
	"tacho/sim/step"
)

// checks are what can be wrong with a plan, by groups of options.
var checks = []struct {
	group string
	check func(p *plan.Plan, say func(string)) error
}{
	{"the simulated engine and virtual time", alone(checkEngine)},
	{"what is sent, when, and to whom", target.Check},
	{"gates", alone(checkGate)},
	{"figures while the run goes on", alone(checkPublish)},
	{"reports and result files", alone(checkResults)},
	{"places to write to", alone(checkPlaces)},
}

// alone is a check that says nothing but what is wrong.
func alone(check func(p *plan.Plan) error) func(*plan.Plan, func(string)) error {
	return func(p *plan.Plan, _ func(string)) error { return check(p) }
}

// Check says what is wrong with a plan. It sends nothing and leaves nothing behind. If
// the plan names only the file of a dataset, the dataset is filled in, and say is told.
func Check(p *plan.Plan, say func(string)) error {
	for _, c := range checks {
		if err := c.check(p, say); err != nil {
			return &run.UsageError{Err: err}
		}
	}
	return nil
}

// checkEngine says what does not go with a simulated engine, or without one.
func checkEngine(p *plan.Plan) error {
	if err := checkVirtual(p); err != nil {
		return err
	}
	if p.Sim == "" {
		if p.Given("sim-speedup") {
			return errors.New("--sim-speedup is of the simulated engine, and a server is named: leave it out, or name an engine with --sim")
		}
		return nil
	}
	for _, text := range p.Values("sim-speedup") {
		if f, err := strconv.ParseFloat(text, 64); err != nil || !(f > 0) || math.IsInf(f, 0) {
			return fmt.Errorf("--sim-speedup %s: it must be above 0", text)
		}
	}
	if len(p.BaseURL) > 0 || p.Given("host") || p.Given("port") {
		return errors.New("--sim (predict: --engine) brings a server of its own: it goes without --base-url, --host and --port")
	}
	for _, name := range p.Values("sim") {
		mix, err := step.LoadMix(name)
		if err != nil {
			return err
		}
		if (len(mix) > 1 || mix[0].Count > 1) && (!p.Virtual || p.Given("replicas")) {
			return fmt.Errorf("%s: several engines are for runs in virtual time, and go without --replicas", name)
		}
	}
	return nil
}

// checkVirtual says what does not go with a run in virtual time, or without one.
func checkVirtual(p *plan.Plan) error {
	for _, o := range p.Options() {
		if o.Group == "Fleet" && o.Given() && !p.Virtual {
			return fmt.Errorf("--%s is for runs in virtual time: add --virtual and --sim, or leave it out", o.Name)
		}
	}
	switch {
	case p.Virtual && p.Sim == "":
		return errors.New("--virtual computes what an engine would do, and a server is named: leave the server out, and name an engine with --sim (predict: --engine)")
	case p.Virtual && p.Given("sim-speedup"):
		return errors.New("--virtual goes as fast as it can: it goes without --sim-speedup")
	}
	return nil
}

// checkGate reads the conditions of --fail-if.
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

// Conditions are those of --fail-if; none if it is empty. junit is the file of --junit.
func Conditions(failIf, junit string) ([]metric.Condition, error) {
	switch {
	case failIf == "" && junit != "":
		return nil, errors.New("--junit writes the conditions of --fail-if: give both")
	case failIf == "":
		return nil, nil
	}
	conditions, err := metric.ParseConditions(failIf)
	if err != nil {
		return nil, fmt.Errorf("--fail-if: %w", err)
	}
	return conditions, nil
}

// checkPublish checks the options that publish figures while the run goes on.
func checkPublish(p *plan.Plan) error {
	if p.MetricsListen == "" && p.OTLP == "" {
		if len(p.OTLPHeaders) > 0 {
			return errors.New("--otlp-header goes with --otlp-endpoint")
		}
		return nil
	}
	if p.Virtual {
		return errors.New("--metrics-listen and --otlp-endpoint show a run as it goes on, and a predicted one takes no time: leave them out, and use --report openmetrics")
	}
	if _, err := otlpHeaders(p.OTLPHeaders); err != nil {
		return err
	}
	if p.OTLP != "" {
		if _, err := publish.CollectorURL(p.OTLP); err != nil {
			return fmt.Errorf("--otlp-endpoint: %w", err)
		}
	}
	return nil
}

// checkResults checks the options of reports and result files.
func checkResults(p *plan.Plan) error {
	for _, m := range p.Metadata {
		if !strings.Contains(m, "=") {
			return fmt.Errorf("--metadata %q: write KEY=VALUE", m)
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
		return errors.New("--save-detailed goes with --save-result or --append-result")
	}
	return nil
}

// checkPlaces complains about places where nothing can be written, before
// anything is measured that could then not be kept. It leaves nothing behind.
func checkPlaces(p *plan.Plan) error {
	if err := Writable(p.RunsDir); err != nil {
		return fmt.Errorf("--runs-dir: %w", err)
	}
	if err := checkOrders(p); err != nil {
		return err
	}
	if !p.SaveResult && !p.AppendResult && !p.PlotTimeline {
		return nil
	}
	file := filepath.Join(p.ResultDir, p.ResultFilename)
	if info, err := os.Stat(file); p.ResultFilename != "" && err == nil && info.IsDir() {
		return fmt.Errorf("--result-filename: %s is a directory: name a file", file)
	}
	dir := p.ResultDir
	if p.ResultFilename != "" {
		dir = filepath.Dir(file)
	}
	if err := Writable(dir); err != nil {
		return fmt.Errorf("--result-dir: %w", err)
	}
	return nil
}

// checkOrders complains about places where no report can be written.
func checkOrders(p *plan.Plan) error {
	list, err := Orders(p.Reports)
	if err != nil {
		return err
	}
	for i := range list {
		path := list[i].Path
		if path == "" || path == StandardOutput {
			continue
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return fmt.Errorf("--report: %s is a directory: name a file", path)
		}
		if err := Writable(filepath.Dir(path)); err != nil {
			return fmt.Errorf("--report: %w", err)
		}
	}
	return nil
}

// Writable says why no file can be made in a directory, which need not be there yet.
func Writable(dir string) error {
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
		return fmt.Errorf("%s is not a directory: choose another place", dir)
	}
	f, err := os.CreateTemp(dir, ".tacho-*")
	if err != nil {
		return fmt.Errorf("nothing can be written in %s: %w", dir, err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}
