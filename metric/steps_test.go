package metric_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"tacho"
	"tacho/metric"
)

// Records whose events are steps of engines come to the same, figure for figure, as
// if each event was looked at by itself: also where some fail, have turns or labels,
// or have an event that is none of the steps.
func TestStepsAreCountedOnce(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	engines := make([][]time.Duration, 3)
	for i := range engines {
		at := time.Second
		for range 20_000 {
			at += time.Duration(7e6 + 3e5*rng.NormFloat64())
			if rng.IntN(20) == 0 {
				at += 25e6
			}
			engines[i] = append(engines[i], at)
		}
	}
	for name, limit := range map[string]int{"all are kept": 0, "counted in bins": 1000} {
		together, apart := &metric.Accumulator{Limit: limit}, &metric.Accumulator{Limit: limit}
		merged := [2]metric.Accumulator{{Limit: limit}, {Limit: limit}}
		for n := range 1500 {
			e := rng.IntN(len(engines))
			first, length := 2+(n*13)%19_000, 2+rng.IntN(200)
			r := stepsOf(engines[e], e, first, length)
			switch n % 50 {
			case 7:
				r.Failure = &tacho.Failure{Cause: tacho.Reset}
			case 8:
				r.Events[0].Tokens = 3
			case 9:
				r.Labels = tacho.Labels{{Key: "kind", Value: fmt.Sprint(n % 3)}}
			}
			if n > 700 {
				r.Turn, r.Turns = n%2, 2
			}
			if n == 900 { // gaps by token are others from here on
				r.Events = append(tacho.Events{{At: r.Events[0].At, Tokens: 1}, {At: r.Events[0].At + 1, Tokens: 2}}, r.Events[1:]...)
				r.Steps.Event++
			}
			alone := *r
			alone.Steps = tacho.Steps{}
			for _, one := range []struct {
				to *metric.Accumulator
				r  *tacho.Record
			}{{together, r}, {apart, &alone}, {&merged[n%2], r}} {
				if err := one.to.Add(one.r); err != nil {
					t.Fatal(err)
				}
			}
		}
		merged[0].Merge(&merged[1])
		want := summaryText(t, apart)
		if got := summaryText(t, together); got != want {
			t.Errorf("%s: the summaries differ:\n%s\n%s", name, got, want)
		}
		if got := summaryText(t, &merged[0]); got != want {
			t.Errorf("%s: merged, the summaries differ:\n%s\n%s", name, got, want)
		}
	}
}

// stepsOf is a request whose second and later tokens are steps of an engine.
func stepsOf(steps []time.Duration, engine, first, length int) *tacho.Record {
	r := &tacho.Record{Timeline: tacho.NewTimeline(steps[first-2]), Session: uint64(first), Output: length + 1, Endpoint: fmt.Sprint("replica-", engine)}
	r.Slot, r.Start, r.Conn, r.Sent, r.Wrote, r.Head, r.Clock = r.Due, r.Due, r.Due, r.Due, r.Due, r.Due, tacho.VirtualClock
	r.Events = tacho.Events{{At: steps[first-1], Tokens: 1}}
	r.Steps = tacho.Steps{Of: &steps[0], First: first, Event: 1}
	for _, at := range steps[first : first+length] {
		r.Events = append(r.Events, tacho.Event{At: at, Tokens: 1})
	}
	r.End = r.Last()
	return r
}

func summaryText(t *testing.T, a *metric.Accumulator) string {
	t.Helper()
	b, err := json.Marshal(a.Summary(metric.Config{RequestRate: 10, Percentiles: []float64{50, 99}}))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
