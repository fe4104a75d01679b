package bench_test

import (
	"context"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/workload"
)

// Every group of options is checked before anything is sent or written.
func TestCheck(t *testing.T) {
	for _, c := range []struct{ option, value, want string }{
		{"sim-speedup", "2", "--sim-speedup needs a simulated engine"},
		{"virtual", "true", "--virtual simulates an engine"},
		{"request-rate", "-1", "request rate -1 must be above 0"},
		{"dataset-path", "no/such/file", "--dataset-path"},
		{"tokenizer", "./no/such/file", "--tokenizer"},
		{"fail-if", "ttft", "--fail-if"},
		{"junit", "gate.xml", "--junit needs --fail-if"},
		{"otlp-endpoint", "127.0.0.1:4318", "--otlp-endpoint"},
		{"traceparent", "1.5", "want a fraction"},
		{"metadata", "word", "--metadata"},
		{"report-style", "nobody", "--report-style"},
		{"dialect", "nobody", "--dialect"},
		{"save-detailed", "true", "--save-detailed needs"},
		{"report", "nobody", "--report"},
	} {
		t.Run(c.option, func(t *testing.T) {
			p := plan.Default()
			p.RunsDir = filepath.Join(t.TempDir(), "runs")
			err := p.Set(c.option, c.value)
			if err == nil {
				err = bench.Check(&p, nil)
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			if _, err := os.Stat(p.RunsDir); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("the check left something behind: %v", err)
			}
		})
	}
}

// Run measures and stores a plan, and continues an interrupted run.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		p := plan.Default()
		p.BaseURL, p.NumPrompts, p.NoTrial = []string{serve(t, &network)}, 5, true
		p.RandomInputLen, p.RandomOutputLen = workload.Fixed(20), workload.Fixed(5)
		p.RunsDir, p.SaveResult, p.ResultDir = t.TempDir(), true, t.TempDir()
		must.Do(t, p.Set("request-rate", "10,20"))
		var dir string
		ctx, stop := context.WithCancel(t.Context())
		o := bench.Options{Env: run.Env{Dial: network.Dial, Observer: &firstLevel{dir: &dir, ended: stop}}}
		o.Env.Serve = func(*plan.Plan, uint64) (func(), error) { return func() {}, nil }
		some, err := bench.Run(ctx, p, o)
		if err == nil || len(some.Levels) != 1 {
			t.Fatalf("%d levels and %v, want one level and an error", len(some.Levels), err)
		}
		if !strings.Contains(filepath.Base(dir), "-10..20rps-") {
			t.Errorf("the run directory %s does not say the load", dir)
		}
		o.Resume = dir
		all, err := bench.Run(t.Context(), plan.Default(), o)
		if err != nil || len(all.Levels) != 2 {
			t.Fatalf("%d levels and %v, want two", len(all.Levels), err)
		}
		for _, l := range all.Levels {
			if l.Summary.Completed != 5 {
				t.Errorf("%s: %d requests", l.Name, l.Summary.Completed)
			}
		}
		for _, name := range []string{"report.html", "report.txt", "summary.json"} {
			if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
				t.Error(err)
			}
		}
		if files, _ := filepath.Glob(filepath.Join(p.ResultDir, "*.json")); len(files) != 2 {
			t.Errorf("result files: %v", files)
		}
	})
}

// A firstLevel notes the run directory and calls ended after a level.
type firstLevel struct {
	live.NopObserver
	dir   *string
	ended func()
}

// Message implements live.Observer.
func (o *firstLevel) Message(text string) {
	if at, ok := strings.CutPrefix(text, "Run directory: "); ok {
		*o.dir = at
	}
}

// LevelEnded implements live.Observer.
func (o *firstLevel) LevelEnded(*outcome.Level) { o.ended() }

// If a server does not start, the previous runner stays, because it describes
// the results.
func TestConnectFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		p := plan.Default()
		p.BaseURL, p.NumPrompts, p.RunsDir = []string{serve(t, &network)}, 5, t.TempDir()
		b, err := bench.Open(t.Context(), p, bench.Options{Env: run.Env{Dial: network.Dial}})
		must.Do(t, err)
		defer b.Release(t.Context())
		before, failed := b.Runner, errors.New("it does not start")
		err = b.Connect(t.Context(), p, func(*plan.Plan, uint64) (func(), error) { return nil, failed })
		if !errors.Is(err, failed) || b.Runner != before {
			t.Errorf("%v, and the runner is %p, want %p", err, b.Runner, before)
		}
	})
}

// serve runs a simulated server in memory.
func serve(t *testing.T, network *memnet.Network) string {
	t.Helper()
	engine := must.Get(sim.New(sim.Options{TTFT: 5 * time.Millisecond, ITL: time.Millisecond, Model: "tiny"}))(t)
	l := must.Get(network.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	server := &http.Server{Handler: engine, ReadHeaderTimeout: time.Hour}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = errors.Join(server.Close(), engine.Close()) })
	return "http://" + l.Addr().String()
}
