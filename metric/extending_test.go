package metric

import (
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

var thinkingTime = &Metric{
	Name: "thinking", Title: "Thinking Time", Unit: Millis,
	Doc: "first token event with content - first token event; successful requests that have one",
	Of:  ofSuccess(atFirst, atFirstContent),
}

// A metric in All, mentioned nowhere else, is found and summarized and can be a goodput limit.
// docs/extending.md describes the steps.
func TestOneWordAddsAMetric(t *testing.T) {
	usual := All
	defer func() { All = usual }()
	limits := Config{Goodput: []SLO{{Metric: "thinking", LimitMillis: 100}}}
	if limits.Validate() == nil {
		t.Fatal("the example is a metric already: choose another")
	}
	All = append(All, thinkingTime)
	if err := limits.Validate(); err != nil {
		t.Error(err)
	}
	sum := Accumulator{Goodput: limits.Goodput}
	for _, think := range []time.Duration{40 * time.Millisecond, 240 * time.Millisecond} {
		r := tacho.Record{Timeline: tacho.NewTimeline(0), Output: 2}
		r.Sent, r.End = 0, time.Second
		r.Events = tacho.Events{{At: 20 * time.Millisecond, Kind: tacho.Reasoning}, {At: 20*time.Millisecond + think}}
		must.Do(t, sum.Add(&r))
	}
	s := sum.Summary(limits)
	if d := s.Dist(thinkingTime); d.N != 2 || d.Stats.Min != 40 || d.Stats.Max != 240 {
		t.Errorf("summed up as %+v", d)
	}
	if good := s.Throughput.GoodPerS; good == nil || *good != 1 {
		t.Errorf("goodput %v, want the one request of the second that thinks less than 100 ms", good)
	}
}
