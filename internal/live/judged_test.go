package live

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// needsMore are the rules that a running level does not judge, because their input is known at the end,
// is not counted, or comes from the server's metrics page. The final verdict may have other reasons than
// the live view only by these rules.
var needsMore = []string{
	"interrupted", "ended-early", "unsent", "turns", "drift", "rate", "few-samples", "unsettled", "latency-trend", metric.SlowStart, // the end
	"burst-spread", "cache", "tokens-per-event", "idle-slots", "turnaround", // not counted
	"front-end", "held-back", "corrupted", "asleep", "paused", "evicted", "deferred", "cache-tier", "media-cache", // the metrics page
}

// paced returns n healthy requests sent at a rate.
func paced(n int, rate float64) (out []*tacho.Record) {
	rng := rand.New(rand.NewPCG(1, 2))
	const ms = time.Millisecond
	for i := range n {
		r := &tacho.Record{Session: uint64(i), Timeline: tacho.NewTimeline(time.Duration(float64(i) / rate * 1e9)), Input: 100, Asked: 20, Exact: true, Output: 20, OutputFrom: tacho.FromUsage}
		r.Slot, r.Start, r.Conn, r.Sent, r.Wrote, r.Head, r.Reused = r.Due, r.Due, r.Due, r.Due, r.Due, r.Due+ms, true
		r.Clock, r.Conns, r.Attempts, r.Usage = tacho.KernelClock, 1, 1, &tacho.Usage{Prompt: 100, Completion: 20}
		at := r.Sent + 50*ms + time.Duration(rng.IntN(int(30*ms)))
		for range 20 {
			r.Events = append(r.Events, tacho.Event{At: at, Tokens: 1})
			at += 10*ms + time.Duration(rng.IntN(int(2*ms)))
		}
		r.End = r.Last() + ms
		out = append(out, r)
	}
	return out
}

// The live view and the final verdict give the same reasons, without the rules of needsMore.
func TestLiveReasonsAreTheFinalOnes(t *testing.T) {
	each := func(every int, harm func(r *tacho.Record)) func([]*tacho.Record) {
		return func(all []*tacho.Record) {
			for i, r := range all {
				if i%every == 0 {
					harm(r)
				}
			}
		}
	}
	slack := func(d time.Duration) func(r *tacho.Record) {
		return func(r *tacho.Record) {
			for i := 2; i < len(r.Events); i += 5 {
				r.Events[i].Slack = tacho.SlackOf(d)
			}
		}
	}
	for name, c := range map[string]struct {
		harm func([]*tacho.Record)
		want []string // codes
	}{
		"healthy":           {func([]*tacho.Record) {}, nil},
		"failures":          {each(10, func(r *tacho.Record) { r.Failure = &tacho.Failure{Cause: tacho.Reset} }), []string{"failures"}},
		"all failed":        {each(1, func(r *tacho.Record) { r.Failure = &tacho.Failure{Cause: tacho.Reset} }), []string{"no-success", "failures"}},
		"sent again":        {each(10, func(r *tacho.Record) { r.Attempts = 2 }), []string{"resent"}},
		"reconnected":       {each(10, func(r *tacho.Record) { r.Conns = 2 }), []string{"retried"}},
		"prompts":           {each(1, func(r *tacho.Record) { r.Usage.Prompt = 200 }), []string{"prompt-count"}},
		"short":             {each(10, func(r *tacho.Record) { r.Asked = 30 }), []string{"output-count"}},
		"more events":       {each(1, func(r *tacho.Record) { r.Output, r.Exact = 15, false }), []string{"more-events"}},
		"by events":         {each(1, func(r *tacho.Record) { r.OutputFrom = tacho.FromEvents }), []string{"output-by-events"}},
		"late client":       {each(1, func(r *tacho.Record) { r.Sent += 100 * time.Millisecond }), []string{"lag-median", "lag-p99"}},
		"one late in fifty": {each(50, func(r *tacho.Record) { r.Sent += 100 * time.Millisecond }), []string{"lag-p99"}},
		"coalesced":         {each(1, slack(2*time.Millisecond)), []string{"coalesced"}},
		"barely coalesced":  {each(100, slack(2*time.Millisecond)), nil},
		"late reads":        {each(1, slack(60*time.Millisecond)), []string{"late-reads"}},
		"announced": {each(1, func(r *tacho.Record) {
			r.Opening, r.OutputFrom, r.Usage.Completion = tacho.Events{{At: r.Sent + time.Millisecond}}, tacho.FromTokenizer, 0
		}), []string{"first-token"}},
		"late first tokens": {each(1, func(r *tacho.Record) { r.Events[0].Slack = tacho.SlackOf(20 * time.Millisecond) }), []string{"late-reads", "ttft-bound"}},
		"slow writes":       {each(1, func(r *tacho.Record) { r.SentSlack = 10 * time.Millisecond }), []string{"ttft-bound"}},
		"clock steps":       {each(5, func(r *tacho.Record) { r.ClockStep = time.Second }), []string{"clock-step"}},
		"read clock":        {each(1, func(r *tacho.Record) { r.Clock = tacho.ReadClock }), []string{"read-clock"}},
		"buffered": {each(1, func(r *tacho.Record) {
			for i := range r.Events {
				r.Events[i].At = r.Last()
			}
		}), []string{"buffered"}},
		"queue": {func(all []*tacho.Record) {
			for i, r := range all { // each request takes 20 ms longer than the one before
				late := time.Duration(i) * 20 * time.Millisecond
				for k := range r.Events {
					r.Events[k].At += late
				}
				r.End += late
			}
		}, []string{"queue-growth"}},
	} {
		t.Run(name, func(t *testing.T) {
			const n, rate = 400, 40
			all := paced(n, rate)
			c.harm(all)
			config := metric.DefaultConfig()
			config.RequestRate = rate
			var sum metric.Accumulator
			var state State
			feed := &Feed{}
			state.Begin(Level{Number: 1, Rate: rate, Sessions: n, Config: config})
			var end time.Duration
			for _, r := range all {
				end = max(end, r.End)
				must.Do(t, sum.Add(r))
			}
			for at := Period; at <= end+Period; at += Period { // ticks of the level
				for _, r := range all {
					if r.Sent > at-Period && r.Sent <= at || at == Period && r.Sent <= 0 {
						feed.Counts.Started.Add(1)
					}
					if r.End > at-Period && r.End <= at {
						feed.Counts.Finished.Add(1)
						feed.Add(r)
					}
				}
				state.Add(feed.Tick(at))
			}
			final := sum.Summary(config)
			want, got := reasonsOf(metric.Judge(&final)), reasonsOf(state.Snapshot().Verdict)
			if !slices.IsSortedFunc(got, func(a, b string) int {
				return strings.Index(worst, strings.Fields(a)[1]) - strings.Index(worst, strings.Fields(b)[1])
			}) {
				t.Errorf("the worst reason is not the first one: %q", got)
			}
			slices.Sort(want)
			slices.Sort(got)
			slices.Sort(c.want)
			if !slices.Equal(got, want) || !slices.EqualFunc(got, c.want, func(reason, code string) bool { return strings.HasPrefix(reason, code+" ") }) {
				t.Errorf("the live view has the reasons %q, the final verdict %q; want %q", got, want, c.want)
			}
		})
	}
}

// A queue that grows is named before anything else, and a level is not called free of problems while its
// first requests are on their way.
func TestGrowingQueueIsNamed(t *testing.T) {
	const rate, takes = 40, 2 * time.Second
	all := paced(400, rate)
	for i, r := range all {
		r.End = r.Sent + takes + time.Duration(i)*20*time.Millisecond // the server finishes 22 requests/s
		if i%10 == 9 {
			r.Failure = &tacho.Failure{Cause: tacho.Status, Status: 500}
		}
	}
	var state State
	feed := &Feed{}
	config := metric.DefaultConfig()
	config.RequestRate = rate
	state.Begin(Level{Number: 1, Rate: rate, Sessions: len(all), Config: config})
	var said []string
	for at := Period; at <= 10*time.Second; at += Period {
		for _, r := range all {
			if r.Sent > at-Period && r.Sent <= at || at == Period && r.Sent <= 0 {
				feed.Counts.Started.Add(1)
			}
			if r.End > at-Period && r.End <= at {
				feed.Counts.Finished.Add(1)
				feed.Add(r)
			}
		}
		state.Add(feed.Tick(at))
		v := state.Snapshot().Verdict
		first := string(v.Severity)
		if len(v.Reasons) > 0 {
			first += " " + v.Reasons[0].Code
		}
		if len(said) == 0 || said[len(said)-1] != first {
			said = append(said, first)
		}
		if at == takes && (len(v.Reasons) == 0 || v.Reasons[0].Text != "80 requests are in flight, and the number still rises") {
			t.Errorf("after %v: %v", at, v)
		}
	}
	if want := []string{"NOT JUDGED too-early", "DEGRADED queue-growth"}; len(said) < 2 || said[0] != want[0] || said[len(said)-1] != want[1] {
		t.Errorf("the live view says %q, want %q at the beginning and at the end", said, want)
	}
	for _, words := range said {
		if !strings.HasSuffix(words, " too-early") && !strings.HasSuffix(words, " queue-growth") {
			t.Errorf("something else comes before the growing queue: %q", said)
		}
	}
}

const worst = "INVALID DEGRADED NOTE"

// reasonsOf returns the codes and severities of the reasons, without the rules of needsMore, and without
// notes on timestamps: these begin at any error above 0, and the live view rounds errors to 0.8 %.
func reasonsOf(v metric.Verdict) (out []string) {
	for _, r := range v.Reasons {
		if !slices.Contains(needsMore, r.Code) && (r.Severity != metric.Note || len(r.Figures) == 0) {
			out = append(out, r.Code+" "+string(r.Severity))
		}
	}
	return out
}

// A summary of almost nothing has no reasons: a rule does not apply if its input is missing.
func TestRulesWithoutInput(t *testing.T) {
	var state State
	state.Begin(Level{Rate: 10, Concurrency: 5})
	if v := state.Snapshot().Verdict; v.Severity != metric.Unjudged {
		t.Errorf("before the first request has finished, the verdict is %v", v)
	}
	f := &Feed{}
	f.Add(paced(1, 10)[0])
	state.Add(f.Tick(Period))
	if v := state.Snapshot().Verdict; len(v.Reasons) > 0 {
		t.Errorf("one healthy request gives %v", v.Reasons)
	}
}
