package step

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

func TestStepTime(t *testing.T) {
	c := Cost{
		Step:                        []Knot{{4, 10}, {8, 20}, {16, 28}},
		Prefill:                     []Knot{{10, 5}, {20, 7}},
		DecodeNsPerContextToken:     1000,
		PrefillNsPerTokenAndContext: 100,
		LongContextTokens:           500,
		LongContextMs:               3,
		MixedUsPerSequence:          500,
	}
	tick := c
	tick.TickMs = 12
	for _, tc := range []struct {
		name   string
		cost   Cost
		load   load
		wantMs float64
	}{
		{"level before the first knot", c, load{decode: 1}, 10},
		{"on a knot", c, load{decode: 8}, 20},
		{"between knots", c, load{decode: 6}, 15},
		{"in the second piece", c, load{decode: 12}, 24},
		{"beyond the last knot", c, load{decode: 24}, 36},
		{"prefill and decode together", c, load{decode: 2, prefill: 4}, 15},
		{"decodes among prompts", c, load{decode: 2, sequences: 2, prefill: 4}, 16},
		{"decodes alone", c, load{decode: 4, sequences: 4}, 10},
		{"prefill alone", c, load{prefill: 15}, 6},
		{"context of decodes", c, load{decode: 4, decodeContext: 400}, 10.4},
		{"context of prefill", c, load{prefill: 10, prefillPairs: 20_000}, 7},
		{"long context", c, load{decode: 4, longestContext: 501}, 13},
		{"not yet long", c, load{decode: 4, longestContext: 500}, 10},
		{"long context in a mixed step", c, load{decode: 3, prefill: 1, longestContext: 501}, 10},
		{"shorter than the tick", tick, load{decode: 4}, 10},
		{"longer than the tick", tick, load{decode: 6}, 24},
		{"one knot", Cost{Step: []Knot{{8, 5}}}, load{decode: 100}, 5},
		{"a line that falls below zero", Cost{Step: []Knot{{1, 5}, {2, 1}}}, load{decode: 100}, inMs(shortestStep)},
		{"without bounds", Cost{Step: []Knot{{1, 1}, {2, maxMs}}}, load{decode: maxCount}, inMs(longestStep)},
	} {
		got := (&Profile{Cost: tc.cost}).stepTime(tc.load, 0)
		if want := time.Duration(tc.wantMs * float64(time.Millisecond)); got.Round(time.Nanosecond) != want {
			t.Errorf("%s: %v, want %v", tc.name, got, want)
		}
	}
}

func TestNoise(t *testing.T) {
	c := Cost{Step: []Knot{{1, 100}}, Noise: 0.1}
	rng := rand.New(rand.NewPCG(1, 1))
	const n = 10_000
	var sum, squares float64
	for range n {
		x := math.Log(inMs(c.withNoise(c.millis(load{decode: 1}), rng.NormFloat64())) / 100)
		sum += x
		squares += x * x
	}
	mean, sd := sum/n, math.Sqrt(squares/n)
	if math.Abs(mean) > 0.004 || math.Abs(sd-0.1) > 0.003 { // four standard errors
		t.Errorf("logarithm has mean %.4f and deviation %.4f, want 0 and 0.1", mean, sd)
	}
}

func TestLengths(t *testing.T) {
	for _, tc := range []struct {
		l              Lengths
		prompt         int
		mean           float64
		lowest, longes int
	}{
		{Lengths{Mean: 7.4, Max: 100}, 80, 7, 7, 7},
		{Lengths{Kind: "uniform", Min: 3, Max: 9}, 80, 6, 3, 9},
		{Lengths{Kind: "normal", Mean: 50, SD: 10, Max: 1000}, 80, 50, 1, 100},
		{Lengths{Kind: "normal", Mean: 50, SD: 10, Min: 50, Max: 50}, 80, 50, 50, 50},
		{Lengths{Kind: "lognormal", Mean: 200, SD: 180, Max: maxCount}, 80, 200, 1, maxCount},
		{Lengths{Kind: "normal", Mean: 50, SD: 10, Max: 1000, Long: LongLengths{From: 80, Mean: 120, SD: 5}}, 79, 50, 1, 100},
		{Lengths{Kind: "normal", Mean: 50, SD: 10, Max: 1000, Long: LongLengths{From: 80, Mean: 120, SD: 5}}, 80, 120, 90, 150},
	} {
		must.Do(t, tc.l.validate())
		rng := rand.New(rand.NewPCG(1, 2))
		const n = 20_000
		sum := 0
		for range n {
			v := tc.l.draw(tc.prompt, rng)
			if v < tc.lowest || v > tc.longes {
				t.Fatalf("%+v: drew %d", tc.l, v)
			}
			sum += v
		}
		if mean := float64(sum) / n; math.Abs(mean-tc.mean) > 0.03*tc.mean {
			t.Errorf("%+v: mean %.2f, want %.2f", tc.l, mean, tc.mean)
		}
	}
}
