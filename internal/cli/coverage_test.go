package cli_test

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// varied are lengths with a realistic distribution.
var varied = []string{"--random-input-len", "lognormal(600,0.8)[16,8000]", "--random-output-len", "lognormal(150,0.6)[4,1500]"}

// A coverageRow is a load on a simulated engine.
type coverageRow struct {
	name, engine string
	requests     int
	args         []string
}

// summaryOf returns the summary of a run in virtual time.
func (r coverageRow) summaryOf(t *testing.T, seed, requests int) *metric.Summary {
	t.Helper()
	dir := t.TempDir()
	args := append([]string{"bench", "--virtual", "--sim", r.engine, "--seed", fmt.Sprint(seed), "--num-prompts", fmt.Sprint(requests), "--runs-dir", dir}, r.args...)
	if code, _, errs := inside(nil, args...); code != 0 {
		t.Fatalf("%v: exit code %d: %s", args, code, errs)
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "summary.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%d summaries: %v", len(files), err)
	}
	raw := must.Get(os.ReadFile(files[0]))(t)
	var all struct {
		Runs []struct {
			Levels []struct {
				Summary metric.Summary `json:"summary"`
			} `json:"levels"`
		} `json:"runs"`
	}
	must.Do(t, json.Unmarshal(raw, &all))
	must.Do(t, os.RemoveAll(dir))
	return &all.Runs[0].Levels[0].Summary
}

// figuresOf returns the values of a summary that have confidence intervals, by
// name.
func figuresOf(s *metric.Summary) (values map[string]float64, intervals map[string]*metric.Interval) {
	values, intervals = map[string]float64{}, map[string]*metric.Interval{}
	for _, m := range metric.Classic {
		stats := s.Dist(m).Stats
		values["mean "+m.Name], intervals["mean "+m.Name] = stats.Mean, stats.MeanInterval
		for _, p := range []float64{50, 90, 99} {
			name := fmt.Sprintf("p%v %s", p, m.Name)
			values[name], intervals[name] = stats.Percentile(p), stats.At(p).Interval
		}
	}
	if settled := s.Steady.Settled; settled != nil {
		values["req/s"], intervals["req/s"] = settled.RequestsPerS, settled.RequestsInterval
		values["tok/s"], intervals["tok/s"] = settled.OutputTokensPerS, settled.OutputTokensInterval
	}
	return values, intervals
}

// A held counts the runs with an interval of a value, and the intervals that
// contain the true value.
type held struct{ given, held, low int }

// cover counts how often intervals of runs contain the values of long runs.
func (r coverageRow) cover(t *testing.T, runs, long, times, seed int) map[string]*held {
	t.Helper()
	truth, out := map[string]float64{}, map[string]*held{}
	for i := range times {
		values, _ := figuresOf(r.summaryOf(t, seed+i, long))
		for name, v := range values {
			truth[name] += v / float64(times)
		}
	}
	for i := range runs {
		_, intervals := figuresOf(r.summaryOf(t, seed+times+i, r.requests))
		for name, in := range intervals {
			h := out[name]
			if h == nil {
				h = &held{}
				out[name] = h
			}
			switch {
			case in.Low == nil:
			case *in.Low <= truth[name] && truth[name] <= *in.High:
				h.given, h.held = h.given+1, h.held+1
			case *in.High < truth[name]:
				h.given, h.low = h.given+1, h.low+1
			default:
				h.given++
			}
		}
	}
	return out
}

func (h *held) share() float64 { return float64(h.held) / math.Max(float64(h.given), 1) }

// Confidence intervals of a run near the limit contain the steady state,
// although the server is empty at the start and the end: at least four of five
// in these few runs. make test-coverage runs the full table.
func TestIntervalsHoldTheSteadyState(t *testing.T) {
	r := coverageRow{"h100 varied 21/s", "vllm-8b-h100", 2500, append([]string{"--request-rate", "21"}, varied...)}
	all := held{}
	for name, h := range r.cover(t, 10, 30_000, 1, 700) {
		switch name {
		case "mean ttft", "mean tpot", "mean itl", "mean e2el":
			all.given, all.held = all.given+h.given, all.held+h.held
		}
	}
	if all.given < 20 || all.share() < 0.8 {
		t.Errorf("%d of %d intervals hold the truth", all.held, all.given)
	}
}

// A run too short for its requests has no steady state and no interval.
func TestShortRunHasNoInterval(t *testing.T) {
	r := coverageRow{"h100 varied 23/s", "vllm-8b-h100", 1000, append([]string{"--request-rate", "23"}, varied...)}
	s := r.summaryOf(t, 701, r.requests)
	_, intervals := figuresOf(s)
	for name, in := range intervals {
		if in.Low != nil || in.Warning == "" {
			t.Errorf("%s: %+v", name, in)
		}
	}
	if s.Steady.WhyUnsettled == "" || s.Steady.Settled != nil {
		t.Errorf("%+v", s.Steady)
	}
}
