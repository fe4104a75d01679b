package engine_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/pace"
)

// plain is a workload of n one-turn sessions; preparing each takes cost.
type plain struct {
	n    int
	cost time.Duration
	fail uint64 // number of a session that fails, if not 0
}

func (p plain) Session(i uint64) (tacho.Session, error) {
	time.Sleep(p.cost)
	if i >= uint64(p.n) {
		return tacho.Session{}, io.EOF
	}
	if p.fail != 0 && i == p.fail {
		return tacho.Session{}, errors.New("line 7 is not JSON")
	}
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: tacho.Request{
		Session: i, ID: fmt.Sprint("r", i), InputTokens: 5, MaxTokens: 3,
	}}}}, nil
}

// server is a backend that responds after a fixed time, in virtual time.
type server struct {
	takes    time.Duration
	encode   time.Duration
	ready    time.Duration // delay before it can be sent
	inFlight atomic.Int64
	most     atomic.Int64
}

func (s *server) Prepare(q *tacho.Request) (tacho.Call, error) {
	time.Sleep(s.encode)
	return call{s, q}, nil
}

type call struct {
	s *server
	q *tacho.Request
}

func (c call) Do(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions) {
	time.Sleep(c.s.ready)
	if o.Pass(func() { rec.Sent = time.Since(epoch) }) != nil {
		return
	}
	n := c.s.inFlight.Add(1)
	defer c.s.inFlight.Add(-1)
	for m := c.s.most.Load(); n > m && !c.s.most.CompareAndSwap(m, n); m = c.s.most.Load() {
	}
	select {
	case <-time.After(c.s.takes):
		rec.Events = append(rec.Events, tacho.Event{At: time.Since(epoch)})
	case <-ctx.Done():
		cause := tacho.Canceled
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			cause = tacho.Timeout
		}
		rec.Failure = &tacho.Failure{Cause: cause, Message: ctx.Err().Error()}
	}
	rec.End = time.Since(epoch)
}

type list []tacho.Record

func (l *list) Add(r *tacho.Record) error { *l = append(*l, *r); return nil }
func (l *list) Close() error              { return nil }

func arrivals(p tacho.Pacer) iter.Seq2[uint64, time.Duration] { return pace.Stripe(p.Arrivals(), 0, 1) }

func run(t *testing.T, s engine.Stage) list {
	t.Helper()
	var recs list
	must.Do(t, engine.Run(t.Context(), s, &recs))
	return recs
}

// An open loop sends exactly at the due times, even if sources and encoders take time,
// because they work ahead. The fakes must take time, or a schedule with relative waits
// would pass.
func TestOpenLoopIsExact(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recs := run(t, engine.Stage{
			Arrivals: arrivals(pace.Constant{Rate: 10, Count: 50}), Backend: &server{takes: time.Second, encode: 30 * time.Millisecond},
			Source: plain{n: 50, cost: 30 * time.Millisecond},
		})
		if len(recs) != 50 {
			t.Fatalf("%d records", len(recs))
		}
		for i, r := range recs {
			want := time.Duration(i+1) * 100 * time.Millisecond
			if r.Due != want || r.Slot != want || r.Start != want || r.Sent != want {
				t.Errorf("record %d: due %v, slot %v, start %v, sent %v; want %v", i, r.Due, r.Slot, r.Start, r.Sent, want)
			}
		}
	})
}

// If a source is too slow, requests are late, as the records show.
func TestLateIsNotHidden(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recs := run(t, engine.Stage{
			Arrivals: arrivals(pace.Constant{Rate: 10, Count: 100}), Backend: &server{},
			Source: plain{n: 100, cost: 200 * time.Millisecond},
		})
		last := recs[99]
		if last.Due != 10*time.Second {
			t.Errorf("due %v: the plan's own time was lost", last.Due)
		}
		if lag := last.Sent - last.Due; lag < 5*time.Second {
			t.Errorf("lag %v of a source that takes twice the time there is", lag)
		}
	})
}

func TestClosedLoopKeepsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := &server{takes: 300 * time.Millisecond}
		recs := run(t, engine.Stage{
			Arrivals: arrivals(pace.Closed{Count: 12}), Limit: 4, Backend: srv, Source: plain{n: 12},
		})
		if len(recs) != 12 || recs[11].End != 900*time.Millisecond || srv.most.Load() != 4 {
			t.Errorf("%d records, the last ended at %v, at most %d in flight; want 12, 900ms, 4", len(recs), recs[11].End, srv.most.Load())
		}
		if r := recs[11]; r.Due != 600*time.Millisecond || r.Slot != r.Due {
			t.Errorf("due %v, slot %v; want both when the slot was free, 600ms", r.Due, r.Slot)
		}
	})
}

// A wait for a slot counts, because the record keeps the planned due time.
func TestLimitDelaysButDueStays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recs := run(t, engine.Stage{
			Arrivals: arrivals(pace.Constant{Rate: 10, Count: 20}), Limit: 1, Backend: &server{takes: time.Second}, Source: plain{n: 20},
		})
		last := recs[19]
		if last.Due != 2*time.Second || last.Slot != 19*time.Second+100*time.Millisecond {
			t.Errorf("due %v, slot %v", last.Due, last.Slot)
		}
	})
}

func TestTimeoutIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recs := run(t, engine.Stage{
			Arrivals: arrivals(pace.Burst{Count: 1}), Backend: &server{takes: time.Hour}, Source: plain{n: 1}, Timeout: 500 * time.Millisecond,
		})
		if len(recs) != 1 || recs[0].OK() || recs[0].Failure.Cause != tacho.Timeout || recs[0].End != 500*time.Millisecond {
			t.Fatalf("%+v", recs)
		}
	})
}

func TestMaxTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := run(t, engine.Stage{
			Arrivals: arrivals(pace.Constant{Rate: 10}), MaxTime: 3 * time.Second, Backend: &server{takes: 10 * time.Second}, Source: plain{n: 1 << 30},
		})
		if len(open) != 29 { // at 0.1, 0.2, ... 2.9 s
			t.Errorf("open loop: %d records", len(open))
		}
		closed := run(t, engine.Stage{
			Arrivals: arrivals(pace.Closed{}), Limit: 2, MaxTime: 3 * time.Second, Backend: &server{takes: 2 * time.Second}, Source: plain{n: 1 << 30},
		})
		if len(closed) != 4 || closed[3].End != 4*time.Second {
			t.Errorf("closed loop: %d records; requests in flight must finish", len(closed))
		}
		late := engine.Stage{Arrivals: arrivals(pace.Closed{}), Limit: 2, MaxTime: 3 * time.Second, Begun: 5, Backend: &server{takes: time.Second}, Source: plain{n: 1 << 30}}
		late.Start = func(context.Context) (time.Time, error) { return time.Now().Add(-time.Minute), nil }
		if begun := run(t, late); len(begun) != 5 {
			t.Errorf("%d records of 5 sessions that had begun before", len(begun))
		}
	})
}

// Requests in flight at the end of sending end within Grace, and the stage with them.
func TestGrace(t *testing.T) {
	for name, c := range map[string]struct {
		stage engine.Stage
		stop  time.Duration // Enough is closed after this
		ends  []time.Duration
		fail  bool
	}{
		"MaxTime":                    {engine.Stage{MaxTime: 5 * time.Second, Grace: time.Minute}, 0, []time.Duration{65 * time.Second, 65 * time.Second}, true},
		"Enough":                     {engine.Stage{Grace: time.Minute}, 3 * time.Second, []time.Duration{63 * time.Second, 63 * time.Second}, true},
		"Enough before MaxTime":      {engine.Stage{MaxTime: 5 * time.Second, Grace: time.Minute}, 3 * time.Second, []time.Duration{63 * time.Second, 63 * time.Second}, true},
		"a shorter timeout":          {engine.Stage{MaxTime: 5 * time.Second, Grace: time.Minute, Timeout: 10 * time.Second}, 0, []time.Duration{11 * time.Second, 12 * time.Second}, true},
		"a timeout during the grace": {engine.Stage{MaxTime: 5 * time.Second, Grace: time.Minute, Timeout: 64 * time.Second}, 0, []time.Duration{65 * time.Second, 65 * time.Second}, true},
		"answers in time":            {engine.Stage{MaxTime: 5 * time.Second, Grace: 2 * time.Hour}, 0, []time.Duration{3601 * time.Second, 3602 * time.Second}, false},
		"all are sent":               {engine.Stage{Grace: time.Minute}, 0, []time.Duration{3601 * time.Second, 3602 * time.Second}, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, enough := c.stage, make(chan struct{})
				if c.stop > 0 {
					time.AfterFunc(c.stop, func() { close(enough) })
				}
				s.Arrivals, s.Backend, s.Source, s.Enough = arrivals(pace.Constant{Rate: 1, Count: 2}), &server{takes: time.Hour}, plain{n: 2}, enough
				recs := run(t, s)
				if len(recs) != 2 {
					t.Fatalf("%d records", len(recs))
				}
				for i, r := range recs {
					if r.End != c.ends[i] || r.OK() == c.fail || c.fail && r.Failure.Cause != tacho.Timeout {
						t.Errorf("request %d ended after %v: %+v, want %v", i, r.End, r.Failure, c.ends[i])
					}
				}
			})
		})
	}
}

// A cancelled run keeps finished records, records requests in flight as cancelled, and
// returns the error.
func TestStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer cancel()
		var recs list
		err := engine.Run(ctx, engine.Stage{
			Arrivals: arrivals(pace.Closed{}), Limit: 2, Backend: &server{takes: time.Second}, Source: plain{n: 1 << 30},
		}, &recs)
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
		ok := 0
		for _, r := range recs {
			if r.OK() {
				ok++
			}
		}
		if len(recs) != 6 || ok != 4 {
			t.Errorf("%d records, %d of them finished; want 6, 4", len(recs), ok)
		}
	})
}

func TestSourceErrorEndsTheStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var recs list
		err := engine.Run(t.Context(), engine.Stage{
			Arrivals: arrivals(pace.Constant{Rate: 10}), Backend: &server{takes: time.Second}, Source: plain{n: 1 << 30, fail: 30},
		}, &recs)
		if err == nil || err.Error() != "line 7 is not JSON" {
			t.Errorf("error %v", err)
		}
		if len(recs) != 30 {
			t.Errorf("%d records: those before the error must not be lost", len(recs))
		}
	})
}

type broken struct{ n int }

func (b *broken) Add(*tacho.Record) error { b.n++; return errors.New("disk full") }
func (b *broken) Close() error            { return nil }

// An error of the sink is returned and blocks nothing.
func TestSinkError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var sink broken
		err := engine.Run(t.Context(), engine.Stage{
			Arrivals: arrivals(pace.Burst{Count: 9}), Backend: &server{}, Source: plain{n: 9},
		}, &sink)
		if err == nil || err.Error() != "disk full" || sink.n != 9 {
			t.Errorf("error %v after %d records", err, sink.n)
		}
	})
}

// Three workers with one stripe each send the same requests as one worker with all.
func TestStripedRunEqualsWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace.Poisson{Rate: 20, Count: 60, Seed: 42}
		stage := func(k, n uint64) engine.Stage {
			return engine.Stage{
				Arrivals: pace.Stripe(p.Arrivals(), k, n), Backend: &server{takes: 200 * time.Millisecond}, Source: plain{n: 60},
			}
		}
		keys := func(recs list) (out []string) {
			for _, r := range recs {
				out = append(out, fmt.Sprint(r.Session, r.Due, r.Sent, r.End))
			}
			return out
		}
		whole := keys(run(t, stage(0, 1)))
		var merged []string
		for k := range uint64(3) {
			merged = append(merged, keys(run(t, stage(k, 3)))...)
		}
		slices.Sort(whole)
		slices.Sort(merged)
		if !slices.Equal(whole, merged) {
			t.Errorf("whole\n%v\nmerged\n%v", whole, merged)
		}
	})
}

type turns struct{}

func (turns) Session(i uint64) (tacho.Session, error) {
	q := func(turn int) tacho.Request { return tacho.Request{Session: i, Turn: turn} }
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: q(0)}, {Think: 3 * time.Second, Request: q(1)}}}, nil
}

func TestTurnsFollowWithThinkTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recs := run(t, engine.Stage{
			Arrivals: arrivals(pace.Burst{Count: 1}), Source: turns{}, Backend: &server{takes: time.Second},
		})
		if len(recs) != 2 || recs[1].Due != 4*time.Second || recs[1].Sent != 4*time.Second {
			t.Fatalf("%+v", recs)
		}
	})
}

// A precise sleep does not end early.
func TestPreciseSleep(t *testing.T) {
	recs := run(t, engine.Stage{
		Arrivals: arrivals(pace.Constant{Rate: 2000, Count: 40}), Backend: &server{}, Source: plain{n: 40}, Precise: true,
	})
	for _, r := range recs {
		if r.Start < r.Due {
			t.Errorf("due %v, started %v", r.Due, r.Start)
		}
	}
}

// All sessions due at the same time are prepared before and leave at that time, at the start of the clock or later.
// The rest of the schedule continues without loss.
func TestBursts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		due := slices.Concat(slices.Repeat([]time.Duration{0}, 300), []time.Duration{time.Second}, slices.Repeat([]time.Duration{5 * time.Second}, 200), []time.Duration{6 * time.Second})
		recs := run(t, engine.Stage{
			Arrivals: func(yield func(uint64, time.Duration) bool) {
				for i, d := range due {
					if !yield(uint64(i), d) {
						return
					}
				}
			},
			Backend: &server{takes: time.Second, encode: time.Millisecond}, Source: plain{n: len(due), cost: 5 * time.Millisecond},
		})
		if len(recs) != len(due) {
			t.Fatalf("%d records, want %d", len(recs), len(due))
		}
		for _, r := range recs {
			if want := due[r.Session]; r.Due != want || r.Slot != want || r.Sent != want || r.End != want+time.Second {
				t.Errorf("session %d: due %v, slot %v, sent %v; want %v", r.Session, r.Due, r.Slot, r.Sent, want)
			}
		}
	})
}

// A stage that is cancelled before its clock starts sends nothing, even if requests are
// ready.
func TestStoppedOnTheMark(t *testing.T) {
	for _, early := range []time.Duration{time.Hour, time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const patience = time.Second
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			var recs list
			var live engine.Live
			err := engine.Run(ctx, engine.Stage{
				Arrivals: arrivals(pace.Burst{Count: 100}), Backend: &server{takes: time.Second}, Source: plain{n: 100}, Live: &live,
				Start: func(context.Context) (time.Time, error) { return time.Now().Add(patience + early), nil },
			}, &recs)
			if !errors.Is(err, context.DeadlineExceeded) || len(recs) != 0 || live.Started.Load() != 0 {
				t.Errorf("%v, %d records, %d started", err, len(recs), live.Started.Load())
			}
		})
	}
}

// The requests of a burst are prepared before their due time, and their timeout begins
// when they are sent. A request that takes longer to prepare is late by the difference.
func TestBurstPreparesFirst(t *testing.T) {
	const each = 50 * time.Microsecond // to encode a request; the burst of 100 begins three times as long before
	for ready, late := range map[time.Duration]time.Duration{0: 0, 14 * time.Millisecond: 0, 17 * time.Millisecond: 2 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			const timeout = 3 * time.Millisecond // shorter than the lead of the burst
			recs := run(t, engine.Stage{
				Arrivals: func(yield func(uint64, time.Duration) bool) {
					for i := range uint64(200) { // two bursts
						if !yield(i, time.Duration(i/100)*time.Second) {
							return
						}
					}
				},
				Backend: &server{ready: ready, takes: time.Second, encode: each}, Source: plain{n: 200}, Timeout: timeout,
			})
			if len(recs) != 200 {
				t.Fatalf("%d records", len(recs))
			}
			for _, r := range recs {
				if sent := r.Due + late; r.Slot != sent || r.Start != sent || r.Sent != sent || r.End != sent+timeout {
					t.Fatalf("ready in %v: due %v, slot %v, start %v, sent %v, end %v", ready, r.Due, r.Slot, r.Start, r.Sent, r.End)
				}
			}
		})
	}
}

// starter is a backend whose requests can be sent without a waiting goroutine.
type starter struct {
	server
	busy    bool // no request can be sent immediately
	whole   bool // responses arrive immediately
	started atomic.Int64
}

func (s *starter) Prepare(q *tacho.Request) (tacho.Call, error) {
	return &startedCall{call{&s.server, q}, s}, nil
}

type startedCall struct {
	call
	s *starter
}

func (c *startedCall) Start(ctx context.Context, epoch time.Time, rec *tacho.Record, o tacho.CallOptions, then func(finish func(), whole bool)) bool {
	if c.s.busy || !o.RelaxedEnd {
		return false
	}
	c.s.started.Add(1)
	rec.Sent = time.Since(epoch)
	go func() {
		select {
		case <-time.After(c.s.takes):
		case <-ctx.Done():
		}
		then(func() {
			rec.End = time.Since(epoch)
			if ctx.Err() != nil {
				rec.Failure = &tacho.Failure{Cause: tacho.Timeout}
			}
		}, c.s.whole)
	}()
	return true
}

// Requests sent by the dispatcher are recorded like others. In a closed loop, and if the
// call cannot start immediately, sessions send them.
func TestSentByTheDispatcher(t *testing.T) {
	for _, tt := range []struct {
		name    string
		backend *starter
		limit   int
		started int64
	}{
		{"open", &starter{server: server{takes: time.Second}}, 0, 20},
		{"whole", &starter{server: server{takes: time.Second}, whole: true}, 0, 20},
		{"too long", &starter{server: server{takes: time.Hour}}, 0, 20},
		{"busy", &starter{server: server{takes: time.Second}, busy: true}, 0, 0},
		{"limited", &starter{server: server{takes: time.Second}}, 100, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				live := new(engine.Live)
				recs := run(t, engine.Stage{
					Arrivals: arrivals(pace.Constant{Rate: 10, Count: 20}), Backend: tt.backend, Limit: tt.limit,
					Source: plain{n: 20}, Timeout: time.Minute, Live: live,
				})
				if len(recs) != 20 || tt.backend.started.Load() != tt.started {
					t.Fatalf("%d records, %d were started, want 20 and %d", len(recs), tt.backend.started.Load(), tt.started)
				}
				for i, r := range recs {
					due := time.Duration(i+1) * 100 * time.Millisecond
					end := due + min(tt.backend.takes, time.Minute)
					if r.Due != due || r.Slot != due || r.Start != due || r.Sent != due || r.End != end || r.OK() != (end-due < time.Minute) {
						t.Errorf("record %d: %+v", i, r)
					}
				}
				if live.Started.Load() != 20 || live.Finished.Load() != 20 || live.Sessions.Load() != 20 {
					t.Errorf("%d started, %d finished, %d sessions", live.Started.Load(), live.Finished.Load(), live.Sessions.Load())
				}
			})
		})
	}
}
