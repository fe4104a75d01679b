package compare

import (
	"math"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// A meter measures one quantity of a run in each stretch.
type meter struct {
	metric.Quantity
	known  bool                    // the records contain the quantity
	n, sum [stretches]float64      // values and their sum; for a rate, seconds and the amount served
	logs   [stretches]float64      // sum of the logarithms
	values [stretches]*stat.Digest // for a percentile
}

func newMeter(q metric.Quantity) *meter {
	m := &meter{Quantity: q, known: q.Metric != nil}
	for i := range m.values {
		if q.P > 0 {
			m.values[i] = &stat.Digest{}
		}
	}
	return m
}

// smallest is the smallest value with its own logarithm, in the unit of a metric: a nanosecond for
// times in milliseconds.
const smallest = 1e-6

func (m *meter) add(r *tacho.Record, s *single) {
	if m.Metric == nil {
		m.addFailure(r, s)
		return
	}
	i, at := s.bySent(r), r.First()
	m.Metric.Of(r, func(v float64) {
		if m.Metric.PerEvent { // gaps follow each other from the first token on
			at += time.Duration(v * float64(time.Millisecond))
			i = min(max(int(float64(at)/float64(max(s.span, 1))*stretches), 0), stretches-1)
		}
		m.n[i]++
		m.sum[i] += v
		m.logs[i] += math.Log(max(v, smallest))
		if m.P > 0 {
			m.values[i].Add(v)
		}
	})
}

func (m *meter) addFailure(r *tacho.Record, s *single) {
	if m.Name != "failures" {
		return
	}
	m.known = true
	switch i := s.bySent(r); {
	case r.OK():
		m.n[i]++
	case r.Failure.Cause != tacho.Canceled:
		m.n[i]++
		m.sum[i] += 100
	}
}

// throughputs are the contributions of an answer to a rate.
var throughputs = map[string]func(answer) int{
	"request_throughput":     func(answer) int { return 1 },
	"output_throughput":      func(a answer) int { return a.output },
	"total_token_throughput": func(a answer) int { return a.input + a.output },
}

// serve cuts the answers into stretches with equal numbers of answers and measures the time of each. If
// a schedule gives the due times, the gaps between requests are known and are not noise: each stretch
// has an equal part of the schedule, and only the delay of answers varies.
func (m *meter) serve(s *single) {
	adds, ok := throughputs[m.Name]
	if !ok || len(s.answers) < fewestRequests {
		return
	}
	m.known = true
	first := s.sent[0]
	whole := s.sent[len(s.sent)-1] - first
	late := time.Duration(0)
	before := max(first, 0)
	for i := range stretches {
		from, to := i*len(s.answers)/stretches, (i+1)*len(s.answers)/stretches
		for _, a := range s.answers[from:to] {
			m.sum[i] += float64(adds(a))
		}
		end := s.answers[to-1].end
		if !s.paced() {
			m.n[i] = (end - before).Seconds()
			before = end
			continue
		}
		due := s.sent[(i+1)*len(s.sent)/stretches-1]
		m.n[i] = (whole/stretches + end - due - late).Seconds()
		late = end - due
	}
}

// without returns the quantity without one stretch, or of all stretches for -1. It is NaN if there are
// no values.
func (m *meter) without(j int) float64 {
	n, sum := 0.0, 0.0
	for i := range m.n {
		if i != j {
			n, sum = n+m.n[i], sum+m.sum[i]
		}
	}
	return sum / n
}

// all returns the values of a percentile.
func (m *meter) all() *stat.Digest {
	out := &stat.Digest{}
	for _, v := range m.values {
		out.Merge(v)
	}
	return out
}
