package compare

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tacho"
	"tacho/metric"
	"tacho/outcome"
	"tacho/stat"
)

// An estimated is a value, and how far it may be off: its standard errors to
// either side, by so many degrees of freedom.
type estimated struct {
	value     float64
	low, high float64 // standard errors below and above; 0 with noTest
	freedom   float64
	runs      float64 // how far single runs of it spread; 0 where there is one run
	noTest    string
}

// estimates are those of a side's levels in one place, by quantity.
type estimates struct{ list []*estimated }

func (e *estimates) of(k int) *estimated { return e.list[k] }

const (
	noRequests = "only figures are known, and not the requests"
	tooFew     = "too few requests: repeat the runs"
	noMethod   = "nothing tells how far it may be off: repeat the runs"
)

// estimate is every quantity of the levels of one side. Two runs or more are
// units of a test, one run is cut into stretches.
func estimate(levels []*outcome.Level, quantities []metric.Quantity) (*estimates, error) {
	out := &estimates{list: make([]*estimated, len(quantities))}
	var err error
	switch len(levels) {
	case 0:
	case 1:
		err = out.within(levels[0], quantities)
	default:
		for k := range quantities {
			if out.list[k], err = between(levels, quantities[k]); err != nil {
				return nil, err
			}
		}
	}
	return out, err
}

// Value is a quantity of a level: as its summary has it, or from its requests
// where that did not ask for the percentile.
func Value(l *outcome.Level, q metric.Quantity) (float64, bool, error) {
	if v, ok := q.Of(&l.Summary); ok {
		return v, true, nil
	}
	if q.Metric == nil || q.P == 0 || l.Records == nil || l.Summary.Dist(q.Metric).Stats == nil {
		return 0, false, nil
	}
	var all stat.Digest
	for r, err := range l.Records() {
		if err != nil {
			return 0, false, err
		}
		q.Metric.Of(r, func(v float64) { all.Add(v) })
	}
	if all.N() == 0 {
		return 0, false, nil
	}
	return all.Distribution().Quantile(q.P / 100), true, nil
}

// between is the mean of several runs, by how they spread.
func between(levels []*outcome.Level, q metric.Quantity) (*estimated, error) {
	var values []float64
	for _, l := range levels {
		v, ok, err := Value(l, q)
		if err != nil {
			return nil, err
		}
		if ok {
			values = append(values, v)
		}
	}
	n := float64(len(values))
	if n == 0 {
		return nil, nil
	}
	mean, spread := meanStd(values)
	e := &estimated{value: mean, low: spread / math.Sqrt(n), high: spread / math.Sqrt(n), freedom: n - 1, runs: spread}
	if n < 2 {
		e.noTest = tooFew
	}
	return e, nil
}

// meanStd is the mean, and the standard deviation of a sample.
func meanStd(values []float64) (mean, std float64) {
	for _, v := range values {
		mean += v / float64(len(values))
	}
	for _, v := range values {
		std += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(std / max(float64(len(values)-1), 1))
}

// stretches is into how many parts a run is cut. Each must be long beside the
// time for which requests resemble each other, and there must be enough of them
// to see how they spread.
const (
	stretches      = 20
	fewestRequests = 2 * stretches
)

// within takes one run: values from its summary, and how far they may be off from
// how its stretches differ.
func (e *estimates) within(l *outcome.Level, quantities []metric.Quantity) error {
	for k, q := range quantities {
		v, ok, err := Value(l, q)
		if err != nil {
			return err
		}
		if ok {
			e.list[k] = &estimated{value: v, noTest: noMethod}
		}
	}
	if l.Records == nil {
		e.refuse(noRequests)
		return nil
	}
	cut, err := newCut(l)
	if err != nil {
		return err
	}
	if cut.requests < fewestRequests {
		e.refuse(tooFew)
		return nil
	}
	return e.measure(l, quantities, cut)
}

// measure says how far the values of a run may be off.
func (e *estimates) measure(l *outcome.Level, quantities []metric.Quantity, cut *cut) error {
	meters := map[int]*meter{}
	for k, one := range e.list {
		if one != nil {
			meters[k] = &meter{Quantity: quantities[k], value: one.value}
		}
	}
	for r, err := range l.Records() {
		if err != nil {
			return fmt.Errorf("read records: %w", err)
		}
		for _, m := range meters {
			m.add(r, cut)
		}
	}
	for k, m := range meters {
		m.measure(e.list[k], cut)
	}
	return nil
}

func (e *estimates) refuse(why string) {
	for _, one := range e.list {
		if one != nil {
			one.noTest = why
		}
	}
}

// A cut is where the stretches of a run begin.
type cut struct {
	sent     [stretches]time.Duration // by when requests were sent: as many in each
	span     time.Duration            // by when they ended: equal times
	requests int
}

func newCut(l *outcome.Level) (*cut, error) {
	c := &cut{}
	var sent []time.Duration
	for r, err := range l.Records() {
		if err != nil {
			return nil, fmt.Errorf("read records: %w", err)
		}
		sent = append(sent, sentAt(r))
		c.span = max(c.span, r.End)
	}
	slices.Sort(sent)
	c.requests = len(sent)
	for i := range c.sent {
		if len(sent) > 0 {
			c.sent[i] = sent[i*len(sent)/stretches]
		}
	}
	return c, nil
}

func sentAt(r *tacho.Record) time.Duration {
	if r.Sent == tacho.Never {
		return r.Due
	}
	return r.Sent
}

// bySent is the stretch in which a request was sent, and byEnd the one in which
// it ended.
func (c *cut) bySent(r *tacho.Record) int {
	at := sentAt(r)
	i, found := slices.BinarySearch(c.sent[:], at)
	if !found {
		i--
	}
	return max(i, 0)
}

func (c *cut) byEnd(r *tacho.Record) int {
	return min(int(float64(r.End)/float64(max(c.span, 1))*stretches), stretches-1)
}

// A meter watches one quantity in each stretch.
type meter struct {
	metric.Quantity
	value float64
	n     [stretches]float64 // values
	sum   [stretches]float64 // of the values; of a percentile, how many are above; of a rate, what was served
	all   stat.Digest        // of a percentile
}

func (m *meter) add(r *tacho.Record, c *cut) {
	if m.Metric == nil {
		m.addWhole(r, c)
		return
	}
	i := c.bySent(r)
	m.Metric.Of(r, func(v float64) {
		m.n[i]++
		if m.P == 0 {
			m.sum[i] += v
			return
		}
		m.all.Add(v)
		if v > m.value {
			m.sum[i]++
		}
	})
}

func (m *meter) addWhole(r *tacho.Record, c *cut) {
	switch m.Name {
	case "failures":
		if r.OK() || r.Failure.Cause != tacho.Canceled {
			m.n[c.bySent(r)]++
		}
		if !r.OK() && r.Failure.Cause != tacho.Canceled {
			m.sum[c.bySent(r)] += 100
		}
	case "request_throughput":
		if r.OK() {
			m.sum[c.byEnd(r)]++
		}
	case "output_throughput":
		if r.OK() {
			m.sum[c.byEnd(r)] += float64(r.Output)
		}
	case "total_token_throughput":
		if r.OK() {
			m.sum[c.byEnd(r)] += float64(r.Output + metric.InputTokens(r))
		}
	}
}

// measure says how far the value may be off.
func (m *meter) measure(to *estimated, c *cut) {
	served := m.Metric == nil && m.Name != "failures"
	n, total := 0.0, 0.0
	for i := range m.n {
		if served {
			m.n[i] = c.span.Seconds() / stretches
		}
		n, total = n+m.n[i], total+m.sum[i]
	}
	if n == 0 || served && total == 0 {
		return
	}
	mean := total / n // of what is watched: of a percentile, the share above it
	var off [stretches]float64
	for i := range off {
		off[i] = m.sum[i] - mean*m.n[i]
	}
	se := spread(off[:]) / n
	to.noTest, to.freedom = "", stretches-1
	to.low, to.high = se, se
	if m.P > 0 {
		// An error of the share is one of the value, by the values around it.
		q, values := m.P/100, m.all.Distribution()
		to.low, to.high = m.value-values.Quantile(max(q-se, 0)), values.Quantile(min(q+se, 1))-m.value
		if q+2*se >= 1 && m.P > 50 || float64(m.all.N())*(1-q) < fewestAbove {
			to.noTest = fmt.Sprintf("too few requests for P%g: repeat the runs, or run longer", m.P)
		}
	}
}

// fewestAbove is how many values must lie above a percentile for it to be tested.
const fewestAbove = 5

// spread is the standard error of a sum of stretches. Where stretches that follow
// each other resemble each other, there are fewer independent ones.
func spread(off []float64) float64 {
	squares, products := 0.0, 0.0
	for i, v := range off {
		squares += v * v
		if i > 0 {
			products += v * off[i-1]
		}
	}
	if squares == 0 {
		return 0
	}
	n := float64(len(off))
	alike := min(max(products/squares, 0), 0.9)
	return math.Sqrt(squares * n / (n - 1) * (1 + alike) / (1 - alike))
}
