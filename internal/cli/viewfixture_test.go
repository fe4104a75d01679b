package cli

import (
	"fmt"
	"io"
	"math"
	"os"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/terminal"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// hostile is text of a malicious server: control sequences, newlines, wide
// characters and excessive length.
var hostile = "\x1b[2J\x1b[31mno\x07 room\r\nfor 你好，世界 e\u0301\U0001f469\u200d\U0001f680 \u202etxt \x9b31m and so on, and on"

// newView returns the view of a run with constant values.
func newView(env *Env, to io.Writer) *terminal.Progress {
	env.altScreen, env.again, env.keeps, env.reads = terminal.NewAltScreen(to), &atomic.Bool{}, &atomic.Bool{}, &atomic.Bool{}
	env.keeps.Store(true)
	env.Stderr = &terminal.Writer{To: env.altScreen.Before(to, true), Sweep: env.secrets.Sweep}
	o := progressOptions(env, &plan.Plan{Results: plan.Results{Progress: plan.AutoProgress}})
	o.Keyboard, _ = os.Open(os.DevNull) // not a terminal, so no key is read
	p := terminal.NewProgress(o)
	feedView(&p.State)
	return p
}

// sayHostile prints two lines while the view is shown.
func sayHostile(env *Env) {
	_, _ = fmt.Fprintf(env.Stderr, "Run directory: runs/20260301-120000-vllm\n%s\n", hostile)
}

// feedView adds two finished levels and one running level to the live state.
func feedView(b *live.State) {
	b.Describe(live.About{Server: "http://127.0.0.1:8000", Model: "meta-llama/Llama-3.1-8B-Instruct", Dataset: "random"})
	level := live.Level{Of: 5, Sessions: 640}
	for i, rate := range []float64{8, 16, 32} {
		level.Number, level.Rate, level.Name = i+1, rate, fmt.Sprintf("--request-rate %v", rate)
		level.LaterS = new(40 - 20*rate/32)
		b.Begin(level)
		if i < 2 {
			feedLevel(b, rate)
			b.End(past(rate))
		}
	}
	waves := func(i int) float64 { return 1 + math.Sin(float64(i)/7) }
	queued := 0.0
	f := &live.Feed{Server: func() *live.Server {
		return &live.Server{Running: new(64.0), Queued: new(queued), KVShare: new(0.83), AgeS: new(0.4)}
	}}
	for i := range 30 {
		queued = math.Round(10 * waves(i))
		for k := range 16 {
			f.Counts.Started.Add(1)
			f.Token(1, true, time.Duration(float64(40+4*k)*waves(i)*1e6))
			for range 30 {
				f.Token(1, false, time.Duration((8+waves(i))*1e6))
			}
			if k >= 14 {
				continue
			}
			at := time.Duration(i)*live.Period + time.Duration(k)*30*time.Millisecond
			rec := &tacho.Record{Timeline: tacho.Timeline{Due: at, Slot: at, Sent: at + time.Millisecond, End: at + time.Second, Events: tacho.Events{{At: at + 50*time.Millisecond, Tokens: 1}, {At: at + time.Duration(300+100*waves(i))*time.Millisecond, Tokens: 30}}}, Output: 31}
			if k == 13 && i%5 == 0 {
				rec.Failure = &tacho.Failure{Cause: tacho.Status, Status: 503, Message: hostile}
				f.Counts.Failed.Add(1)
			}
			if k == 12 && i == 20 {
				rec.Failure = &tacho.Failure{Cause: tacho.Reset, Message: "connection reset by peer"}
				f.Counts.Failed.Add(1)
			}
			f.Counts.Finished.Add(1)
			f.Counts.Sessions.Add(1)
			f.Add(rec)
		}
		b.Add(f.Tick(time.Duration(i+1) * live.Period))
	}
}

// feedLevel adds the ticks of a level without failures.
func feedLevel(b *live.State, rate float64) {
	f := &live.Feed{}
	for i := range 12 {
		for k := range int(rate / 2) {
			at := time.Duration(i)*live.Period + time.Duration(k)*time.Millisecond
			rec := &tacho.Record{Timeline: tacho.NewTimeline(at), Output: 11}
			rec.Slot, rec.Sent, rec.End = at, at, at+time.Duration(100+rate)*time.Millisecond
			rec.Events = tacho.Events{{At: at + time.Duration(3*rate)*time.Millisecond, Tokens: 1}, {At: rec.End, Tokens: 10}}
			f.Sent()
			f.Computed(rec)
		}
		b.Add(f.Tick(time.Duration(i+1) * live.Period))
	}
}

// past returns a finished level.
func past(rate float64) *outcome.Level {
	dist := func(m *metric.Metric, v float64) metric.Dist {
		return metric.Dist{Name: m.Name, N: 1, Stats: &metric.Stats{Percentiles: []metric.Percentile{{P: 99, Value: v}}}}
	}
	return &outcome.Level{Summary: metric.Summary{
		Counts: metric.Counts{DurationS: 20, Completed: 100}, Throughput: &metric.Throughput{RequestsPerS: rate - 0.1, OutputTokensPerS: 128 * rate},
		Dists: metric.Dists{dist(metric.TTFT, 5*rate), dist(metric.ITL, 6+rate/8), dist(metric.TPOT, 5+rate/8), dist(metric.E2EL, 900+10*rate)}, Verdict: metric.Verdict{Severity: metric.Valid},
	}}
}
