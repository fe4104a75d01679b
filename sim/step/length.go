package step

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

// Lengths is a distribution of output lengths, in tokens, for requests that
// do not say how much they will get.
type Lengths struct {
	Kind string  `yaml:"kind"` // one of lengthKinds; empty: fixed
	Mean float64 `yaml:"mean"` // fixed, normal, lognormal
	SD   float64 `yaml:"sd"`   // normal, lognormal
	Min  int     `yaml:"min"`  // least there is; 0: 1
	Max  int     `yaml:"max"`  // most there is, and the limit of a request that names none
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
}

func (l *Lengths) kind() (lengthKind, bool) {
	for _, k := range lengthKinds {
		if k.Name == l.Kind || l.Kind == "" {
			return k, true
		}
	}
	return lengthKind{}, false
}

func (l *Lengths) draw(rng *rand.Rand) int {
	k, _ := l.kind() // New has validated it
	v := math.Round(k.draw(l, rng))
	return int(min(max(v, float64(l.Min), 1), float64(l.Max)))
}

func (l *Lengths) validate() error {
	k, ok := l.kind()
	if !ok {
		names := make([]string, len(lengthKinds))
		for i, k := range lengthKinds {
			names[i] = k.Name
		}
		return fmt.Errorf("kind: %q is none of %s", l.Kind, strings.Join(names, ", "))
	}
	if err := within("max", float64(l.Max), 1, maxCount); err != nil {
		return err
	}
	if err := within("min", float64(l.Min), 0, float64(l.Max)); err != nil {
		return err
	}
	if k.Name == "uniform" {
		return nil
	}
	if err := within("mean", l.Mean, 1, maxCount); err != nil {
		return err
	}
	return within("sd", l.SD, 0, maxCount)
}
