package step

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// Cost is the duration of a step as a function of its contents.
type Cost struct {
	Step    []Knot `yaml:"step"`    // duration over tokens in the step; linear between knots
	Prefill []Knot `yaml:"prefill"` // for steps without decodes; Step if empty
	Decode  []Knot `yaml:"decode"`  // for steps with decodes only; Step if empty

	DecodeNsPerContextToken     float64 `yaml:"decode_ns_per_context_token"`      // for each context token of each decode
	MixedUsPerSequence          float64 `yaml:"mixed_us_per_sequence"`            // for each decode in a step with prompt tokens
	PrefillNsPerTokenAndContext float64 `yaml:"prefill_ns_per_token_and_context"` // for each pair of a computed token and a token it attends to

	LongContextTokens int     `yaml:"long_context_tokens"` // a decode-only step with a longer context than this ...
	LongContextMs     float64 `yaml:"long_context_ms"`     // ... takes this much longer

	Noise  float64 `yaml:"noise"`   // standard deviation of the logarithm of a step's duration
	TickMs float64 `yaml:"tick_ms"` // a longer step ends on a multiple of TickMs; 0: no tick
}

// A Knot is a corner of a piecewise linear function of tokens. The function is
// constant before the first knot and continues its last slope after the last.
type Knot struct {
	Tokens int     `yaml:"tokens"`
	Ms     float64 `yaml:"ms"`
}

// load is the work of one step.
type load struct {
	prefill        int     // prompt tokens
	decode         int     // tokens of decoding sequences, drafts included
	sequences      int     // decoding sequences
	prefillPairs   float64 // sum over prompt tokens of the context each attends to
	decodeContext  float64 // sum of the contexts of the decoding sequences
	longestContext int     // longest context of a decoding sequence

	adapters int // distinct adapters of the sequences
	loaded   int // adapters loaded for this step
	moved    int // tokens whose keys and values are moved between memories
}

// shortestStep keeps time moving if a profile's cost is zero or negative.
const shortestStep = time.Microsecond

// longestStep keeps sums of step times within a time.Duration.
const longestStep = time.Hour

// stepTime returns the duration of a step, including speculation, adapters,
// transfers and parallelism.
func (p *Profile) stepTime(l load, normal float64) time.Duration {
	ms := p.Cost.millis(l)
	if n := p.Parallel.Tensor; n > 1 {
		ms = ms/float64(n) + p.Parallel.AllReduceMs + p.Parallel.AllReducePerTokenUs*float64(l.prefill+l.decode)/1e3
	}
	if l.sequences > 0 {
		ms += float64(p.Speculation.DraftTokens) * (p.Speculation.DraftMs + p.Speculation.DraftPerSequenceUs*float64(l.sequences)/1e3)
	}
	ms += p.LoRA.LoadMs*float64(l.loaded) + p.LoRA.PerAdapterUs*float64(l.adapters)/1e3
	if l.moved > 0 {
		ms += p.KV.moveMs(l.moved, p.Offload.GBPerS)
	}
	return p.Cost.withNoise(ms, normal)
}

// millis returns the duration of a step according to the cost lines.
func (c *Cost) millis(l load) float64 {
	line := c.Step
	switch {
	case l.decode == 0 && len(c.Prefill) > 0:
		line = c.Prefill
	case l.prefill == 0 && len(c.Decode) > 0:
		line = c.Decode
	}
	ms := interpolate(line, float64(l.prefill+l.decode))
	ms += (c.DecodeNsPerContextToken*l.decodeContext + c.PrefillNsPerTokenAndContext*l.prefillPairs) / 1e6
	if l.prefill > 0 {
		ms += c.MixedUsPerSequence * float64(l.sequences) / 1e3
	}
	if l.prefill == 0 && c.LongContextTokens > 0 && l.longestContext > c.LongContextTokens {
		ms += c.LongContextMs
	}
	return ms
}

// withNoise returns the duration of a step with noise and tick applied. normal is a
// random number from the standard normal distribution.
func (c *Cost) withNoise(ms, normal float64) time.Duration {
	if c.Noise > 0 {
		ms *= math.Exp(c.Noise * normal)
	}
	if c.TickMs > 0 && ms > c.TickMs {
		ms = math.Ceil(ms/c.TickMs) * c.TickMs
	}
	return max(shortestStep, min(longestStep, milliseconds(ms)))
}

// milliseconds converts ms to a Duration and saturates far below the largest
// Duration.
func milliseconds(ms float64) time.Duration {
	return time.Duration(min(ms, 1000*maxMs) * float64(time.Millisecond))
}

func interpolate(line []Knot, tokens float64) float64 {
	if len(line) == 1 || tokens <= float64(line[0].Tokens) {
		return line[0].Ms
	}
	i := 1
	for i < len(line)-1 && tokens > float64(line[i].Tokens) {
		i++
	}
	a, b := line[i-1], line[i]
	return a.Ms + (b.Ms-a.Ms)*(tokens-float64(a.Tokens))/float64(b.Tokens-a.Tokens)
}

func (c *Cost) validate() error {
	if len(c.Step) == 0 {
		return errors.New("step: needs at least one {tokens, ms}")
	}
	for _, line := range []struct {
		field string
		knots []Knot
	}{{"step", c.Step}, {"prefill", c.Prefill}, {"decode", c.Decode}} {
		last := 0
		for i, k := range line.knots {
			if k.Tokens <= last || k.Tokens > maxCount {
				return fmt.Errorf("%s[%d].tokens: %d must be above %d, because knots are in ascending order", line.field, i, k.Tokens, last)
			}
			if err := within(fmt.Sprintf("%s[%d].ms", line.field, i), k.Ms, 0, maxMs); err != nil {
				return err
			}
			last = k.Tokens
		}
	}
	for _, f := range []struct {
		field string
		value float64
		hi    float64
	}{
		{"decode_ns_per_context_token", c.DecodeNsPerContextToken, 1e9},
		{"mixed_us_per_sequence", c.MixedUsPerSequence, 1e6},
		{"prefill_ns_per_token_and_context", c.PrefillNsPerTokenAndContext, 1e9},
		{"long_context_tokens", float64(c.LongContextTokens), maxCount},
		{"long_context_ms", c.LongContextMs, maxMs},
		{"noise", c.Noise, 2},
		{"tick_ms", c.TickMs, maxMs},
	} {
		if err := within(f.field, f.value, 0, f.hi); err != nil {
			return err
		}
	}
	return nil
}
