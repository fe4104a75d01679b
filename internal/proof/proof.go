// Package proof measures tacho itself: the error of its times, its send lag,
// the distribution of its arrivals, and the CPU time per token. The server is
// the simulator in its own process, which records when it sent each token. The
// client is a complete run, as in package bench. `tacho selfcheck` and `make
// bench` print the results.
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

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/stat"
	"github.com/tacho-bench/tacho/workload"
)

// A Load is a sequence of requests at a rate, each with a fixed number of
// output tokens.
type Load struct {
	Requests   int
	Rate       float64 // per second
	Burstiness float64 // gamma shape of the gaps: 1 is Poisson, +Inf constant
	Tokens     int     // per answer
	Clock      string  // value of --clock; empty for the default
}

// Seen compares tacho's report of a load with the server's records. Errors are
// |reported - true| in microseconds.
type Seen struct {
	Load
	TTFT, ITL stat.Sample // errors of all token events, including coalesced ones
	Due       []float64   // due times of requests, ascending, in seconds
	Lag       []float64   // from due to sent in microseconds, in the same order
	Arrivals  []float64   // when the server received each request, ascending, in seconds
	Coalesced int         // token events read together with a later one
	Missing   int         // requested tokens that were not seen as sent
	CPU       float64     // CPU time of the client per token, in microseconds
	Stamped   tacho.Clock // source of arrival timestamps
	Example   string      // message of a failed request
	Summary   metric.Summary
}

// A dialFunc opens connections, like run.Env.Dial.
type dialFunc = func(ctx context.Context, network, address string) (net.Conn, error)

// Measure runs a load against the simulator at url and compares the results.
func Measure(ctx context.Context, url string, l Load) (*Seen, error) {
	return measureOver(ctx, nil, url, l)
}

// measureOver is Measure over a given network; nil uses the kernel's network.
func measureOver(ctx context.Context, network dialFunc, url string, l Load) (*Seen, error) {
	p := plan.Default()
	p.Backend, p.BaseURL, p.Clock = "vllm", []string{url}, cmp.Or(l.Clock, p.Clock)
	p.NumPrompts, p.RequestRate, p.Burstiness = l.Requests, l.Rate, l.Burstiness
	p.RandomInputLen, p.RandomOutputLen = workload.Fixed(4), workload.Fixed(l.Tokens)
	var seed uint64 = 1 // the same load every time
	p.Seed = &seed
	r, err := run.Open(ctx, p, run.Env{Random: rand.Uint64(), Dial: network})
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

// records is a sink that stores all records.
type records []tacho.Record

func (l *records) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *records) Close() error              { return nil }

// Retries for records the server has not written yet, because a client sees the
// end of an answer slightly before the server records it.
const (
	tries = 100
	again = 50 * time.Millisecond
)

// truths returns the server's records by request id.
func truths(ctx context.Context, network dialFunc, url string, recs records) (map[string]sim.Truth, error) {
	for try := 1; ; try++ {
		all, err := readTruths(ctx, network, url)
		if err != nil {
			return nil, fmt.Errorf("read the server's records: %w", err)
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
	direct := http.Transport{DialContext: network, DisableKeepAlives: true} // without a proxy, like the load
	res, err := direct.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }() // read completely
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

// compare compares reported values with the server's records. Times marked as
// upper bounds count like all others.
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
