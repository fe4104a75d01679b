package search

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// A rhythmic server serves requests in 100 ms, or refuses or delays some by their time since the probe began.
type rhythmic func(load float64, at time.Duration, sent int) (ttft time.Duration, refused bool)

// probe runs a probe on the server.
func (r rhythmic) probe(w *Watch, p Probe) {
	rng := rand.New(rand.NewPCG(uint64(p.Number), 7))
	load := p.Load
	if p.Alone {
		load = 5
	}
	var now time.Duration
	for i := range p.Ceiling() {
		now += time.Duration(rng.ExpFloat64() / load * float64(time.Second))
		ttft, refused := r(load, now, i)
		rec := request(now, ttft)
		if refused {
			rec.Failure = &tacho.Failure{Cause: tacho.Refused}
		}
		if w.Add(rec, int(load)) {
			return
		}
	}
}

// search runs a search on the server.
func (r rhythmic) search(t *testing.T, slo string) Limit {
	t.Helper()
	goals, err := ParseSLO(slo)
	if err != nil {
		t.Fatal(err)
	}
	s := New(Rate, goals)
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		w := s.Watch(p)
		r.probe(w, p)
		s.Add(w, "")
	}
	return s.Limit(true)
}

// grows returns a time to first token that reaches 400 ms at 40 req/s.
func grows(load float64) time.Duration {
	return time.Duration(400 * load / 40 * load / 40 * float64(time.Millisecond))
}

// A server that stands still for 3 s of 70 s delays 4.3 % of its requests at any load: no load keeps a p99, and
// a p90 hardly depends on the pauses.
func TestPausesDecide(t *testing.T) {
	pauses := rhythmic(func(load float64, at time.Duration, _ int) (time.Duration, bool) {
		const period, pause = 70 * time.Second, 3 * time.Second
		if into := (at + 20*time.Second) % period; into < pause {
			return max(grows(load), pause-into+500*time.Millisecond), false
		}
		return grows(load), false
	})
	if l := pauses.search(t, "ttft:p99<400ms"); l.Holds {
		t.Error(l.Sentence)
	}
	if l := pauses.search(t, "ttft:p90<400ms"); !l.Decided || l.Load > 40 || l.Missed < 40 {
		t.Error(l.Sentence)
	}
}

// An outage of 3 s each 90 s fails 3.3 % of the requests at any load.
func TestOutagesCount(t *testing.T) {
	outages := rhythmic(func(load float64, at time.Duration, _ int) (time.Duration, bool) {
		return grows(load), (at+50*time.Second)%(90*time.Second) < 3*time.Second
	})
	l := outages.search(t, "ttft:p90<400ms,error<1%")
	if l.Holds && l.Decided {
		t.Error(l.Sentence)
	}
	if !l.Decided && !strings.Contains(l.Sentence, " more would tell.") {
		t.Errorf("no reason: %s", l.Sentence)
	}
}

// A quota of 30 req/s with a burst of 300 requests refuses none in the first 30 s at 40 req/s.
func TestBurstsRunOut(t *testing.T) {
	tokens, before := 0.0, time.Duration(0)
	quota := rhythmic(func(_ float64, at time.Duration, sent int) (time.Duration, bool) {
		if sent == 0 {
			tokens, before = 300, 0
		}
		tokens = min(300, tokens+30*(at-before).Seconds())
		before = at
		if tokens < 1 {
			return 10 * time.Millisecond, true
		}
		tokens--
		return 10 * time.Millisecond, false
	})
	if l := quota.search(t, "error<1%"); l.Load > 31.5 || l.Decided && l.Load < 28 {
		t.Error(l.Sentence)
	}
}

// If one probe has a cluster of misses and another has none, they are no better evidence than one cluster.
func TestQuietProbesDoNotDivideAClusters(t *testing.T) {
	g := Goal{Share: 0.05}
	paused := Evidence{Count: 800, Share: 0.1, EffectiveSize: 10, Misses: 1}
	quiet := Evidence{Count: 800, EffectiveSize: 800}
	both := paused.plus(g, quiet)
	if both.Share != 0.05 || both.Misses != 1 || both.EffectiveSize != 20 {
		t.Errorf("%+v", both)
	}
	if _, misses := both.pValues(g); misses < 0.3 {
		t.Errorf("one cluster proves that the load holds: p = %.3f", misses)
	}
}

// A goal on goodput counts the requests that miss any limit, and failed requests.
func TestGoodputGoal(t *testing.T) {
	limits := []metric.SLO{{Metric: "ttft", LimitMillis: 200}, {Metric: "e2el", LimitMillis: 300}}
	goals, err := ParseSLO("goodput>95%", limits...)
	if err != nil {
		t.Fatal(err)
	}
	failed := request(0, 50*time.Millisecond)
	failed.Failure = &tacho.Failure{Cause: tacho.Refused}
	for want, r := range map[string]*tacho.Record{
		"kept": request(0, 100*time.Millisecond), "e2el": request(0, 180*time.Millisecond), "ttft": request(0, 250*time.Millisecond), "failed": failed,
	} {
		goals[0].values(r, func(v float64) {
			if goals[0].misses(v) != (want != "kept") {
				t.Errorf("%s: %v", want, v)
			}
		})
	}
	if g := goals[0]; g.String() != "goodput > 95%" || g.Show(0.02) != "98 %" || g.Share < 0.0499 || g.Share > 0.0501 {
		t.Errorf("%s, %s, %v", g, g.Show(0.02), g.Share)
	}
	for _, wrong := range []string{"goodput>95%", "goodput<5%"} {
		if _, err := ParseSLO(wrong); err == nil {
			t.Errorf("%s without limits has no error", wrong)
		}
	}
}

// An overload is random variation if the server kept up with the load, or a higher one, for three times as long.
func TestOverloadMayBeRandom(t *testing.T) {
	goal, err := ParseSLO("ttft:p90<400ms")
	if err != nil {
		t.Fatal(err)
	}
	holding := Evidence{Count: 1000, EffectiveSize: 500, Share: 0.05, Misses: 25}
	probe := func(load float64, took time.Duration, v Verdict) Result {
		return Result{Probe: Probe{Load: load, Effort: Effort{Full: true}}, Verdict: v, Took: took, Goals: []Evidence{holding}}
	}
	s := &Search{Kind: Rate, Goals: goal, Within: defaultWithin, Budget: 4 * time.Minute, Results: []Result{
		probe(30, 10*time.Second, Overrun), probe(32, 25*time.Second, Undecided), probe(32, 25*time.Second, Holds),
	}}
	if load := s.holdsBelow(32, decideAlpha); load != 32 {
		t.Errorf("%v req/s holds after 50 s without overload, want 32", load)
	}
	s.Results[0].Took = 20 * time.Second
	if load := s.holdsBelow(32, decideAlpha); load != 0 {
		t.Errorf("%v req/s holds although 30 req/s was overloaded", load)
	}
}
