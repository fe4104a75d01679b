package predict

import (
	"context"
	"io"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"
)

// A talks source has sessions of several turns, with a pause before each.
type talks struct {
	sessions, turns, prompt, answer int
	think                           time.Duration
}

func (s talks) Session(i uint64) (tacho.Session, error) {
	if i >= uint64(s.sessions) {
		return tacho.Session{}, io.EOF
	}
	out := tacho.Session{ID: i}
	for turn := range s.turns {
		ids := make([]int32, s.prompt)
		for k := range ids {
			ids[k] = int32(i*1000 + uint64(k))
		}
		out.Turns = append(out.Turns, tacho.Turn{Think: s.think, Request: tacho.Request{
			Session: i, Turn: turn, Input: tacho.Input{IDs: ids}, InputTokens: s.prompt, MaxTokens: s.answer, IgnoreEOS: true,
		}})
	}
	return out, nil
}

type kept []tacho.Record

func (k *kept) Add(r *tacho.Record) error { *k = append(*k, *r); return nil }
func (k *kept) Close() error              { return nil }

func every(gap time.Duration) iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		for i := uint64(0); yield(i, time.Duration(i)*gap); i++ {
		}
	}
}

func asap(yield func(uint64, time.Duration) bool) {
	for i := uint64(0); yield(i, tacho.ASAP); i++ {
	}
}

func server(t *testing.T) Server {
	t.Helper()
	return must.Get(step.NewServer(profile(t), 1))(t)
}

type counter int

func (c *counter) Add(*tacho.Record) error { *c++; return nil }
func (c *counter) Close() error            { return nil }

func benchProfile(t testing.TB) step.Profile {
	t.Helper()
	p := must.Get(step.Load("vllm-8b-h100"))(t)
	p.Cost.Noise = 0
	return p
}

func profile(t *testing.T) step.Profile { t.Helper(); return benchProfile(t) }

func records(t *testing.T, s Stage) kept {
	t.Helper()
	var out kept
	if s.Server == nil {
		s.Server = server(t)
	}
	must.Do(t, Run(t.Context(), s, &out))
	return out
}

// An open loop gives the same times as the engine for the same arrivals.
func TestOpenLoop(t *testing.T) {
	source, gap := talks{sessions: 200, turns: 1, prompt: 512, answer: 64}, 20*time.Millisecond
	got := records(t, Stage{Arrivals: every(gap), Source: source})
	var arrivals []step.Arrival
	for i := range source.sessions {
		arrivals = append(arrivals, step.Arrival{At: time.Duration(i) * gap, Request: step.Request{
			ID: uint64(i), Prompt: source.prompt, MaxNew: source.answer, IgnoreEOS: true,
		}})
	}
	want, _, err := step.Simulate(profile(t), 1, arrivals)
	must.Do(t, err)
	if len(got) != len(want) {
		t.Fatalf("%d records of %d requests", len(got), len(want))
	}
	for _, r := range got {
		w := want[r.Session]
		if r.Due != w.Arrival || r.First() != w.Events[0].At || r.End != w.Events[len(w.Events)-1].At || len(r.Events) != len(w.Events) || r.Output != 64 {
			t.Fatalf("session %d: due %v, first %v, end %v, %d events; the engine says %v, %v", r.Session, r.Due, r.First(), r.End, len(r.Events), w.Arrival, w.Events)
		}
		if r.Clock != tacho.VirtualClock {
			t.Fatalf("clock %v", r.Clock)
		}
	}
}

// A closed loop keeps its limit of requests in flight and starts the next when one
// ends.
func TestClosedLoop(t *testing.T) {
	got := records(t, Stage{Arrivals: asap, Limit: 8, Source: talks{sessions: 100, turns: 1, prompt: 100, answer: 20}})
	if len(got) != 100 {
		t.Fatalf("%d records", len(got))
	}
	ends := map[time.Duration]int{}
	for _, r := range got {
		ends[r.End]++
	}
	for _, r := range got[8:] {
		if r.Session >= 8 && ends[r.Sent] == 0 {
			t.Errorf("session %d was sent at %v, when none had ended", r.Session, r.Sent)
		}
		if flying := inFlight(got, r.Sent); flying > 8 {
			t.Errorf("%d in flight at %v", flying, r.Sent)
		}
	}
}

func inFlight(all kept, at time.Duration) (n int) {
	for _, r := range all {
		if r.Sent <= at && at < r.End {
			n++
		}
	}
	return n
}

// A turn is due a fixed time after the end of the previous one and quotes only the
// answers so far. In a closed loop a user's think time does not free a slot.
func TestTurns(t *testing.T) {
	source := talks{sessions: 6, turns: 3, prompt: 50, answer: 10, think: time.Second}
	for name, arrivals := range map[string]iter.Seq2[uint64, time.Duration]{"open": every(time.Millisecond), "closed": asap} {
		got := records(t, Stage{Arrivals: arrivals, Limit: 2, Source: source})
		if len(got) != 18 {
			t.Fatalf("%s: %d records", name, len(got))
		}
		slices.SortFunc(got, func(a, b tacho.Record) int { return int(a.Session-b.Session)*10 + a.Turn - b.Turn })
		for i, r := range got {
			if r.Turn > 0 && r.Due != got[i-1].End+time.Second {
				t.Errorf("%s: turn %d of session %d is due at %v, the one before ended at %v", name, r.Turn, r.Session, r.Due, got[i-1].End)
			}
			if name == "closed" && r.Turn == 0 && r.Session >= 2 && r.Sent < 2*time.Second {
				t.Errorf("session %d began at %v, while both users were thinking", r.Session, r.Sent)
			}
		}
	}
}

// A request is cancelled at its timeout, a session after MaxTime is not started,
// and a request refused by the engine is a failure.
func TestLimits(t *testing.T) {
	source := talks{sessions: 50, turns: 1, prompt: 1000, answer: 100}
	whole := records(t, Stage{Arrivals: every(time.Second), Source: source})
	took := whole[0].End - whole[0].Sent
	for _, r := range records(t, Stage{Arrivals: every(time.Second), Source: source, Timeout: took / 2}) {
		if r.OK() || r.Failure.Cause != tacho.Timeout || r.End-r.Sent != took/2 {
			t.Fatalf("%v after %v", r.Failure, r.End-r.Sent)
		}
	}
	if got := records(t, Stage{Arrivals: every(time.Second), Source: source, MaxTime: 10 * time.Second}); len(got) != 10 {
		t.Errorf("%d requests in 10 s at one a second", len(got))
	}
	source.prompt = 200_000
	for _, r := range records(t, Stage{Arrivals: every(time.Second), Source: source}) {
		if r.OK() || r.Failure.Cause != tacho.Status {
			t.Fatalf("a prompt that is too long: %v", r.Failure)
		}
	}
}

// A cancelled stage returns an error; a stage with enough requests ends without
// one.
func TestStops(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	source := talks{sessions: 1 << 40, turns: 1, prompt: 100, answer: 10}
	if err := Run(ctx, Stage{Arrivals: every(time.Second), Source: source, Server: server(t)}, &kept{}); err == nil {
		t.Error("no error of a stage that was stopped")
	}
	enough := make(chan struct{})
	close(enough)
	if err := Run(t.Context(), Stage{Arrivals: every(time.Second), Source: source, Server: server(t), Enough: enough}, &kept{}); err != nil {
		t.Error(err)
	}
}

// There may be many samples between two requests. A stage cancelled among them
// stops before the remaining samples.
func TestStopsBetweenSamples(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	looks := 0
	look := func(time.Duration) time.Duration {
		if looks++; looks == 10 {
			cancel()
		}
		return time.Nanosecond
	}
	source := talks{sessions: 2, turns: 1, prompt: 100, answer: 10}
	err := Run(ctx, Stage{Arrivals: every(10 * time.Millisecond), Source: source, Server: server(t), SampleEvery: time.Nanosecond, Sample: look}, &kept{})
	if err == nil || looks > 10+checkEvery {
		t.Errorf("%d looks, stopped at the tenth: %v", looks, err)
	}
}
