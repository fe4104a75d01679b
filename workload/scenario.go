package workload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
)

// Scenario is a joint distribution of prompt and output lengths, in one of the common
// notations:
//
//	D(100,50)                      prompts of 100 tokens, outputs of 50
//	N(480,240)/(300,150)           both normal; also U, L and G
//	uniform(50,100)/lognormal(200,0.5)
//	256|32,128|16:40;1024,64:60    several pairs of MEAN|DEVIATION, with weights
//
// Its zero value means no scenario.
type Scenario struct {
	pairs []lengthPair
	sums  []float64
	text  string
}

type lengthPair struct{ in, out Length }

// Given reports whether there is a scenario.
func (s *Scenario) Given() bool { return len(s.pairs) > 0 }

// Draw returns a prompt length and an output length.
func (s *Scenario) Draw(r *rand.Rand) (in, out int) {
	p := &s.pairs[0]
	if len(s.pairs) > 1 {
		p = &s.pairs[pick(s.sums, r)]
	}
	return p.in.Draw(r, 1), p.out.Draw(r, 1)
}

// MarshalText implements encoding.TextMarshaler.
func (s Scenario) MarshalText() ([]byte, error) { return []byte(s.text), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Scenario) UnmarshalText(b []byte) error {
	text := strings.TrimSpace(string(b))
	if text == "" {
		*s = Scenario{}
		return nil
	}
	out := Scenario{text: text}
	sum := 0.0
	for part := range strings.SplitSeq(text, ";") {
		pair, weight, err := parsePair(strings.TrimSpace(part))
		if err != nil {
			return fmt.Errorf("scenario %q: %w", text, err)
		}
		sum += weight
		out.pairs, out.sums = append(out.pairs, pair), append(out.sums, sum)
	}
	*s = out
	return nil
}

// parsePair parses one pair, with parentheses or in the notation with bars.
func parsePair(text string) (p lengthPair, weight float64, err error) {
	if !strings.Contains(text, "(") {
		return parseBars(text)
	}
	in, out, two := strings.Cut(text, "/")
	name, args, ok := strings.Cut(in, "(")
	if !two {
		a, b, comma := strings.Cut(strings.TrimSuffix(args, ")"), ",")
		if !strings.EqualFold(name, "d") || !comma || !ok {
			return p, 0, fmt.Errorf("%q: write D(100,50), or N(480,240)/(300,150)", text)
		}
		return p, 1, firstError(p.in.UnmarshalText([]byte(a)), p.out.UnmarshalText([]byte(b)))
	}
	if strings.HasPrefix(out, "(") {
		out = name + out // the second pair of parentheses uses the name of the first
	}
	return p, 1, firstError(p.in.UnmarshalText([]byte(in)), p.out.UnmarshalText([]byte(out)))
}

// parseBars parses MEAN|DEVIATION,MEAN|DEVIATION:WEIGHT.
func parseBars(text string) (p lengthPair, weight float64, err error) {
	lengths, share, weighted := strings.Cut(text, ":")
	weight = 1
	if weighted {
		if weight, err = strconv.ParseFloat(share, 64); err != nil || !(weight > 0) {
			return p, 0, fmt.Errorf("weight %q: write a number above 0", share)
		}
	}
	in, out, ok := strings.Cut(lengths, ",")
	if !ok {
		return p, 0, fmt.Errorf("%q: write INPUT,OUTPUT or INPUT|DEVIATION,OUTPUT|DEVIATION", text)
	}
	bar := func(l *Length, text string) error {
		mean, dev, ok := strings.Cut(strings.TrimSpace(text), "|")
		if ok {
			mean = "normal(" + mean + "," + dev + ")"
		}
		return l.UnmarshalText([]byte(mean))
	}
	return p, weight, firstError(bar(&p.in, in), bar(&p.out, out))
}
