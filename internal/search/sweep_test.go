package search_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/tacho-bench/tacho/internal/search"
)

// closed returns a server in a closed loop: a latency of unloaded seconds up to a
// throughput of most requests per second.
func closed(unloaded, most float64) func(float64) search.Seen {
	return func(n float64) search.Seen {
		// A soft knee, as batching makes it.
		x := 1 / math.Pow(math.Pow(unloaded/n, 4)+math.Pow(1/most, 4), 0.25)
		return search.Seen{Load: n, Throughput: x, Latency: n / x}
	}
}

// open returns a queue with a capacity in an open loop of 30 s.
func open(unloaded, most float64) func(float64) search.Seen {
	return func(rate float64) search.Seen {
		served := min(rate, most)
		wait := 30 * max(rate-most, 0) / most / 2
		if rate < most {
			wait = min(rate/most/(1-rate/most), 10)
		}
		return search.Seen{Load: rate, Throughput: served, Latency: unloaded * (1 + wait)}
	}
}

func sweep(s search.Sweep, server func(float64) search.Seen) (loads []float64, end search.Sweep) {
	for {
		load, ok := s.Next()
		if !ok {
			return loads, s
		}
		loads = append(loads, load)
		s.Add(server(load))
	}
}

// A sweep begins at concurrency 1, ends just past saturation, and has most of
// its levels near the knee.
func TestSweepFindsTheBend(t *testing.T) {
	for _, knee := range []float64{3, 20, 130, 900} {
		t.Run(fmt.Sprintf("knee=%v", knee), func(t *testing.T) {
			const unloaded = 2.0
			for name, run := range map[string]func() ([]float64, search.Sweep){
				"closed": func() ([]float64, search.Sweep) {
					return sweep(search.Sweep{Points: 10, First: 1, Whole: true}, closed(unloaded, knee/unloaded))
				},
				"open": func() ([]float64, search.Sweep) {
					return sweep(search.Sweep{Points: 10, First: 1 / unloaded}, open(unloaded, knee/unloaded))
				},
			} {
				loads, end := run()
				inFlight := slices.Clone(loads)
				if name == "open" {
					for i := range inFlight {
						inFlight[i] *= unloaded
					}
				}
				near := 0
				for _, n := range inFlight {
					if n >= knee/4 && n <= knee*4 {
						near++
					}
				}
				top := slices.Max(inFlight)
				if len(loads) > 10 || inFlight[0] != 1 || !end.Saturated() || top < knee || top > 8*knee+8 || near < len(loads)/2 {
					t.Errorf("%s: %v: %d of %d near the knee at %v, saturated %v", name, inFlight, near, len(loads), knee, end.Saturated())
				}
				slices.Sort(loads)
				if len(slices.Compact(loads)) != len(inFlight) {
					t.Errorf("%s: a load was measured twice: %v", name, loads)
				}
			}
		})
	}
}

// A sweep stops at its highest load, and is then not saturated.
func TestSweepWithoutAnEnd(t *testing.T) {
	loads, end := sweep(search.Sweep{Points: 8, First: 1, Most: 50, Whole: true}, closed(2, 1e6))
	if end.Saturated() || slices.Max(loads) != 50 || len(loads) != 8 {
		t.Errorf("%v, saturated %v", loads, end.Saturated())
	}
	loads, end = sweep(search.Sweep{Points: 4, First: 1, Whole: true}, closed(2, 1e6))
	if end.Saturated() || len(loads) != 4 {
		t.Errorf("%v, saturated %v", loads, end.Saturated())
	}
}

// A server that serves less than was sent fell behind, even if throughput still grows
// with the rate.
func TestSweepFellBehind(t *testing.T) {
	for share, want := range map[float64]bool{1: false, 0.95: false, 0.59: true} {
		s := search.Sweep{Points: 2, First: 27}
		s.Add(search.Seen{Load: 27, Throughput: 27, Latency: 1})
		s.Add(search.Seen{Load: 108, Throughput: 108 * share, Latency: 2})
		if s.Saturated() || s.FellBehind() != want {
			t.Errorf("%v of 108/s served: saturated %v, fell behind %v", share, s.Saturated(), s.FellBehind())
		}
	}
}

// A load at which all requests fail ends the way up. The remaining levels look for the
// highest served load.
func TestSweepThatFails(t *testing.T) {
	server := closed(2, 1e6)
	loads, end := sweep(search.Sweep{Points: 10, First: 1, Whole: true}, func(n float64) search.Seen {
		if n > 40 {
			return search.Seen{Load: n, Failed: true}
		}
		return server(n)
	})
	best := 0.0
	for _, n := range loads {
		if n <= 40 {
			best = max(best, n)
		}
	}
	if !end.Saturated() || best < 35 || slices.Max(loads) > 64 {
		t.Errorf("%v: the largest that is served is %v, of 40", loads, best)
	}
}

// A sweep ends early if no whole number is left between two loads.
func TestSweepOfFewNumbers(t *testing.T) {
	loads, end := sweep(search.Sweep{Points: 10, First: 1, Whole: true}, closed(1, 1))
	if !end.Saturated() || len(loads) > 4 {
		t.Errorf("%v", loads)
	}
}

func TestFarPast(t *testing.T) {
	at := func(load, throughput, latency float64) search.Seen {
		return search.Seen{Load: load, Throughput: throughput, Latency: latency}
	}
	for _, c := range []struct {
		name string
		a, b search.Seen
		want bool
	}{
		{"twice the load for nothing is just past the knee", at(64, 10, 6.4), at(128, 10, 12.8), false},
		{"four times the load for nothing", at(64, 10, 6.4), at(256, 10.5, 24), true},
		{"a burst too short to queue", at(50, 4.8, 2), at(200, 4.9, 2.1), false},
		{"it still grows", at(64, 10, 6), at(256, 13, 19), false},
		{"all failed before", search.Seen{Load: 1, Failed: true}, at(4, 1, 1), false},
	} {
		if got := search.FarPast(c.a, c.b); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
