package truth

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/sim/step"
)

// pausing returns a constructor of simulated engines that stand still at times.
func pausing(name string, pauses step.Pauses) func() func(seed uint64) predict.Server {
	return func() func(seed uint64) predict.Server {
		return func(seed uint64) predict.Server {
			profile, err := step.Load(name)
			if err != nil {
				panic(err)
			}
			profile.Pauses = pauses
			policy, err := route.Find("round-robin")
			if err != nil {
				panic(err)
			}
			fleet, err := predict.NewFleet(predict.FleetPlan{Profile: profile, Replicas: 1, Policy: policy, Seed: seed})
			if err != nil {
				panic(err)
			}
			return fleet
		}
	}
}

// A hunt counts true pauses of servers and those in reports.
type hunt struct {
	pauses, found, alarms, prefills int
	off                             float64 // sum of the differences in length, in milliseconds
	runs, rhythms                   int     // of runs with at least three true pauses: with the right rhythm
}

func (h *hunt) add(o hunt) {
	h.pauses, h.found, h.alarms, h.prefills = h.pauses+o.pauses, h.found+o.found, h.alarms+o.alarms, h.prefills+o.prefills
	h.off, h.runs, h.rhythms = h.off+o.off, h.runs+o.runs, h.rhythms+o.rhythms
}

// pauseRun runs an engine for some seconds and compares the pauses of the report with the true ones.
func pauseRun(t *testing.T, engine string, p step.Pauses, rate, seconds float64, seed uint64) (h hunt) {
	t.Helper()
	c := Case{Servers: pausing(engine, p), Input: "lognormal(600,0.8)[16,8000]", Output: "lognormal(150,0.6)[4,1500]"}
	sum := &sums{}
	must.Do(t, c.run(rate, int(rate*seconds), seed, sum))
	config := metric.DefaultConfig()
	config.RequestRate = rate
	s := sum.Summary(config)
	if s.Pauses == nil {
		s.Pauses = &metric.ServerPauses{}
	}
	h.prefills = s.Pauses.PrefillStops
	var reported []metric.Pause
	for _, one := range s.Pauses.List {
		if one.Kind == metric.ServerPause {
			reported = append(reported, one)
		}
	}
	h.alarms = len(reported)
	for at := p.EveryS; p.EveryS > 0 && at < s.DurationS; at += p.EveryS {
		h.pauses++
		matched := false
		for _, one := range reported {
			from, to := max(one.AtS, at), min(one.AtS+one.Millis/1e3, at+p.LengthS)
			if to-from < p.LengthS/2 {
				continue
			}
			h.alarms--
			if !matched {
				matched = true
				h.found++
				h.off += max(one.Millis-1e3*p.LengthS, 1e3*p.LengthS-one.Millis)
			}
		}
	}
	if h.pauses >= 3 {
		h.runs = 1
		if every := s.Pauses.EveryS; every > 0.9*p.EveryS && every < 1.1*p.EveryS {
			h.rhythms = 1
		}
	}
	return h
}

// Pauses of an engine are found, and nothing else is called one. PAUSES=1 runs the table of docs/log/pauses.md.
func TestPausesOfServers(t *testing.T) {
	const missedShare, alarmsPerHour = 0.1, 2
	table := os.Getenv("PAUSES") != ""
	seeds, seconds := uint64(1), 65.0
	lengths, rhythms := []float64{0.2, 0.5}, []float64{20}
	if table {
		seeds, lengths, rhythms = 10, []float64{0.1, 0.2, 0.5, 1, 2}, []float64{5, 20}
		if n, err := strconv.ParseUint(os.Getenv("SEEDS"), 10, 64); err == nil {
			seeds = n
		}
	}
	hours := 0.0
	alarms := 0
	run := func(engine string, p step.Pauses, rate float64, first uint64) (sum hunt) {
		for seed := range seeds {
			sum.add(pauseRun(t, engine, p, rate, seconds, first+seed))
			hours += seconds / time.Hour.Seconds()
		}
		alarms += sum.alarms
		return sum
	}
	for _, engine := range []struct {
		name  string
		rates []float64 // low, middle, high, and more than it serves
	}{
		{"vllm-8b-h100", []float64{2, 10, 22, 40}},
		{"sglang-70b-h100x4", []float64{0.5, 3, 7, 14}},
	} {
		for k, rate := range engine.rates {
			load := []string{"low", "half", "high", "overload"}[k]
			still := run(engine.name, step.Pauses{}, rate, 46_000)
			t.Logf("%s, %s, no pause: false alarms %d, prefills %d", engine.name, load, still.alarms, still.prefills)
			for _, length := range lengths {
				var text strings.Builder
				fmt.Fprintf(&text, "%s, %s, %v s:", engine.name, load, length)
				for _, every := range rhythms {
					sum := run(engine.name, step.Pauses{EveryS: every, LengthS: length}, rate, 46_100)
					fmt.Fprintf(&text, " | each %v s: found %d of %d, off %.0f ms, rhythm %d of %d, false alarms %d",
						every, sum.found, sum.pauses, sum.off/float64(max(sum.found, 1)), sum.rhythms, sum.runs, sum.alarms)
					// An engine without work pauses without a witness, and an overloaded one hides short pauses among its prefills.
					if missed := sum.pauses - sum.found; length >= 0.5 && (load == "half" || load == "high") && float64(missed) > missedShare*float64(sum.pauses) {
						t.Errorf("%s, %s, %v s each %v s: found %d of %d pauses", engine.name, load, length, every, sum.found, sum.pauses)
					}
				}
				t.Log(text.String())
			}
		}
	}
	if t.Logf("%d false alarms in %.1f hours", alarms, hours); float64(alarms) > max(alarmsPerHour*hours, 1) {
		t.Errorf("%d false alarms in %.1f hours", alarms, hours)
	}
}
