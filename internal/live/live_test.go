package live

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A duration is close to the middle of its bin, and longer durations are in later bins.
func TestBins(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	before := -1
	for d := time.Duration(1); d < 70*time.Minute; d += 1 + d/100 {
		at := d + time.Duration(r.Int64N(int64(d/50)+1))
		if off := math.Abs(float64(middle(binOf(at))-at)) / float64(at); off > 0.02 {
			t.Errorf("%v is counted as %v", at, middle(binOf(at)))
		}
		if bin := binOf(d); bin < before || bin >= bins {
			t.Errorf("%v is in bin %d, after %d of %d", d, bin, before, bins)
		} else {
			before = bin
		}
	}
	if binOf(-1) != 0 || binOf(math.MaxInt64) != bins-1 {
		t.Errorf("bins %d and %d of durations outside the range", binOf(-1), binOf(math.MaxInt64))
	}
}

// The percentiles of bins are close to the percentiles of the values.
func TestFigure(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	var c counter
	var all []float64
	for range 10_000 {
		ms := 20 * math.Exp(r.NormFloat64())
		all = append(all, ms)
		c.add(time.Duration(ms*1e6), 1)
	}
	slices.Sort(all)
	f := c.take().figure()
	for _, one := range []struct{ got, want float64 }{{*f.P50, all[5000]}, {*f.P99, all[9900]}} {
		if math.Abs(one.got/one.want-1) > 0.02 {
			t.Errorf("got %v, want %v", one.got, one.want)
		}
	}
	if len(c.take()) != 0 {
		t.Error("take did not reset the counter")
	}
}

// A histogram contains every value between the bounds of its bucket.
func TestBuckets(t *testing.T) {
	var c counter
	for _, ms := range []float64{12, 12, 40, 100} {
		c.add(time.Duration(ms*1e6), 1)
	}
	got := c.take().buckets()
	n, last := int64(0), got[0].FromMillis
	for _, b := range got {
		if b.FromMillis != last || b.BelowMillis <= b.FromMillis || b.BelowMillis > 1.3*b.FromMillis {
			t.Errorf("bucket %+v after %v", b, last)
		}
		n, last = n+b.N, b.BelowMillis
	}
	if n != 4 || got[0].N != 2 || got[0].FromMillis > 12 || got[0].BelowMillis <= 12 || last <= 100 || got[len(got)-1].FromMillis > 100 {
		t.Errorf("%+v", got)
	}
}

// drive feeds n requests of three tokens within a second. The last request fails.
func drive(f *Feed, n int) {
	for i := range n {
		at := time.Duration(i) * time.Millisecond
		f.Counts.Started.Add(1)
		rec := &tacho.Record{Timeline: tacho.Timeline{Due: at, Slot: at, Sent: at + time.Millisecond, End: at + 100*time.Millisecond}}
		if i == n-1 {
			rec.Failure = &tacho.Failure{Cause: tacho.Status, Status: 503, Message: "no room"}
			f.Counts.Failed.Add(1)
		} else {
			f.Token(1, true, 50*time.Millisecond)
			f.Token(2, false, 20*time.Millisecond)
		}
		f.Counts.Finished.Add(1)
		f.Counts.Sessions.Add(1)
		f.Add(rec)
	}
}

func TestState(t *testing.T) {
	var b State
	b.Begin(Level{Number: 1, Of: 2, Rate: 10, Sessions: 40, LaterS: new(4.0)})
	f := &Feed{Server: func() *Server { return &Server{Queued: new(3.0)} }}
	drive(f, 10)
	f.Counts.Started.Add(2) // two requests in flight
	b.Add(f.Tick(time.Second))
	s := b.Snapshot()
	if want := (Totals{Sent: 12, Finished: 10, Failed: 1, Sessions: 10, Tokens: 27}); s.Totals != want {
		t.Errorf("totals %+v, want %+v", s.Totals, want)
	}
	if s.Now.SentPerS != 12 || s.Now.ServedPerS != 9 || s.Now.TokensPerS != 27 || s.Now.InFlight != 2 || *s.Now.Server.Queued != 3 {
		t.Errorf("now %+v", s.Now)
	}
	if s.Now.TTFT.N != 9 || math.Abs(*s.Now.TTFT.P99-50) > 1 || s.Now.ITL.N != 18 || math.Abs(*s.Now.ITL.P99-20) > 0.4 {
		t.Errorf("TTFT %+v, ITL %+v", s.Now.TTFT, s.Now.ITL)
	}
	if *s.Share != 0.25 || *s.LeftS != 3 || *s.RunLeftS != 7 {
		t.Errorf("share %v, left %v, of the run %v", *s.Share, *s.LeftS, *s.RunLeftS)
	}
	if d := cmp.Diff([]Failure{{Cause: "status", Status: 503, Count: 1, LastS: 0.109, Text: "no room"}}, s.Failures); d != "" {
		t.Errorf("failures (-want +got):\n%s", d)
	}
	if s.Verdict.Severity != metric.Degraded || s.Verdict.Reasons[0].Code != "failures" {
		t.Errorf("verdict %+v", s.Verdict)
	}
	drive(f, 5)
	b.Add(f.Tick(2 * time.Second))
	if s := b.Snapshot(); len(s.History) != 2 || s.History[1].SentPerS != 5 || s.Now.SentPerS != 8.5 || s.Failures[0].Count != 2 {
		t.Errorf("the next second: %+v", s)
	}
	if len(s.TTFT) != 1 || s.TTFT[0].N != 9 || s.Now.FailedPerS != 1 {
		t.Errorf("histogram %+v, failed %v/s", s.TTFT, s.Now.FailedPerS)
	}
	b.End(&outcome.Level{Summary: metric.Summary{Verdict: metric.Verdict{Severity: metric.Valid}}})
	b.Begin(Level{Number: 2, Of: 2})
	if s := b.Snapshot(); len(s.Earlier) != 2 || s.Earlier[0].Level != 1 || s.TTFT != nil {
		t.Errorf("the history of the next level: %+v", s)
	}
	if s := b.Snapshot(); s.Totals != (Totals{}) || len(s.Past) != 1 || s.Past[0].Level.Number != 1 || s.Share != nil || s.Failures != nil {
		t.Errorf("the next level: %+v", s)
	}
}

// Ticks of several generators, sent as JSON, give the same state as one generator.
func TestTicksAddUp(t *testing.T) {
	var one, many State
	for _, b := range []*State{&one, &many} {
		b.Begin(Level{Number: 1, Rate: 30})
	}
	alone, parts := &Feed{}, []*Feed{{}, {}, {}}
	for second := range 20 {
		var late []Tick
		for i, p := range parts {
			n := 3 + second%(i+2)
			drive(alone, n)
			drive(p, n)
			tick := p.Tick(time.Duration(second+1) * time.Second)
			sent := must.Get(json.Marshal(tick))(t)
			got := Tick{judged: tick.judged} // counted where the records are
			must.Do(t, json.Unmarshal(sent, &got))
			late = append(late, got)
		}
		one.Add(alone.Tick(time.Duration(second+1) * time.Second))
		slices.Reverse(late) // in any order
		for _, tick := range late {
			many.Add(tick)
		}
	}
	if d := cmp.Diff(one.Snapshot(), many.Snapshot()); d != "" {
		t.Errorf("(-one +many):\n%s", d)
	}
}

// A computed request advances the virtual time.
func TestComputed(t *testing.T) {
	var b State
	b.Begin(Level{Number: 1, Rate: 1, Sessions: 100})
	f := &Feed{}
	f.Sent()
	f.Computed(&tacho.Record{Timeline: tacho.Timeline{Sent: 0, End: 50 * time.Second, Events: tacho.Events{{At: time.Second}, {At: 3 * time.Second}}}})
	b.Add(f.Tick(time.Millisecond))
	s := b.Snapshot()
	if s.AtS != 50 || *s.LeftS != 50 || math.Abs(*s.Now.TTFT.P50-1000) > 20 || math.Abs(*s.Now.ITL.P50-2000) > 40 {
		t.Errorf("%+v", s)
	}
}

// Every gap of a computed request counts, as for a request that was sent.
func TestComputedCountsEveryGap(t *testing.T) {
	r := &tacho.Record{Timeline: tacho.NewTimeline(0)}
	r.Sent = 0
	at := time.Duration(0)
	var sent, computed Feed
	for i, millis := range []int{100, 10, 10, 11, 50, 10, 10, 90, 10} {
		gap := time.Duration(millis) * time.Millisecond
		at += gap
		e := tacho.Event{At: at, Tokens: int16(1 + i%4/3)}
		r.Events = append(r.Events, e)
		sent.Token(int(e.Tokens), i == 0, gap)
	}
	computed.Computed(r)
	want, got := sent.Tick(time.Second), computed.Tick(time.Second)
	if d := cmp.Diff(want.ITL, got.ITL); d != "" || want.Tokens != got.Tokens || !cmp.Equal(want.TTFT, got.TTFT) {
		t.Errorf("%d tokens, want %d; gaps -want +got\n%s", got.Tokens, want.Tokens, d)
	}
}
