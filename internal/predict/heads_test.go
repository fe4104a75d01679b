package predict

import (
	"fmt"
	"math"
	"testing"

	"github.com/tacho-bench/tacho/sim/step"
)

// The times at which the requests of bursts were accepted identify the work of an
// API process on a request.
func TestIntakesIdentifyRequestWork(t *testing.T) {
	p := profile(t)
	p.KV.PrefixCache = false
	p.FrontEnd = step.FrontEnd{}
	p.API = step.API{LatencyMs: 0.5, RequestMs: 0.9, RequestPerTokenUs: 0.2, Turns: 5, SubmitMs: 0.3, HandOverMs: 0.3, TokenUs: 10, EventUs: 40}
	var levels []*MeasuredLevel
	for _, n := range []int{1, 24, 64, 128} {
		levels = append(levels, seen(t, fmt.Sprint("burst ", n), p, Stage{Arrivals: asap, Source: talks{sessions: n, turns: 1, prompt: 100, answer: 20}}))
	}
	start := generic()
	q, sigmas := readOff(start, levels)
	for name, x := range map[string][2]float64{"api.request_ms": {q.API.RequestMs, 0.9}, "api.submit_ms": {q.API.SubmitMs, 0.3}} {
		if math.Abs(x[0]/x[1]-1) > 0.05 || sigmas[name] == 0 {
			t.Errorf("%s: read off %.3f, it is %.3f", name, x[0], x[1])
		}
	}
	if q, _ := readOff(start, levels[:3]); q.API.RequestMs != start.API.RequestMs {
		t.Errorf("two bursts are enough: %.3f", q.API.RequestMs)
	}
}
