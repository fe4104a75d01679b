package truth

import (
	"context"
	"errors"
	"io"
	"iter"
	"math"
	"math/rand/v2"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/sim/step"
	"github.com/tacho-bench/tacho/workload"
)

// Server creates a server of the case for one level.
func (c *Case) Server(seed uint64) (predict.Server, error) {
	switch {
	case c.Still != nil:
		return c.Still()(seed), nil
	case c.Profile == "":
		return c.Servers()(seed), nil
	}
	profile, err := step.Load(c.Profile)
	if err != nil {
		return nil, err
	}
	policy, err := route.Find("round-robin")
	if err != nil {
		return nil, err
	}
	return predict.NewFleet(predict.FleetPlan{Profile: profile, Replicas: 1, Policy: policy, Seed: seed})
}

// Limit is the highest load that meets the SLO in the long run. It is found by
// bisection with the given number of requests at each load. Limit returns 0 if
// Top/50 does not meet the SLO.
func (c *Case) Limit(requests int, seed uint64) (float64, error) {
	roughly := 10 // a first bisection with fewer requests narrows the range
	if c.Rhythm {
		roughly = 2
	}
	if holds, err := c.Holds(c.Top/50, requests/roughly, seed); err != nil || !holds {
		return 0, err
	}
	about, err := c.bisect(c.Top/50, c.Top*1.2, 0.05, requests/roughly, seed)
	if err != nil {
		return 0, err
	}
	return c.bisect(about/1.2, about*1.2, 0.001, requests, seed)
}

// Bisection is the answer of a plain bisection: loads rise by a factor of 4 until one misses, and the range is bisected to
// 5 %, with a number of requests at each load. It returns the highest load that held, and 0 if none did.
func (c *Case) Bisection(requests int, seed uint64) (load float64, err error) {
	low, high := 0.0, c.Top/50
	holds := func(load float64) bool {
		seed++
		held, bad := c.Holds(load, requests, seed)
		err = errors.Join(err, bad)
		return held
	}
	for high < 16*c.Top && holds(high) {
		low, high = high, 4*high
	}
	for low > 0 && high/low > 1.05 && err == nil {
		if middle := math.Sqrt(low * high); holds(middle) {
			low = middle
		} else {
			high = middle
		}
	}
	return low, err
}

// Sweep is the answer of a sweep: the highest of eight levels up to the capacity that holds; 0 if none does.
func (c *Case) Sweep(requests int, most float64, seed uint64) (load float64, err error) {
	const levels = 8
	for i := range levels {
		at := most * float64(i+1) / levels
		holds, err := c.Holds(at, requests, seed+uint64(i))
		if err != nil {
			return 0, err
		}
		if holds {
			load = at
		}
	}
	return load, nil
}

// bisect finds the limit between two loads, with relative precision within.
func (c *Case) bisect(low, high, within float64, requests int, seed uint64) (float64, error) {
	for high/low > 1+within {
		middle := math.Sqrt(low * high)
		holds, err := c.Holds(middle, requests, seed)
		if err != nil {
			return 0, err
		}
		if holds {
			low = middle
		} else {
			high = middle
		}
	}
	return math.Sqrt(low * high), nil
}

// Holds reports whether a load meets the SLO in the long run.
func (c *Case) Holds(load float64, requests int, seed uint64) (bool, error) {
	goals, err := search.ParseSLO(c.SLO)
	if err != nil {
		return false, err
	}
	t := &tally{Tally: search.NewTally(goals), skip: uint64(requests / 20), all: requests}
	err = c.run(load, requests, seed, t)
	if errors.Is(err, errLost) {
		return false, nil
	}
	_, _, missed := t.Missed()
	return !missed, err
}

// run applies a load for many requests.
func (c *Case) run(load float64, requests int, seed uint64, sink tacho.Sink) error {
	server, err := c.Server(seed)
	if err != nil {
		return err
	}
	work := &lengths{n: uint64(requests), seed: seed}
	if err := work.input.UnmarshalText([]byte(c.Input)); err != nil {
		return err
	}
	if err := work.output.UnmarshalText([]byte(c.Output)); err != nil {
		return err
	}
	stage := predict.Stage{Source: work, Server: server, Reuse: true}
	var arrivals iter.Seq[time.Duration]
	switch {
	case c.Kind == string(search.Concurrency):
		stage.Limit = int(load)
		arrivals = pace.Closed{Count: requests}.Arrivals()
	case c.Bursty > 0:
		arrivals = pace.Gamma{Rate: load, Shape: c.Bursty, Count: requests, Seed: seed}.Arrivals()
	default:
		arrivals = pace.Poisson{Rate: load, Count: requests, Seed: seed}.Arrivals()
	}
	stage.Arrivals = pace.Stripe(arrivals, 0, 1)
	return predict.Run(context.Background(), stage, sink)
}

// A tally skips the first requests, which see an empty server.
type tally struct {
	*search.Tally
	skip uint64
	all  int
}

// errLost ends a run early if a goal can no longer be met.
var errLost = errors.New("a goal is missed")

// Add implements tacho.Sink.
func (t *tally) Add(r *tacho.Record) error {
	if r.Session >= t.skip {
		t.Tally.Add(r)
		if t.Lost(t.all) {
			return errLost
		}
	}
	return nil
}

// lengths is a source of requests with random lengths and no content.
type lengths struct {
	n, seed       uint64
	input, output workload.Length
}

// Session implements tacho.Source.
func (l *lengths) Session(i uint64) (tacho.Session, error) {
	if i >= l.n {
		return tacho.Session{}, io.EOF
	}
	rng := rand.New(rand.NewPCG(l.seed, i))
	in, out := l.input.Draw(rng, 1), l.output.Draw(rng, 1)
	q := tacho.Request{Session: i, InputTokens: in, MaxTokens: out, IgnoreEOS: true}
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: q}}}, nil
}

// Close implements tacho.Sink.
func (t *tally) Close() error { return nil }

// Most is the capacity of the server in requests/s, measured over the middle half
// of many requests that arrive much faster.
func (c *Case) Most(seed uint64) (float64, error) {
	const requests, times = 4000, 3
	open := *c
	open.Kind = ""
	ends := &ends{}
	if err := open.run(times*c.Top, requests, seed, ends); err != nil || len(ends.at) < 4 {
		return 0, err
	}
	n := len(ends.at)
	return min(float64(n/2)/(ends.at[3*n/4]-ends.at[n/4]).Seconds(), c.Top), nil // a batch may end at a single time
}

// ends records when successful requests ended.
type ends struct{ at []time.Duration }

// Add implements tacho.Sink.
func (e *ends) Add(r *tacho.Record) error {
	if r.OK() {
		e.at = append(e.at, r.End)
	}
	return nil
}

// Close implements tacho.Sink.
func (e *ends) Close() error { return nil }
