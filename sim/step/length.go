package step

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Lengths is a distribution of output lengths in tokens, for requests that do not
// specify a length.
type Lengths struct {
	Kind string  `yaml:"kind"` // one of lengthKinds; fixed if empty
	Mean float64 `yaml:"mean"` // fixed, normal, lognormal
	SD   float64 `yaml:"sd"`   // normal, lognormal
	Min  int     `yaml:"min"`  // minimum; 0: 1
	Max  int     `yaml:"max"`  // maximum, and the limit of a request without a limit

	Histogram []LengthBin `yaml:"histogram"` // histogram

	Long LongLengths `yaml:"long"` // normal, lognormal: for long prompts
}

// LongLengths are the output lengths for prompts of at least From tokens. If From
// is 0, output lengths do not depend on the prompt.
type LongLengths struct {
	From int     `yaml:"from"`
	Mean float64 `yaml:"mean"`
	SD   float64 `yaml:"sd"`
}

// A LengthBin is a range of equally likely lengths: above the previous bin, or from
// Lengths.Min, up to To.
type LengthBin struct {
	To    int     `yaml:"to"`
	Share float64 `yaml:"share"` // fraction of all lengths, or any number proportional to it
}

// A lengthKind is one shape of Lengths.
type lengthKind struct {
	Name string
	draw func(l *Lengths, rng *rand.Rand) float64
}

// lengthKinds are the shapes a profile may name.
var lengthKinds = []lengthKind{
	{"fixed", func(l *Lengths, _ *rand.Rand) float64 { return l.Mean }},
	{"uniform", func(l *Lengths, rng *rand.Rand) float64 {
		return float64(l.Min) + rng.Float64()*float64(l.Max-l.Min+1) - 0.5
	}},
	{"normal", func(l *Lengths, rng *rand.Rand) float64 { return l.Mean + l.SD*rng.NormFloat64() }},
	{"lognormal", func(l *Lengths, rng *rand.Rand) float64 {
		variance := math.Log1p(l.SD * l.SD / (l.Mean * l.Mean))
		return l.Mean * math.Exp(math.Sqrt(variance)*rng.NormFloat64()-variance/2)
	}},
	{histogram, func(l *Lengths, rng *rand.Rand) float64 { return float64(l.drawBin(rng)) }},
}

const histogram = "histogram"

func (l *Lengths) drawBin(rng *rand.Rand) int {
	all := 0.0
	for _, b := range l.Histogram {
		all += b.Share
	}
	at, above := rng.Float64()*all, max(l.Min, 1)-1
	for i, b := range l.Histogram {
		if at -= b.Share; at < 0 || i == len(l.Histogram)-1 {
			return above + 1 + rng.IntN(b.To-above)
		}
		above = b.To
	}
	return above // validate ensures at least one bin
}

func (l *Lengths) validateBins() error {
	if len(l.Histogram) == 0 {
		return errors.New("histogram is empty: write at least one {to, share}")
	}
	above, all := max(l.Min, 1)-1, 0.0
	for i, b := range l.Histogram {
		if b.To <= above || b.To > l.Max {
			return fmt.Errorf("histogram[%d].to: %d must be above %d, and at most max: %d", i, b.To, above, l.Max)
		}
		if err := within(fmt.Sprintf("histogram[%d].share", i), b.Share, 0, maxCount); err != nil {
			return err
		}
		above, all = b.To, all+b.Share
	}
	if all == 0 {
		return errors.New("histogram: all shares are 0")
	}
	return nil
}

func (l *Lengths) kind() (lengthKind, bool) {
	for _, k := range lengthKinds {
		if k.Name == l.Kind || l.Kind == "" {
			return k, true
		}
	}
	return lengthKind{}, false
}

func (l *Lengths) draw(prompt int, rng *rand.Rand) int {
	k, _ := l.kind() // New has validated it
	of := *l
	if l.Long.From > 0 && prompt >= l.Long.From {
		of.Mean, of.SD = l.Long.Mean, l.Long.SD
	}
	v := math.Round(k.draw(&of, rng))
	return int(min(max(v, float64(l.Min), 1), float64(l.Max)))
}

func (l *Lengths) validate() error {
	k, ok := l.kind()
	if !ok {
		names := make([]string, len(lengthKinds))
		for i, k := range lengthKinds {
			names[i] = k.Name
		}
		return fmt.Errorf("kind: %q is not one of %s", l.Kind, strings.Join(names, ", "))
	}
	if err := within("max", float64(l.Max), 1, maxCount); err != nil {
		return err
	}
	if err := within("min", float64(l.Min), 0, float64(l.Max)); err != nil {
		return err
	}
	if len(l.Histogram) > 0 && k.Name != histogram {
		return errors.New("histogram: only allowed with kind histogram")
	}
	switch k.Name {
	case "uniform", histogram:
		if l.Long != (LongLengths{}) {
			return fmt.Errorf("long: not allowed with kind %s", k.Name)
		}
		if k.Name == histogram {
			return l.validateBins()
		}
		return nil
	}
	if err := within("mean", l.Mean, 1, maxCount); err != nil {
		return err
	}
	if err := within("sd", l.SD, 0, maxCount); err != nil || l.Long == (LongLengths{}) {
		return err
	}
	return l.Long.validate()
}

func (l *LongLengths) validate() error {
	return cmp.Or(within("long.from", float64(l.From), 1, maxCount), within("long.mean", l.Mean, 1, maxCount), within("long.sd", l.SD, 0, maxCount))
}
