package sim

import (
	"sort"
	"sync/atomic"
	"time"
)

// counters are the source of the server's metrics. They count events at the time of
// the event.
type counters struct {
	inFlight  atomic.Int64
	requests  atomic.Int64 // parsed successfully
	stopped   atomic.Int64 // answers ended by the model
	limited   atomic.Int64 // answers ended by their limit
	refused   atomic.Int64 // requests answered with an error
	aborted   atomic.Int64 // interrupted answers
	prompt    atomic.Int64 // tokens
	cached    atomic.Int64 // cached tokens of prompt
	generated atomic.Int64 // tokens
	late      atomic.Int64 // total delay of writes after their tokens, in nanoseconds

	ttft, gaps, e2e, inference                  *histogram // by the time of the write
	queue, prefill, itl, tpot, decode, computed *histogram // by the time in the engine
	inputs, outputs                             *histogram
}

// newCounters returns counters for a server that runs speed times faster than real
// time. Durations are counted in model time.
func newCounters(speed float64) *counters {
	seconds := func(bounds ...float64) *histogram { return newHistogram(1e-9*speed, bounds) }
	long := []float64{0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120, 240, 480, 960}
	lengths := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000}
	return &counters{
		ttft: seconds(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80, 160, 640, 2560),
		gaps: seconds(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
		itl:  seconds(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
		tpot: seconds(0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80),
		e2e:  seconds(long...), queue: seconds(long...), prefill: seconds(long...), decode: seconds(long...),
		inference: seconds(long...), computed: seconds(long...),
		inputs: newHistogram(1, lengths), outputs: newHistogram(1, lengths),
	}
}

// wrote counts a write of n tokens at the given time. t is the state before the
// write.
func (c *counters) wrote(t *Truth, at int64, n int) {
	c.generated.Add(int64(n))
	if k := len(t.Writes); k > 0 {
		c.gaps.observe(at - t.Writes[k-1])
		return
	}
	c.ttft.observe(at - t.Arrival)
	c.prompt.Add(int64(t.Input))
	c.cached.Add(int64(t.Cached))
}

// made counts the tokens that the engine generated up to the given time, in the
// given number of further steps.
func (c *counters) made(t *Truth, at int64, steps int) {
	if t.Last == 0 {
		c.queue.observe(t.Admitted - t.Queued)
		c.prefill.observe(t.First - t.Admitted)
		t.Last = t.First
		steps--
	}
	for range steps {
		c.itl.observe((at - t.Last) / int64(steps))
	}
	t.Last = at
}

// ended counts a finished request.
func (c *counters) ended(an *answer) {
	t := an.truth
	c.inFlight.Add(-1)
	if an.generation != nil {
		c.requests.Add(1)
	}
	switch {
	case t.Finish == finishStop:
		c.stopped.Add(1)
	case t.Finish == finishLength:
		c.limited.Add(1)
	case an.generation == nil || len(t.Writes) == 0 && t.Status != 0:
		c.refused.Add(1)
		return
	default:
		c.aborted.Add(1)
		return
	}
	last := t.Writes[len(t.Writes)-1]
	c.e2e.observe(last - t.Arrival)
	c.inference.observe(last - t.Admitted)
	c.decode.observe(t.Last - t.First)
	c.computed.observe(t.Last - t.Admitted)
	if t.Output > 1 {
		c.tpot.observe((t.Last - t.First) / int64(t.Output-1))
	}
	c.inputs.observe(int64(t.Input))
	c.outputs.observe(int64(t.Output))
}

// A histogram counts values in buckets, like a Prometheus histogram.
type histogram struct {
	unit   float64 // unit of an observed value, in units of the bounds
	bounds []float64
	limits []int64 // the bounds in units
	counts []atomic.Int64
	sum    atomic.Int64 // in units
}

func newHistogram(unit float64, bounds []float64) *histogram {
	h := &histogram{unit: unit, bounds: bounds, counts: make([]atomic.Int64, len(bounds)+1)}
	for _, b := range bounds {
		h.limits = append(h.limits, int64(b/unit+0.5))
	}
	return h
}

func (h *histogram) observe(v int64) {
	h.counts[sort.Search(len(h.limits), func(i int) bool { return v <= h.limits[i] })].Add(1)
	h.sum.Add(v)
}

// count is the number of values.
func (h *histogram) count() (n int64) {
	for i := range h.counts {
		n += h.counts[i].Load()
	}
	return n
}

// total is the sum of the values.
func (h *histogram) total() float64 { return float64(h.sum.Load()) * h.unit }

// perSecond is the rate of n events in d.
func perSecond(n int64, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(n) / d.Seconds()
}
