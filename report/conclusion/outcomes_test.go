package conclusion_test

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/archive"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

const ms = time.Millisecond

// A load is one level computed by measure.
type load struct {
	flags   string // its name, such as "--request-rate 10"
	rate    float64
	users   int
	n       int
	ttft    time.Duration
	slower  time.Duration // added to the latency with each request
	cold    int           // number of first requests whose TTFT is six times as long
	failing int           // n > 0: one in n requests fails; n < 0: all but one in -n fail
	cause   tacho.Cause   // cause of the failures
	slo     float64       // limit of TTFT, in ms
	set     func(*metric.Config)
	verdict metric.Severity // replaces the verdict of the rules
}

// answer is the time from the first token to the last.
const answer = 20 * ms

// sent returns when request i is sent: at a rate, in a closed loop, or in a burst.
func (l *load) sent(i int) time.Duration {
	switch {
	case l.rate > 0:
		return time.Duration(float64(i) / l.rate * 1e9)
	case l.users > 0:
		return time.Duration(i/l.users)*(l.ttft+4*answer/5+13*ms/10) + time.Duration(i%l.users)*ms/10 // after the slowest request of the previous round
	}
	return time.Duration(i) * ms / 100
}

func (l *load) record(i int) *tacho.Record {
	r := &tacho.Record{Session: uint64(i), Timeline: tacho.NewTimeline(l.sent(i)), Input: 100, Asked: 5}
	r.Slot, r.Start, r.Conn, r.Sent, r.Wrote, r.Head = r.Due, r.Due, r.Due, r.Due, r.Due, r.Due+ms
	if l.rate == 0 && l.users == 0 {
		r.Due = 0
	}
	r.Clock, r.Conns = tacho.KernelClock, 1
	at := r.Sent + l.ttft + time.Duration(i)*l.slower + time.Duration(i*7919%13)*ms/10
	if i < l.cold {
		at += 5 * l.ttft
	}
	for range 5 {
		r.Events = append(r.Events, tacho.Event{At: at, Tokens: 1})
		at += answer / 5
	}
	r.End, r.Output, r.OutputFrom = r.Last(), 5, tacho.FromUsage
	r.Usage = &tacho.Usage{Prompt: 100, Completion: 5}
	if l.failing > 0 && i%l.failing == 0 || l.failing < 0 && i%l.failing != 0 {
		r.Events, r.Output, r.Usage = nil, 0, nil
		r.Failure = &tacho.Failure{Cause: cmp.Or(l.cause, tacho.Status), Status: 503, Message: "busy"}
	}
	return r
}

func (l load) measure(index int) outcome.Level {
	c := metric.DefaultConfig()
	c.RequestRate, c.MaxConcurrency = l.rate, l.users
	if l.slo > 0 {
		c.Goodput = []metric.SLO{{Metric: "ttft", LimitMillis: l.slo}}
	}
	if l.set != nil {
		l.set(&c)
	}
	sum := metric.Accumulator{Goodput: c.Goodput}
	for i := range l.n {
		if err := sum.Add(l.record(i)); err != nil {
			panic(err)
		}
	}
	out := outcome.Level{Setting: outcome.Setting{Index: index, Name: l.flags, Rate: l.rate, Concurrency: l.users}, Summary: sum.Summary(c)}
	for _, f := range out.Flags() {
		out.Value = f.Value
		out.Coordinates = append(out.Coordinates, f)
	}
	if l.verdict != "" {
		out.Summary.Verdict = metric.Verdict{Severity: l.verdict, Reasons: []metric.Reason{{Code: "lag-p99", Severity: l.verdict, Text: "the client was late by 40 ms: give it more CPU"}}}
	}
	return out
}

func run(loads ...load) outcome.Run {
	out := outcome.Run{About: outcome.About{Tool: "tacho", Model: "tiny", Backend: "vllm"}}
	for i, l := range loads {
		out.Levels = append(out.Levels, l.measure(i))
	}
	return out
}

// rates are levels of an open loop. From level behind on, the server falls behind.
func rates(change func(i int, l *load), behind int, values ...float64) outcome.Run {
	var all []load
	for i, v := range values {
		l := load{flags: fmt.Sprintf("--request-rate %g", v), rate: v, n: 400, ttft: 30 * ms}
		if i >= behind {
			l.slower = time.Duration(0.5 / v * 1e9)
		}
		if change != nil {
			change(i, &l)
		}
		all = append(all, l)
	}
	return run(all...)
}

// users are levels of a closed loop. The server saturates at concurrency 8.
func users(change func(i int, l *load), values ...int) outcome.Run {
	var all []load
	for i, v := range values {
		l := load{flags: fmt.Sprintf("--max-concurrency %d", v), users: v, n: 50 * v, ttft: 30 * ms}
		if v > 8 {
			l.ttft = time.Duration(v)*(l.ttft+answer+ms)/8 - answer - ms
		}
		if change != nil {
			change(i, &l)
		}
		all = append(all, l)
	}
	return run(all...)
}

// verdicts sets the verdict of each level.
func verdicts(list ...metric.Severity) func(int, *load) {
	return func(i int, l *load) { l.verdict = list[i] }
}

// noted adds the sentence of a search for the limit. The first probe held.
func noted(r outcome.Run) outcome.Run {
	r.HeldProbe = new(0)
	r.Notes = append(r.Notes, outcome.LimitNote(found))
	return r
}

// simulated makes the simulated engine the server of a run.
func simulated(r outcome.Run) outcome.Run {
	r.URLs = []string{outcome.SimulatedEngine + "vllm-8b-h100"}
	return r
}

// A namedRun is a run and its name in the golden file.
type namedRun struct {
	name string
	run  outcome.Run
}

const (
	ok, bad, poor = metric.Valid, metric.Invalid, metric.Degraded
	found         = "Holds ttft:p99<500ms up to 14.2 req/s (13.6 to 14.8), ttft p99 misses it first."
)

// measured are runs of tacho, one for each conclusion that reads differently.
func measured() []namedRun {
	slo := func(limit float64) func(int, *load) { return func(_ int, l *load) { l.slo = limit } }
	repeats := users(nil, 4, 4, 4)
	for i := range repeats.Levels {
		l := &repeats.Levels[i]
		l.Repeat, l.Name, l.Coordinates = i+1, fmt.Sprintf("repeat %d", i+1), nil
	}
	var grid, sweep []load
	for _, length := range []int{100, 200} {
		for _, v := range []int{2, 4} {
			grid = append(grid, load{flags: fmt.Sprintf("--max-concurrency %d --random-input-len %d", v, length), users: v, n: 50 * v, ttft: time.Duration(length) * ms / 4})
		}
		sweep = append(sweep, load{flags: fmt.Sprintf("--max-num-seqs %d", length), users: 4, n: 200, ttft: time.Duration(300-length) * ms / 4})
	}
	var many []int
	for v := range 40 {
		many = append(many, 1001+v)
	}
	swept := rates(nil, 2, 5, 10, 20)
	swept.Swept = "request-rate"
	predicted := func(_ int, l *load) { l.set = func(c *metric.Config) { c.Predicted = true } }
	return []namedRun{
		{"one level", run(load{rate: 20, n: 400, ttft: 30 * ms})},
		{"rates, all kept", rates(nil, 9, 5, 10, 20)},
		{"rates, falls behind", rates(nil, 2, 5, 10, 20)},
		{"rates, falls behind at once", rates(nil, 0, 5, 10, 20)},
		{"concurrency, knee", users(nil, 2, 8, 16, 32)},
		{"concurrency, SLO missed above a load", users(slo(80), 2, 8, 16, 32)},
		{"concurrency, SLO held", users(slo(500), 2, 8, 16, 32)},
		{"concurrency, SLO missed", users(slo(10), 2, 8, 16)},
		{"concurrency, SLO broken by failures", users(func(i int, l *load) {
			if l.slo = 500; i == 2 {
				l.failing = 20
			}
		}, 2, 8, 16)},
		{"bursts", run(load{flags: "--num-prompts 4", n: 4, ttft: 30 * ms}, load{flags: "--num-prompts 200", n: 200, ttft: 90 * ms})},
		{"one request", run(load{n: 1, ttft: 30 * ms})},
		{"burst of few", run(load{n: 20, ttft: 90 * ms})},
		{"bursts of few", run(load{flags: "--num-prompts 1", n: 1, ttft: 30 * ms}, load{flags: "--num-prompts 4", n: 4, ttft: 90 * ms})},
		{"bursts of few, SLO", run(load{flags: "--num-prompts 1", n: 1, ttft: 30 * ms, slo: 500}, load{flags: "--num-prompts 4", n: 4, ttft: 90 * ms, slo: 500})},
		{"concurrency, the highest with few requests", users(func(i int, l *load) { l.n = 60 }, 2, 8, 64)},
		{"one burst", run(load{n: 200, ttft: 90 * ms})},
		{"all INVALID", users(verdicts(bad, bad, bad), 2, 4, 8)},
		{"one INVALID", users(verdicts(ok, bad, ok, ok), 2, 4, 8, 16)},
		{"the highest INVALID", users(verdicts(ok, ok, bad), 2, 4, 8)},
		{"40 INVALID levels", users(func(i int, l *load) {
			l.n = 40
			if i > 0 {
				l.verdict = bad
			}
		}, append([]int{1}, many...)...)},
		{"DEGRADED", users(verdicts(ok, poor, ok, ok), 2, 4, 8, 16)},
		{"PREDICTED", rates(predicted, 2, 5, 10, 20)},
		{"failures", users(func(i int, l *load) { l.failing = 50 }, 2, 8, 16)},
		{"half refused", run(load{rate: 20, n: 400, ttft: 30 * ms, failing: 2})},
		{"more than half refused", run(load{rate: 20, n: 400, ttft: 30 * ms, failing: -3})},
		{"one of many refused", run(load{rate: 2000, n: 20_000, ttft: 30 * ms, failing: 20_000})},
		{"simulated", simulated(rates(nil, 2, 5, 10, 20))},
		{"simulated, DEGRADED", simulated(users(verdicts(ok, poor, ok), 2, 4, 8))},
		{"simulated, INVALID", simulated(run(load{rate: 20, n: 400, ttft: 30 * ms, verdict: bad}))},
		{"INVALID pair", users(verdicts(bad, bad), 2, 4)},
		{"failures above the limit", users(func(i int, l *load) {
			if i == 2 {
				l.failing = 4
			}
		}, 2, 8, 16)},
		{"no success", run(load{rate: 20, n: 40, ttft: 30 * ms, failing: 1})},
		{"interrupted", run(load{rate: 20, n: 40, ttft: 30 * ms, failing: 4, cause: tacho.Canceled, set: func(c *metric.Config) { c.Interrupted = true }})},
		{"interrupted before an answer", run(load{rate: 20, n: 40, ttft: 30 * ms, failing: 1, cause: tacho.Canceled, set: func(c *metric.Config) { c.Interrupted = true }})},
		{"repeats", repeats},
		{"grid", run(grid...)},
		{"few requests", run(load{rate: 20, n: 12, ttft: 30 * ms})},
		{"few requests, levels", users(func(_ int, l *load) { l.n = 10 }, 1, 2, 4)},
		{"few requests, SLO", users(func(_ int, l *load) { l.n, l.slo = 10, 500 }, 1, 2, 4)},
		{"slow start", run(load{flags: "--max-concurrency 4", users: 4, n: 200, ttft: 30 * ms, cold: 20})},
		{"slow start, levels", users(func(i int, l *load) { l.cold = 20 }, 4, 8)},
		{"unsent", run(load{rate: 20, n: 400, ttft: 30 * ms, set: func(c *metric.Config) { c.Unsent = 9 }})},
		{"a rate and all at once", run(load{flags: "--request-rate 2", rate: 2, n: 40, ttft: 30 * ms}, load{flags: "--request-rate inf", n: 20, ttft: 300 * ms})},
		{"rates and all at once", run(load{flags: "--request-rate inf", n: 200, ttft: 300 * ms}, load{flags: "--request-rate 2", rate: 2, n: 200, ttft: 30 * ms}, load{flags: "--request-rate 4", rate: 4, n: 200, ttft: 30 * ms})},
		{"sweep of rates", swept},
		{"sweep of servers", run(sweep...)},
		{"find", noted(rates(verdicts(ok, ok, ok), 2, 5, 10, 20))},
		{"find, DEGRADED", noted(rates(verdicts(ok, poor, ok), 2, 5, 10, 20))},
		{"find, one INVALID", noted(rates(verdicts(ok, bad, ok), 2, 5, 10, 20))},
		{"find, all INVALID", noted(rates(verdicts(bad, bad, bad), 2, 5, 10, 20))},
		{"nothing measured", outcome.Run{Levels: []outcome.Level{{}}}},
	}
}

// others are the results of other tools in the repository.
func others(t *testing.T) (out []namedRun) {
	t.Helper()
	var names []string
	for _, pattern := range []string{"../../internal/archive/testdata/*/*", "../../testdata/seeds/*.txt"} {
		more, err := filepath.Glob(pattern)
		if err != nil || len(more) == 0 {
			t.Fatal(pattern, err)
		}
		names = append(names, more...)
	}
	folders := map[string][]string{}
	for _, name := range names {
		key := strings.TrimSuffix(filepath.Dir(name), "/")
		if filepath.Ext(name) == ".txt" {
			key = name // each seed is a result
		}
		folders[key] = append(folders[key], name)
	}
	for key, files := range folders {
		runs, damaged := archive.Results(files)
		if len(damaged) > 0 {
			t.Fatal(key, damaged)
		}
		for i := range runs {
			runs[i].Records = nil
			out = append(out, namedRun{fmt.Sprintf("%s, result %d", filepath.Base(key), i+1), runs[i]})
		}
	}
	slices.SortFunc(out, func(a, b namedRun) int { return strings.Compare(a.name, b.name) })
	return out
}
