package compare

import (
	"math"
	"time"

	"tacho"
	"tacho/metric"
	"tacho/stat"
)

// A meter watches one quantity of a run in each stretch.
type meter struct {
	metric.Quantity
	known  bool                    // its requests tell the quantity
	n, sum [stretches]float64      // values and their sum; of a rate, seconds and what was served
	logs   [stretches]float64      // sum of the logarithms
	values [stretches]*stat.Digest // of a percentile
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

// smallest is the least value in the unit of a metric that has a logarithm of its
// own: a nanosecond of times in milliseconds.
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
			i = s.byTime(at)
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

// throughputs are what an answer adds to a rate.
var throughputs = map[string]func(answer) int{
	"request_throughput":     func(answer) int { return 1 },
	"output_throughput":      func(a answer) int { return a.output },
	"total_token_throughput": func(a answer) int { return a.input + a.output },
}

// serve cuts the answers of a rate into stretches of as many answers each, and
// takes the time of each. If a schedule says when requests are due, the gaps
// between them are known and are not noise: each stretch has an equal part of the
// schedule, and only what answers are later than requests varies.
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

// without is the quantity without one stretch, or of all stretches for -1; NaN
// where there are no values.
func (m *meter) without(j int) float64 {
	n, sum := 0.0, 0.0
	for i := range m.n {
		if i != j {
			n, sum = n+m.n[i], sum+m.sum[i]
		}
	}
	return sum / n
}

// all are the values of a percentile.
func (m *meter) all() *stat.Digest {
	out := &stat.Digest{}
	for _, v := range m.values {
		out.Merge(v)
	}
	return out
}
