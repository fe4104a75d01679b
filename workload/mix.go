package workload

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math"

	"tacho"
)

// A Class is one part of a mix.
type Class struct {
	Workload
	Weight   float64
	Label    string // the report splits by it
	Model    string // adapter or model; empty is the run's
	Priority *int   // sent as priority
	Header   []tacho.Label
}

// Mix deals sessions out to the classes by their weights. It deals in rounds: in
// each, every class has exactly its part, in an order that the seed gives. So the
// class of session i, and its number there, follow from i.
func Mix(seed uint64, classes []Class) (Workload, error) {
	if len(classes) == 0 {
		return nil, errors.New("a mix of nothing")
	}
	m := &mixed{seed: seed, classes: classes}
	weights, err := wholeWeights(classes)
	if err != nil {
		return nil, err
	}
	m.weights = weights
	for c, n := range weights {
		for range n {
			m.deal = append(m.deal, c)
		}
	}
	return m, nil
}

// finestWeights is how many sessions a round has if the weights are not small
// whole numbers.
const finestWeights = 1000

// wholeWeights are the weights as small whole numbers.
func wholeWeights(classes []Class) ([]int, error) {
	sum, isWhole := 0.0, true
	for _, c := range classes {
		if !(c.Weight > 0) || math.IsInf(c.Weight, 0) {
			return nil, fmt.Errorf("class %s has the weight %v: it must be above 0", c.Label, c.Weight)
		}
		sum += c.Weight
		isWhole = isWhole && c.Weight == math.Trunc(c.Weight)
	}
	out := make([]int, len(classes))
	common := 0
	for i, c := range classes {
		n := c.Weight
		if !isWhole || sum > finestWeights {
			n = math.Max(math.Round(c.Weight/sum*finestWeights), 1)
		}
		out[i] = int(n)
		common = gcd(common, out[i])
	}
	for i := range out {
		out[i] /= common
	}
	return out, nil
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

type mixed struct {
	seed    uint64
	classes []Class
	weights []int
	deal    []int // the class of each session of a round, before it is shuffled
}

// place is the class of session i and its number in that class.
func (m *mixed) place(i uint64) (class int, at uint64) {
	round, k := i/uint64(len(m.deal)), int(i%uint64(len(m.deal)))
	order := rngOf(m.seed^0x6d6978, round).Perm(len(m.deal))
	class = m.deal[order[k]]
	before := 0
	for _, o := range order[:k] {
		if m.deal[o] == class {
			before++
		}
	}
	return class, round*uint64(m.weights[class]) + uint64(before)
}

// Session implements tacho.Source. The mix ends with the first class that
// does.
func (m *mixed) Session(i uint64) (tacho.Session, error) {
	class, at := m.place(i)
	c := &m.classes[class]
	s, err := c.Session(at)
	if err != nil {
		if !errors.Is(err, io.EOF) {
			err = fmt.Errorf("class %s: %w", c.Label, err)
		}
		return s, err
	}
	c.dress(&s, i)
	return s, nil
}

// Warmup implements Workload.
func (m *mixed) Warmup(i uint64) (tacho.Session, error) {
	class, at := m.place(i)
	c := &m.classes[class]
	s, err := c.Warmup(at)
	if err == nil {
		c.dress(&s, warmupBase+i)
	}
	return s, err
}

// dress gives a session its number in the mix and what its class asks for.
func (c *Class) dress(s *tacho.Session, i uint64) {
	s.ID = i
	for t := range s.Turns {
		q := &s.Turns[t].Request
		q.Session = i
		q.Labels = append(tacho.Labels{{Key: "class", Value: c.Label}}, q.Labels...)
		if c.Model != "" {
			q.Model = c.Model
		}
		q.Header = append(q.Header, c.Header...)
		if c.Priority != nil {
			q.Extra = maps.Clone(q.Extra)
			if q.Extra == nil {
				q.Extra = map[string]any{}
			}
			q.Extra["priority"] = *c.Priority
		}
	}
}

// Notes implements Workload.
func (m *mixed) Notes() []string {
	var out []string
	for i := range m.classes {
		for _, n := range m.classes[i].Notes() {
			out = append(out, m.classes[i].Label+": "+n)
		}
	}
	return out
}
