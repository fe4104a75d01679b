package workload

import (
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/tacho-bench/tacho"
)

// Class is one part of a mix.
type Class struct {
	Workload
	Weight   float64
	Label    string // value of the "class" label in reports
	Model    string // adapter or model; empty means the model of the run
	Priority *int   // sent as priority
	Header   []tacho.Label
}

// Mix assigns sessions to the classes by weight. It works in rounds: each round contains
// every class exactly in proportion to its weight, in an order drawn from the seed. The
// class of session i, and its number within the class, therefore depend only on the seed
// and i.
func Mix(seed uint64, classes []Class) (Workload, error) {
	if len(classes) == 0 {
		return nil, errors.New("the mix is empty")
	}
	m := &mixed{seed: seed, classes: classes}
	weights, err := wholeWeights(classes)
	if err != nil {
		return nil, err
	}
	m.weights = weights
	for c, n := range weights {
		for range n {
			m.slots = append(m.slots, c)
		}
	}
	return m, nil
}

// roundSize is the number of sessions in a round if the weights are not small integers.
const roundSize = 1000

// wholeWeights converts the weights to small integers.
func wholeWeights(classes []Class) ([]int, error) {
	sum, isWhole := 0.0, true
	for _, c := range classes {
		if !(c.Weight > 0) || math.IsInf(c.Weight, 0) {
			return nil, fmt.Errorf("class %s: weight %v must be above 0", c.Label, c.Weight)
		}
		sum += c.Weight
		isWhole = isWhole && c.Weight == math.Trunc(c.Weight)
	}
	out := make([]int, len(classes))
	common := 0
	for i, c := range classes {
		n := c.Weight
		if !isWhole || sum > roundSize {
			n = math.Max(math.Round(c.Weight/sum*roundSize), 1)
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
	slots   []int // class of each session of a round, before shuffling
}

// place returns the class of session i and its number within the class.
func (m *mixed) place(i uint64) (class int, at uint64) {
	round, k := i/uint64(len(m.slots)), int(i%uint64(len(m.slots)))
	order := rngOf(m.seed^0x6d6978, round).Perm(len(m.slots))
	class = m.slots[order[k]]
	before := 0
	for _, o := range order[:k] {
		if m.slots[o] == class {
			before++
		}
	}
	return class, round*uint64(m.weights[class]) + uint64(before)
}

// Session implements tacho.Source. The mix ends when the first class ends.
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
	c.apply(&s, i)
	return s, nil
}

// Warmup implements Workload.
func (m *mixed) Warmup(i uint64) (tacho.Session, error) {
	class, at := m.place(i)
	c := &m.classes[class]
	s, err := c.Warmup(at)
	if err == nil {
		c.apply(&s, warmupBase+i)
	}
	return s, err
}

// apply sets the session number within the mix and the settings of the class.
func (c *Class) apply(s *tacho.Session, i uint64) {
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
			setExtra(q, "priority", *c.Priority)
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
