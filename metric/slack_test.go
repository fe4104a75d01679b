package metric

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// told returns a record with events at the given milliseconds, each with a slack in milliseconds.
func told(sentSlack time.Duration, at []int, early ...int) *tacho.Record {
	r := &tacho.Record{Timeline: tacho.NewTimeline(0), Output: len(at)}
	r.Sent, r.SentSlack, r.End = 0, sentSlack, time.Duration(at[len(at)-1])*time.Millisecond
	for i, ms := range at {
		e := tacho.Event{At: time.Duration(ms) * time.Millisecond}
		if i < len(early) && early[i] > 0 {
			e.Slack = tacho.SlackOf(time.Duration(early[i]) * time.Millisecond)
		}
		r.Events = append(r.Events, e)
	}
	return r
}

// near allows for the eighth by which a slack is rounded up.
func near(got, want float64) bool { return math.Abs(got-want) <= want/8+1e-9 }

func TestBoundsOfPercentiles(t *testing.T) {
	exact := func() *tacho.Record { return told(0, []int{100, 150, 200, 250}) }
	merged := func() *tacho.Record { return told(8*time.Millisecond, []int{160, 200, 200, 250}, 32, 16) }
	for name, c := range map[string]struct {
		records []*tacho.Record
		want    map[*Metric]Bound // of p100
		slack   [2]float64        // of TTFT and ITL
	}{
		"exact": {[]*tacho.Record{exact(), exact()}, map[*Metric]Bound{TTFT: {100, 100}, ITL: {50, 50}, TPOT: {50, 50}, E2EL: {250, 250}}, [2]float64{}},
		"merged": {
			[]*tacho.Record{merged()},
			// 160 to 200 was 24 to 72 ms, 200 to 200 was 0 to 16 ms, and 200 to 250 is exact.
			map[*Metric]Bound{TTFT: {120, 160}, ITL: {50, 72}, TPOT: {30, 30 + 32.0/3}, E2EL: {242, 250}},
			[2]float64{40, 32},
		},
		"both": {
			[]*tacho.Record{exact(), merged(), exact()},
			map[*Metric]Bound{TTFT: {120, 160}, ITL: {50, 72}, TPOT: {50, 50}, E2EL: {250, 250}},
			[2]float64{40, 32},
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := DefaultConfig()
			config.Percentiles = []float64{100}
			for _, s := range inEveryOrder(t, c.records, config) {
				for m, want := range c.want {
					got := s.Dist(m).Stats.Bound(100)
					if !near(got.Low, want.Low) || !near(got.High, want.High) || (want.Low == want.High) != (got.Low == got.High) {
						t.Errorf("%s lies between %v, want %v", m.Name, got, want)
					}
				}
				if !near(s.TTFTSlackMillis, c.slack[0]) || !near(s.ITLSlackMillis, c.slack[1]) {
					t.Errorf("off by %v and %v ms, want %v", s.TTFTSlackMillis, s.ITLSlackMillis, c.slack)
				}
			}
		})
	}
}

// inEveryOrder summarizes records forwards, backwards, and each alone and merged.
func inEveryOrder(t *testing.T, records []*tacho.Record, c Config) []Summary {
	t.Helper()
	var forwards, backwards, merged Accumulator
	for i := range records {
		var one Accumulator
		for a, r := range map[*Accumulator]*tacho.Record{&forwards: records[i], &backwards: records[len(records)-1-i], &one: records[i]} {
			must.Do(t, a.Add(r))
		}
		merged.Merge(&one)
	}
	return []Summary{forwards.Summary(c), backwards.Summary(c), merged.Summary(c)}
}

// Bounds leave out failed requests.
func TestBoundsOfFailedRequest(t *testing.T) {
	failed := told(time.Second, []int{100, 200}, 50)
	failed.Failure = &tacho.Failure{Cause: tacho.Reset}
	var a Accumulator
	for _, r := range []*tacho.Record{failed, told(0, []int{100, 150})} {
		must.Do(t, a.Add(r))
	}
	if s := a.Summary(DefaultConfig()); s.ITLSlackMillis != 0 || s.Dist(ITL).Stats.Bound(99) != (Bound{50, 50}) {
		t.Errorf("with a failed request: %v ms, %v", s.ITLSlackMillis, s.Dist(ITL).Stats.Bound(99))
	}
}

func TestSlackPercentiles(t *testing.T) {
	var s slack
	for _, ms := range []int{8, 8, 4, 2, 2} { // of a hundred values
		s.add(time.Duration(ms) * time.Millisecond)
	}
	var got []float64
	for _, p := range []float64{100, 99, 98, 97, 96, 95, 50} {
		got = append(got, math.Floor(s.percentile(p, 100)))
	}
	if want := []float64{8, 8, 4, 2, 2, 0, 0}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := slack(nil).percentile(99, 0); got != 0 {
		t.Errorf("of nothing: %v", got)
	}
}

// A bound with equal ends is printed as one number.
func TestBoundInWords(t *testing.T) {
	for b, want := range map[Bound]string{{1, 2.345}: "1 to 2.35 ms", {93.031, 93.034}: "93 ms"} {
		if b.String() != want {
			t.Errorf("%v is %q, want %q", b, b.String(), want)
		}
	}
}

// lateRecords returns requests with random gaps, with their true times and as measured by a client that
// reads now and then. Events between two reads get the time of the last one, and may have arrived at
// any time since the previous read.
func lateRecords(rnd *rand.Rand) (truth, told []*tacho.Record) {
	const requests, tokens, meanGap, meanWait = 30, 20, 20e6, 8e6
	for range requests {
		var fact, late tacho.Record
		at := time.Duration(0)
		for range tokens {
			at += time.Duration(rnd.ExpFloat64() * meanGap)
			fact.Events = append(fact.Events, tacho.Event{At: at})
			late.Events = append(late.Events, tacho.Event{At: at})
		}
		end := at
		for first := 0; first < tokens; {
			empty, last := time.Duration(0), first
			if first > 0 {
				empty = late.Events[first-1].At
			}
			for wait := time.Duration(rnd.ExpFloat64() * meanWait); last+1 < tokens && fact.Events[last+1].At < fact.Events[first].At+wait; last++ {
			}
			for i := first; i <= last; i++ {
				late.Events[i].At = fact.Events[last].At
				if i < last {
					late.Events[i].Slack = tacho.SlackOf(late.Events[i].At - empty)
				}
			}
			first = last + 1
		}
		for _, r := range []*tacho.Record{&fact, &late} {
			events := r.Events
			r.Timeline = tacho.NewTimeline(0)
			r.Events, r.Sent, r.End, r.Output = events, 0, end, tokens
		}
		truth, told = append(truth, &fact), append(told, &late)
	}
	return truth, told
}

// The true percentile is within its bounds, however late the client read.
func TestBoundsHoldTheTruth(t *testing.T) {
	config := DefaultConfig()
	const rounding = 1e-6 // milliseconds
	config.Percentiles = []float64{10, 50, 90, 99, 100}
	for seed := range uint64(200) {
		truth, told := lateRecords(rand.New(rand.NewPCG(seed, 1)))
		var exact, bounded Accumulator
		for i := range truth {
			must.Do(t, errors.Join(exact.Add(truth[i]), bounded.Add(told[i])))
		}
		a, b := exact.Summary(config), bounded.Summary(config)
		for _, m := range []*Metric{TTFT, TPOT, ITL, E2EL} {
			for _, p := range config.Percentiles {
				fact, bound := a.Dist(m).Stats.Percentile(p), b.Dist(m).Stats.Bound(p)
				if fact < bound.Low-rounding || fact > bound.High+rounding {
					t.Errorf("seed %d: p%g of %s is %v, and said to lie between %v", seed, p, m.Name, fact, bound)
				}
			}
		}
	}
}
