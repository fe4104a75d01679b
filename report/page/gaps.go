package page

import (
	"math"
	"sort"
	"strconv"
	"strings"

	"tacho"
)

// A gapCode says how the gaps between the tokens of a request are written: one
// letter each, and a number behind a letter repeats it.
type gapCode struct {
	Letters string  `json:"letters"`
	Base    float64 `json:"base"` // ms, the first letter
	Step    float64 `json:"step"` // how many times longer each letter is than the one before

	lengths, ends []float64 // of each letter: how long it is, and the longest gap that is written so
}

// code has letters for gaps from 0.5 ms to 50 s, each 16 % longer than the one
// before.
var code = newGapCode(letters(), 0.5, 1.16)

func newGapCode(letters string, base, step float64) gapCode {
	c := gapCode{Letters: letters, Base: base, Step: step}
	for i := range len(letters) {
		c.lengths = append(c.lengths, base*math.Pow(step, float64(i)))
		c.ends = append(c.ends, base*math.Pow(step, float64(i)+0.5))
	}
	return c
}

// letters are those that JSON and HTML write as they are, digits left out.
func letters() string {
	var b strings.Builder
	for c := byte('#'); c < 127; c++ {
		if !strings.ContainsRune(`0123456789"&<>\'`, rune(c)) {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// mostGaps is how many gaps of one request are kept; it is drawn to its last
// token all the same.
const mostGaps = 20_000

// encode writes the gaps between events. What rounding loses is carried on to
// the next gap, but moves none by more than 8 %: so each is within 17 % of what
// was measured, half of them within 5 %, and every token stays near its place.
func (c *gapCode) encode(events tacho.Events) string {
	var b strings.Builder
	carry, last, repeats := 0.0, -1, 0
	flush := func() {
		switch {
		case repeats > 2:
			b.WriteByte(c.Letters[last])
			b.WriteString(strconv.Itoa(repeats))
		case repeats > 0:
			b.WriteString(strings.Repeat(c.Letters[last:last+1], repeats))
		}
	}
	for i := 1; i < min(len(events), mostGaps+1); i++ {
		gap := float64(events[i].At-events[i-1].At) / 1e6
		aim := gap + max(-0.08*gap, min(0.08*gap, carry))
		at := min(sort.SearchFloat64s(c.ends, aim), len(c.Letters)-1)
		carry += gap - c.lengths[at]
		if at != last {
			flush()
			last, repeats = at, 0
		}
		repeats++
	}
	flush()
	return b.String()
}
