package metric_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"runtime"
	"slices"
	"testing"
	"testing/quick"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// sumUp adds copies of records to an Accumulator, which must not keep the originals.
func sumUp(c metric.Config, records ...*tacho.Record) metric.Summary {
	a := metric.Accumulator{Goodput: c.Goodput}
	for _, r := range records {
		given := *r
		given.Events = append(tacho.Events(nil), r.Events...)
		if err := a.Add(&given); err != nil {
			panic(err)
		}
		clear(given.Events)
		given = tacho.Record{}
	}
	return a.Summary(c)
}

// at shifts every timestamp of r.
func at(d time.Duration, r *tacho.Record) *tacho.Record {
	for _, m := range []*time.Duration{&r.Due, &r.Slot, &r.Start, &r.Conn, &r.Sent, &r.Wrote, &r.Head, &r.End} {
		if *m != tacho.Never {
			*m += d
		}
	}
	for i := range r.Events {
		r.Events[i].At += d
	}
	return r
}

func value(t *testing.T, what string, p *float64) float64 {
	t.Helper()
	if p == nil {
		t.Fatalf("%s: nothing measured", what)
	}
	return *p
}

func TestThroughput(t *testing.T) {
	c := metric.DefaultConfig()
	c.Goodput = []metric.SLO{{Metric: "ttft", LimitMillis: 30}, {Metric: "tpot", LimitMillis: 10}}
	late := failure(tacho.Timeout, 4*time.Second, "too late") // failed requests take time too
	s := sumUp(c,
		success(3, 30*ms, 40*ms, 50*ms), // good: a value at the limit meets it
		success(1, 30*ms),               // good: no TPOT to miss
		success(3, 31*ms, 32*ms, 33*ms), // TTFT missed
		success(3, 10*ms, 20*ms, 40*ms), // TPOT missed
		late)
	got := *s.Throughput
	good := value(t, "goodput", got.GoodPerS)
	got.GoodPerS = nil
	want := metric.Throughput{RequestsPerS: 1, OutputTokensPerS: 2.5, TotalTokensPerS: 12.5, InputsPerS: 1}
	if diff := cmp.Diff(want, got); diff != "" || good != 0.5 || s.DurationS != 4 {
		t.Errorf("duration %v, goodput %v, -want +got\n%s", s.DurationS, good, diff)
	}
	if s := sumUp(metric.DefaultConfig(), late); s.Throughput.GoodPerS != nil {
		t.Error("goodput without an SLO")
	}
}

// An SLO can use any metric, and a percentile of the values of a request: of ten gaps the longest is 50
// ms.
func TestGoodputOfAnyMetric(t *testing.T) {
	at := []time.Duration{10 * ms}
	for range 9 {
		at = append(at, at[len(at)-1]+10*ms)
	}
	r := success(11, append(at, at[9]+50*ms)...)
	for _, m := range metric.All {
		c := metric.Config{Goodput: []metric.SLO{{Metric: m.Name, LimitMillis: 1e9}}}
		good := 1.0 // also if a request has no value
		if m.MoreIsBetter {
			m.Of(r, func(float64) { good = 0 })
		}
		if c.Validate() == nil && goodShare(c, r) != good {
			t.Errorf("%s: goodput %v, want %v", m.Name, goodShare(c, r), good)
		}
	}
	for _, trial := range []struct {
		metric.SLO
		good float64
	}{
		{metric.SLO{Metric: "itl", LimitMillis: 20}, 0},
		{metric.SLO{Metric: "itl", LimitMillis: 50}, 1},
		{metric.SLO{Metric: "itl", LimitMillis: 20, Percentile: 50}, 1},
		{metric.SLO{Metric: "itl", LimitMillis: 20, Percentile: 99}, 0},
	} {
		if got := goodShare(metric.Config{Goodput: []metric.SLO{trial.SLO}}, r); got != trial.good {
			t.Errorf("%+v: goodput %v, want %v", trial.SLO, got, trial.good)
		}
	}
	for _, slo := range []metric.SLO{{Metric: "ttft", LimitMillis: 1, Percentile: 99}, {Metric: "itl", LimitMillis: 1, Percentile: 101}} {
		if c := (metric.Config{Goodput: []metric.SLO{slo}}); c.Validate() == nil {
			t.Errorf("%+v is no condition", slo)
		}
	}
}

// goodShare returns 1 if a single request is good, else 0.
func goodShare(c metric.Config, r *tacho.Record) float64 {
	sum := sumUp(c, r)
	return *sum.Throughput.GoodPerS / sum.Throughput.RequestsPerS
}

// A missing measurement is nil in our numbers and 0 in the classic ones.
func TestEmpty(t *testing.T) {
	s := sumUp(metric.DefaultConfig())
	if s.Throughput != nil || s.Peaks != nil || s.Rate != nil || s.Drift != nil || s.CoalescedShare() != nil || s.Dist(metric.TTFT).Stats != nil {
		t.Errorf("numbers from nowhere: %+v", s)
	}
	if got := s.Classic(metric.TTFT); got.Mean != 0 || got.Percentile(99) != 0 {
		t.Errorf("classic: got %+v, want zeros", got)
	}
	if len(s.Dists) != len(metric.All) {
		t.Errorf("%d distributions, want one for each of %d metrics", len(s.Dists), len(metric.All))
	}
	if s.Verdict.Severity != metric.Invalid {
		t.Errorf("an empty run is %s, want INVALID", s.Verdict.Severity)
	}
}

func TestStatistics(t *testing.T) {
	c := metric.DefaultConfig()
	c.Percentiles = []float64{99.9, 50}
	s := sumUp(c, success(1, 10*ms), success(1, 20*ms), success(1, 40*ms))
	got, few := s.Dist(metric.TTFT), &metric.Interval{Effective: 3, Warning: stat.TooFew}
	want := metric.Dist{Name: "ttft", Unit: "ms", N: 3, Stats: &metric.Stats{
		Mean: 70.0 / 3, Median: 20, Std: 12.4721912892464681, Min: 10, Max: 40,
		Percentiles:  []metric.Percentile{{P: 99.9, Value: 39.96, Interval: few}, {P: 50, Value: 20, Interval: few}, {P: 90, Value: 36, Interval: few}, {P: 95, Value: 38, Interval: few}, {P: 99, Value: 39.6, Interval: few}},
		MeanInterval: few, MedianInterval: few,
	}}
	near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// The two classic peaks follow the reference, with seconds counted from the first start. The third is
// the true peak. Three requests of 400 ms, one after another, touch one second; at most two are in
// flight.
func TestPeaks(t *testing.T) {
	second := success(2, 300*ms, 400*ms)
	other := at(10*ms, success(2, 300*ms, 400*ms))
	third := at(500*ms, success(2, 300*ms, 400*ms))
	across := at(900*ms, success(4, 50*ms, 150*ms, 160*ms, 170*ms)) // 1 event in the first second, 3 in the next
	failed := at(100*ms, failure(tacho.Reset, 400*ms, ""))          // in flight from 215 to 500 ms
	got := *sumUp(metric.DefaultConfig(), across, third, other, second, failed).Peaks
	want := metric.Peaks{EventsPerS: 7, TouchingASecond: 4, TokensPerS: 10, InFlight: 3} // any second: from 300 to 1,300 ms
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// A request that starts when another ends does not overlap it.
	got = *sumUp(metric.DefaultConfig(), success(1, 100*ms), at(102*ms, success(1, 100*ms))).Peaks
	if got.InFlight != 1 || got.TouchingASecond != 2 {
		t.Errorf("one after another: got %+v, want 1 in flight, 2 in a second", got)
	}
	// Two events of three tokens each, in half a second. The protocol does not give their number.
	merged := success(6, 250*ms, 500*ms)
	merged.Events[0].Tokens, merged.Events[1].Tokens = 0, 0
	got = *sumUp(metric.DefaultConfig(), merged).Peaks
	if got.EventsPerS != 2 || got.TokensPerS != 12 {
		t.Errorf("merged tokens: got %+v, want 2 events, and 12 tokens a second", got)
	}
}

// Implausible counts from a server must not cause implausible results, such as a negative sum.
func TestTokenSumsEndBeforeTheyTurnOver(t *testing.T) {
	var records []*tacho.Record
	for range 10 {
		r := success(999_999_999_999_999_999, 10*ms)
		r.Usage = &tacho.Usage{Prompt: math.MaxInt, Completion: r.Output, Cached: math.MaxInt, Reasoning: math.MaxInt}
		records = append(records, r)
	}
	s := sumUp(metric.DefaultConfig(), records...)
	for name, sum := range map[string]int{
		"input": s.Tokens.Input, "output": s.Tokens.Output, "cached": s.Tokens.Cached, "reasoning": s.Tokens.Reasoning,
		"served": s.Tokens.Prompt.Served, "off": s.Tokens.Prompt.Off,
	} {
		if sum != 1<<53 {
			t.Errorf("%s: %d, want 2^53", name, sum)
		}
	}
	if !slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "token-sums" }) || s.Verdict.Severity != metric.Invalid {
		t.Errorf("the verdict is %+v", s.Verdict)
	}
	if s = sumUp(metric.DefaultConfig(), success(5, 10*ms)); s.Tokens.Saturated {
		t.Error("five tokens are too many")
	}
}

func TestFailuresByCause(t *testing.T) {
	status := func(code int, at time.Duration, message string) *tacho.Record {
		r := failure(tacho.Status, at, message)
		r.Failure.Status = code
		return r
	}
	s := sumUp(metric.DefaultConfig(),
		status(429, 3*time.Second, "later"), status(429, 2*time.Second, "slow down"), status(500, time.Second, "oops"),
		failure(tacho.Canceled, time.Second, "stopped"), success(1, ms),
		failure(tacho.Refused, time.Second, "b"), failure(tacho.Refused, time.Second, "a"), failure(tacho.Refused, 5*time.Second, "c"))
	want := []metric.FailureGroup{
		{Cause: tacho.Refused, Count: 3, FirstS: 1, Example: "a"},
		{Cause: tacho.Status, Status: 429, Count: 2, FirstS: 2, Example: "slow down"},
		{Cause: tacho.Status, Status: 500, Count: 1, FirstS: 1, Example: "oops"},
	}
	if diff := cmp.Diff(want, s.Failures); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if s.Completed != 1 || s.Failed != 6 || s.Canceled != 1 || s.Requests != 8 {
		t.Errorf("completed %d, failed %d, canceled %d of %d; want 1, 6, 1 of 8", s.Completed, s.Failed, s.Canceled, s.Requests)
	}
}

func TestTokenCounts(t *testing.T) {
	served := func(prompt int) *tacho.Record {
		r := success(4, 10*ms, 20*ms)
		r.Usage = &tacho.Usage{Prompt: prompt, Completion: 4, Cached: 3, Reasoning: 1}
		return r
	}
	exact := func(asked, output int, from tacho.CountSource) *tacho.Record {
		r := success(output, 10*ms)
		r.Asked, r.Exact, r.OutputFrom = asked, true, from
		return r
	}
	failed := failure(tacho.Reset, ms, "")
	failed.Output, failed.Usage = 99, &tacho.Usage{Prompt: 99}
	got := sumUp(metric.DefaultConfig(),
		served(10), served(8), served(13), failed,
		exact(4, 4, tacho.FromEvents), exact(4, 3, tacho.FromTokens), exact(4, 5, tacho.FromEvents), success(1, 1*ms, 2*ms)).Tokens
	want := metric.Tokens{
		Input: 10 + 8 + 13 + 4*10, Output: 3*4 + 4 + 3 + 5 + 1, InputByServer: 3, InputByWorkload: 4,
		OutputBy: []metric.CountedBy{{Source: tacho.FromUsage, Requests: 4}, {Source: tacho.FromTokens, Requests: 1}, {Source: tacho.FromEvents, Requests: 2}},
		Cached:   9, Reasoning: 3,
		Prompt: metric.PromptCheck{Requests: 3, Differ: 2, Asked: 30, Served: 31, Off: 5, Worst: 3},
		Exact:  3, Short: 1, Long: 1, MoreEvents: 1, SurplusEvents: 1,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestClockUse(t *testing.T) {
	read, stepped, steered := success(1, ms), success(1, ms), success(1, 100*time.Second)
	read.Clock = tacho.ReadClock
	stepped.ClockStep = -2 * time.Second
	steered.ClockStep = 50 * ms // half a thousandth of its 100 s
	trembling := success(1, ms)
	trembling.ClockStep = ms / 2 // a large share of a short request, but not visible in a latency
	wire := success(3, ms)
	wire.Clock, wire.FellBack = tacho.WireClock, 1
	for _, c := range []struct {
		records []*tacho.Record
		want    metric.ClockUse
	}{
		{[]*tacho.Record{wire, wire}, metric.ClockUse{Wire: 2, WireTimes: 4, FellBack: 2, Name: "wire"}},
		{[]*tacho.Record{wire, success(1, ms)}, metric.ClockUse{Wire: 1, Kernel: 1, WireTimes: 2, FellBack: 1, Name: "mixed"}},
		{nil, metric.ClockUse{}},
		{[]*tacho.Record{success(1, ms)}, metric.ClockUse{Kernel: 1, Name: "kernel"}},
		{[]*tacho.Record{read}, metric.ClockUse{Read: 1, Name: "read"}},
		{[]*tacho.Record{read, stepped, steered, trembling}, metric.ClockUse{Kernel: 3, Read: 1, Steps: 1, WorstStepS: -2, Name: "mixed"}},
	} {
		if diff := cmp.Diff(c.want, sumUp(metric.DefaultConfig(), c.records...).Clock); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	}
}

// twenty requests, due every 100 ms, each sent with more lag than the one before.
func fallingBehind(perRequest time.Duration) []*tacho.Record {
	var records []*tacho.Record
	for i := range 20 {
		r := at(time.Duration(i)*100*ms, success(1, 50*ms))
		r.Slot = r.Due
		r.Sent = r.Due + time.Duration(i)*perRequest
		r.Events[0].At, r.End = r.Sent+50*ms, r.Sent+60*ms
		records = append(records, r)
	}
	return records
}

func TestRateAndDrift(t *testing.T) {
	s := sumUp(metric.DefaultConfig(), fallingBehind(10*ms)...)
	scheduled, achieved := value(t, "scheduled", s.Rate.ScheduledPerS), value(t, "achieved", s.Rate.AchievedPerS)
	if scheduled != 10 || achieved != 19/2.09 || s.Rate.SpanS != 1.9 {
		t.Errorf("scheduled %v, achieved %v over %v s; want 10, %v, 1.9", scheduled, achieved, s.Rate.SpanS, 19/2.09)
	}
	if want := (metric.Drift{FirstTenthMillis: 5, LastTenthMillis: 185}); *s.Drift != want {
		t.Errorf("drift %+v, want %+v", *s.Drift, want)
	}
	if s := sumUp(metric.DefaultConfig(), fallingBehind(0)[:19]...); s.Drift != nil {
		t.Error("a drift of 19 requests, which have no tenth worth the name")
	}
	atOnce := sumUp(metric.DefaultConfig(), success(1, ms), success(1, ms))
	if atOnce.Rate.ScheduledPerS != nil {
		t.Errorf("all at once has the rate %v, want none", *atOnce.Rate.ScheduledPerS)
	}
}

func TestLimitBound(t *testing.T) {
	c := metric.DefaultConfig()
	pair := []*tacho.Record{success(1, 100*ms), at(50*ms, success(1, 100*ms))}
	for limit, want := range map[int]bool{0: false, 1: true, 2: true, 3: false} {
		c.MaxConcurrency = limit
		if got := sumUp(c, pair...).LimitBound; got != want {
			t.Errorf("limit %d: bound %v, want %v", limit, got, want)
		}
	}
	// If the limit was reached, the wait for a slot is not a drift of the client.
	c.MaxConcurrency = 1
	var queued []*tacho.Record
	for i := range 20 {
		r := success(1, 50*ms)
		r.Due, r.Slot = 0, time.Duration(i)*100*ms
		r.Sent = r.Slot + ms
		r.Events[0].At, r.End = r.Sent+50*ms, r.Sent+60*ms
		queued = append(queued, r)
	}
	if got, want := *sumUp(c, queued...).Drift, (metric.Drift{FirstTenthMillis: 1, LastTenthMillis: 1}); got != want {
		t.Errorf("drift %+v, want %+v", got, want)
	}
}

func TestProbe(t *testing.T) {
	var a metric.Accumulator
	if a.Probe() != nil {
		t.Error("probes where none were sent")
	}
	for _, r := range []*tacho.Record{success(1, 10*ms), success(1, 30*ms), failure(tacho.Reset, ms, "")} {
		must.Do(t, a.Add(r))
	}
	want := &metric.Probe{Completed: 2, Failed: 1, MedianMillis: 20, P99Millis: 29.8, MaxMillis: 30}
	if diff := cmp.Diff(want, a.Probe()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func randomRecord(rng *rand.Rand) *tacho.Record {
	pick := func(n int) time.Duration { return time.Duration(rng.IntN(n)) * ms / 4 }
	var tokensAt []time.Duration
	for range rng.IntN(6) {
		tokensAt = append(tokensAt, pick(200))
	}
	r := at(pick(20000), success(rng.IntN(8), tokensAt...))
	r.Sent += pick(40)
	r.Clock = tacho.Clock(rng.IntN(3))
	r.Conns, r.ClockStep = rng.IntN(3), pick(40)-5*ms
	r.Exact, r.Asked = rng.IntN(2) == 0, rng.IntN(6)
	for i := range r.Events {
		r.Events[i].Slack = tacho.Slack(rng.IntN(9) / 8 * rng.IntN(255))
	}
	if rng.IntN(2) == 0 {
		r.Usage = &tacho.Usage{Prompt: 7 + rng.IntN(6), Cached: rng.IntN(3)}
	}
	if rng.IntN(4) == 0 {
		causes := []tacho.Cause{tacho.Reset, tacho.Status, tacho.Canceled, tacho.Timeout}
		r.Failure = &tacho.Failure{Cause: causes[rng.IntN(4)], Status: rng.IntN(2) * 429, Message: string(rune('a' + rng.IntN(3)))}
	}
	return r
}

// Merging seven parts gives the same summary as the whole, however the records are distributed and in
// any order of parts, below and above the limit of exact observations.
func TestMergeIsAdd(t *testing.T) {
	c := metric.DefaultConfig()
	c.MaxConcurrency, c.RequestRate = 3, 2
	c.Goodput = []metric.SLO{{Metric: "e2el", LimitMillis: 30}}
	f := func(seed uint64, n uint8, limited bool) bool {
		rng := rand.New(rand.NewPCG(seed, 0))
		limit := 0
		if limited {
			limit = 20
		}
		whole, merged := metric.Accumulator{Goodput: c.Goodput, Limit: limit}, metric.Accumulator{Goodput: c.Goodput, Limit: limit}
		parts := make([]metric.Accumulator, 7)
		for i := range parts {
			parts[i] = metric.Accumulator{Goodput: c.Goodput, Limit: limit}
		}
		for i := range n {
			r := randomRecord(rng)
			r.Session, r.Turn, r.Turns = uint64(i)/3, int(i)%3, 3+int(i)/3%2
			r.Labels = tacho.Labels{{Key: "class", Value: string(rune('a' + rng.IntN(3)))}}
			r.Endpoint = string(rune('A' + rng.IntN(2)))
			if whole.Add(r) != nil || parts[rng.IntN(7)].Add(r) != nil {
				return false
			}
		}
		for _, i := range rng.Perm(7) {
			merged.Merge(&parts[i])
		}
		diff := cmp.Diff(whole.Summary(c), merged.Summary(c), cmp.Exporter(func(reflect.Type) bool { return true }))
		if diff != "" {
			t.Logf("whole against merged\n%s", diff)
		}
		return diff == ""
	}
	count := 200
	if testing.Short() {
		count = 40
	}
	if err := quick.Check(f, &quick.Config{MaxCount: count}); err != nil {
		t.Error(err)
	}
}

// Gaps per token are stored only if they differ from the gaps between events, whichever part shows the
// difference first.
func TestGapsByTokenMerge(t *testing.T) {
	c := metric.DefaultConfig()
	sum := func(tokens ...int) *metric.Accumulator {
		a := &metric.Accumulator{}
		for i, n := range tokens {
			r := at(time.Duration(i)*ms, success(3*n, 10*ms, 20*ms, 50*ms))
			for k := range r.Events {
				r.Events[k].Tokens = int16(n)
			}
			must.Do(t, a.Add(r))
		}
		return a
	}
	for name, parts := range map[string][2]*metric.Accumulator{
		"plain first": {sum(1, 1), sum(3)}, "plain last": {sum(3), sum(1, 1)}, "both": {sum(1, 3), sum(3)},
		"into none": {sum(), sum(3, 1)}, "plain only": {sum(1), sum(1, 1)},
	} {
		sum, n := 0.0, 0.0
		for _, part := range parts {
			before := part.Summary(c)
			d := before.Dist(metric.TokenGap)
			if d.N > 0 {
				sum += d.Stats.Mean * float64(d.N)
				n += float64(d.N)
			}
		}
		parts[0].Merge(parts[1])
		s := parts[0].Summary(c)
		got := s.Dist(metric.TokenGap)
		if float64(got.N) != n || math.Abs(got.Stats.Mean-sum/n) > 1e-9 || got.Stats.MeanInterval == nil {
			t.Errorf("%s: %d gaps with a mean of %v, want %v and %v", name, got.N, got.Stats.Mean, n, sum/n)
		}
	}
}

// In a long run of short requests, only the classic values and the token times use memory per request.
func TestLongRunsStaySmall(t *testing.T) {
	if testing.Short() {
		t.Skip("two hundred thousand requests")
	}
	const requests = 200_000
	rng := rand.New(rand.NewPCG(3, 4))
	var all metric.Accumulator
	var before int64
	for i := range requests {
		first := time.Duration(50e6 + 20e6*rng.Float64())
		r := at(time.Duration(i)*3*ms, success(3, first, first+time.Duration(30e6*rng.Float64()), first+31*ms))
		r.Session = uint64(i)
		must.Do(t, all.Add(r))
		if i == requests/2-1 {
			before = heap()
		}
	}
	if perRequest := (heap() - before) / (requests / 2); perRequest > 130 {
		t.Errorf("%d bytes for each further request", perRequest)
	} else {
		t.Logf("%d bytes for each further request", perRequest)
	}
	s := all.Summary(metric.DefaultConfig())
	for _, d := range s.Dists {
		classic := d.Name == metric.TTFT.Name || d.Name == metric.E2ELDue.Name
		if exact := d.Stats != nil && d.Stats.Error == 0; classic && !exact || d.Name == metric.Lag.Name && exact {
			t.Errorf("%s: exact is %v", d.Name, exact)
		}
	}
}

// heap returns the bytes in use.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// With ten million token events, ten times the limit, memory stays constant and every figure is within
// its stated error.
func TestBoundedMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("ten million token events")
	}
	const tokens, requests = 1000, 10_000
	exact, sketch := metric.Accumulator{Limit: tokens * requests}, metric.Accumulator{}
	rng := rand.New(rand.NewPCG(1, 2))
	tokensAt := make([]time.Duration, tokens)
	var before int64
	for i := range requests {
		now := time.Duration(0)
		for k := range tokensAt {
			now += time.Duration(20e6 + 5e6*rng.NormFloat64())
			tokensAt[k] = now
		}
		r := at(time.Duration(i)*3*ms, success(tokens, tokensAt...))
		if i < requests/5 { // the exact accumulator is too slow for all records
			must.Do(t, exact.Add(r))
		}
		must.Do(t, sketch.Add(r))
		if i == requests/5-1 {
			compareSketch(t, exact.Summary(metric.DefaultConfig()), sketch.Summary(metric.DefaultConfig()))
			exact = metric.Accumulator{}
			if before = heap(); before > 64<<20 {
				t.Errorf("%d bytes after %d tokens", before, (i+1)*tokens)
			}
		}
	}
	perRequest := (heap() - before) / (requests - requests/5)
	if perRequest > 1000 {
		t.Errorf("%d bytes for each further request of %d tokens", perRequest, tokens)
	}
	runtime.KeepAlive(&sketch)
}

func compareSketch(t *testing.T, want, got metric.Summary) {
	t.Helper()
	off := func(a, b float64) float64 { return math.Abs(a-b) / max(math.Abs(b), 1e-9) }
	sketched := 0
	for i, d := range got.Dists {
		w := want.Dists[i].Stats
		if d.Stats == nil || w == nil {
			continue
		}
		if d.Stats.Error > 0 {
			sketched++
		}
		limit := max(d.Stats.Error, 1e-7)
		if off(d.Stats.Mean, w.Mean) > 1e-7 || off(d.Stats.Median, w.Median) > limit || d.Stats.Min != w.Min || d.Stats.Max != w.Max {
			t.Errorf("%s: %+v, want %+v", d.Name, d.Stats, w)
		}
		for k, p := range d.Stats.Percentiles {
			if off(p.Value, w.Percentiles[k].Value) > limit {
				t.Errorf("%s p%v: %v, want %v", d.Name, p.P, p.Value, w.Percentiles[k].Value)
			}
		}
	}
	if sketched == 0 || want.Dist(metric.ITL).Stats.Error != 0 {
		t.Error("nothing was sketched, or all was")
	}
	if off(got.Peaks.TokensPerS, want.Peaks.TokensPerS) > 0.005 || off(float64(got.Peaks.EventsPerS), float64(want.Peaks.EventsPerS)) > 0.005 {
		t.Errorf("peaks %+v, want %+v", got.Peaks, want.Peaks)
	}
}

// A million token events in two thousand requests.
func BenchmarkSummary(b *testing.B) {
	var a metric.Accumulator
	tokensAt := make([]time.Duration, 500)
	for i := range 2000 {
		for j := range tokensAt {
			tokensAt[j] = time.Duration(j)*20*ms + time.Duration(i*j%977)*time.Microsecond
		}
		must.Do(b, a.Add(at(time.Duration(i)*10*ms, success(500, tokensAt...))))
	}
	for b.Loop() {
		a.Summary(metric.DefaultConfig())
	}
}

// Measured leaves the verdict to Conclude, so a level is judged once, when everything is known.
func TestMeasuredIsNotJudged(t *testing.T) {
	var a metric.Accumulator
	must.Do(t, a.Add(&tacho.Record{Timeline: tacho.NewTimeline(0), Failure: &tacho.Failure{Cause: tacho.Reset}}))
	c := metric.DefaultConfig()
	s := a.Measured(c)
	if s.Verdict.Severity != "" || s.Verdict.Reasons != nil || s.Figures != nil {
		t.Errorf("judged: %+v", s.Verdict)
	}
	s.Config.Known = append(s.Config.Known, metric.Reason{Code: "list-ended", Severity: metric.Note, Text: "ended"})
	s.Conclude(nil, nil)
	c.Known = s.Config.Known
	if d := cmp.Diff(a.Summary(c).Verdict, s.Verdict); d != "" || s.Verdict.Severity != metric.Invalid {
		t.Errorf("verdict of a reason that was added before Conclude (-want +got):\n%s", d)
	}
}
