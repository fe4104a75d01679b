// Package proof measures tacho itself: how far its times are from a server's
// own, how late it sends, whether its arrivals are those of the process it was
// told, and what a token costs. The server is the simulator, in a process of its
// own, which writes down when it sent each token; the client is a whole run, as
// bench makes it. `tacho selfcheck` and `make bench` print what it finds.
package proof

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"slices"
	"time"

	"tacho"
	"tacho/metric"
	"tacho/plan"
	"tacho/run"
	"tacho/sim"
	"tacho/stat"
	"tacho/workload"
)

// A Load is what is asked of the server: requests at a rate, each with an answer
// of so many tokens.
type Load struct {
	Requests   int
	Rate       float64 // a second
	Burstiness float64 // shape of the gaps: 1 is Poisson, +Inf even
	Tokens     int     // of each answer
	Clock      string  // what stamps arrivals, as --clock has it; empty is its default
}

// Seen is what tacho reported of a load, held against what the server itself
// wrote down. Errors are |reported - true|, in microseconds.
type Seen struct {
	Load
	TTFT, ITL stat.Sample // errors of every token event, coalesced ones too
	Due       []float64   // when each request was to be sent, ascending, in seconds
	Lag       []float64   // from due to sent in microseconds, in the same order
	Arrivals  []float64   // when the server received each request, ascending, in seconds
	Coalesced int         // token events that shared their read with a later one
	Missing   int         // tokens asked for that were not seen as they were sent
	CPU       float64     // of the client for a token, in microseconds
	Stamped   tacho.Clock // what stamped the arrivals
	Example   string      // of a request that failed
	Summary   metric.Summary
}

// A dialFunc makes connections, as run.Env.Dial does.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Measure puts a load on the simulator at url, and compares.
func Measure(ctx context.Context, url string, l Load) (*Seen, error) {
	return measureOver(ctx, nil, url, l)
}

// measureOver is Measure over a network; nil is the kernel's.
func measureOver(ctx context.Context, network dialFunc, url string, l Load) (*Seen, error) {
	p := plan.Default()
	p.Backend, p.BaseURL, p.Clock = "vllm", []string{url}, cmp.Or(l.Clock, p.Clock)
	p.NumPrompts, p.RequestRate, p.Burstiness = l.Requests, l.Rate, l.Burstiness
	p.RandomInputLen, p.RandomOutputLen = workload.Fixed(4), workload.Fixed(l.Tokens)
	var seed uint64 = 1 // the same load every time
	p.Seed = &seed
	r, err := run.Open(ctx, p, run.Env{Random: rand.Uint64(), Dial: network}, run.Hooks{})
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var recs records
	level, err := r.Measure(ctx, r.Plan.Levels()[0], &recs)
	if err != nil {
		return nil, err
	}
	truth, err := truths(ctx, network, url, recs)
	if err != nil {
		return nil, err
	}
	s := compare(recs, truth, l)
	s.Summary = level.Summary
	if c := s.Summary.Config.Client; c != nil {
		s.CPU = 1e6 * c.BusyShare * float64(runtime.NumCPU()) * s.Summary.DurationS / float64(l.Requests*l.Tokens)
	}
	return s, nil
}

// records is a sink that keeps all.
type records []tacho.Record

func (l *records) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *records) Close() error              { return nil }

// How often the server is asked for what it has not written down yet. An answer
// is over for its client a moment before it is for its server.
const (
	tries = 100
	again = 50 * time.Millisecond
)

// truths are what the server wrote down of the requests, by their ids.
func truths(ctx context.Context, network dialFunc, url string, recs records) (map[string]sim.Truth, error) {
	for try := 1; ; try++ {
		all, err := readTruths(ctx, network, url)
		if err != nil {
			return nil, fmt.Errorf("ask the server for the truth: %w", err)
		}
		unknown := func(r tacho.Record) bool { _, ok := all[r.ID]; return r.OK() && !ok }
		if try == tries || !slices.ContainsFunc(recs, unknown) {
			return all, nil
		}
		time.Sleep(again)
	}
}

func readTruths(ctx context.Context, network dialFunc, url string) (map[string]sim.Truth, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url+"/sim/truth", nil)
	if err != nil {
		return nil, err
	}
	direct := http.Transport{DialContext: network, DisableKeepAlives: true} // past any proxy, as the load goes
	res, err := direct.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // it was read
	out := map[string]sim.Truth{}
	for d := json.NewDecoder(bufio.NewReader(res.Body)); ; {
		var t sim.Truth
		if err := d.Decode(&t); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out[t.ID] = t
	}
}

// compare holds what was reported against what the server wrote down. A time
// that tacho itself marks as an upper bound is held to it like any other.
func compare(recs records, truth map[string]sim.Truth, l Load) *Seen {
	var ttft, itl []float64
	s := &Seen{Load: l, Missing: l.Requests * l.Tokens}
	slices.SortFunc(recs, func(a, b tacho.Record) int { return cmp.Compare(a.Due, b.Due) })
	for i := range recs {
		r := &recs[i]
		t, ok := truth[r.ID]
		if !r.OK() {
			s.Example = r.Failure.Error()
		}
		if !ok || !r.OK() || len(t.Writes) != len(r.Events) {
			continue
		}
		received := cmp.Or(t.Received, t.Arrival)
		s.Stamped = r.Clock
		s.Missing -= len(r.Events)
		s.Due = append(s.Due, r.Due.Seconds())
		s.Lag = append(s.Lag, micros(r.Sent-r.Due))
		s.Arrivals = append(s.Arrivals, float64(received)/1e9)
		for k, e := range r.Events {
			if e.Coalesced() {
				s.Coalesced++
			}
			if k == 0 {
				ttft = append(ttft, math.Abs(micros(e.At-r.Sent-time.Duration(t.Writes[0]-received))))
			} else {
				itl = append(itl, math.Abs(micros(e.At-r.Events[k-1].At-time.Duration(t.Writes[k]-t.Writes[k-1]))))
			}
		}
	}
	slices.Sort(s.Arrivals)
	s.TTFT, s.ITL = stat.New(ttft), stat.New(itl)
	return s
}

func micros(d time.Duration) float64 { return float64(d) / 1e3 }
