package search

import (
	"strings"
	"testing"
	"time"
)

// fakeSearch runs a search on a fake server that keeps its SLO up to a limit.
func fakeSearch(s *Search, limit float64, void func(Probe) string) {
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		w := s.Watch(p)
		feed(w, p, limit)
		s.Add(w, void(p))
	}
}

func never(Probe) string { return "" }

// If one request at a time misses the SLO, the search ends at once.
func TestNothingHolds(t *testing.T) {
	goals, err := ParseSLO("ttft:p90<400ms")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Rate, goals)
	fakeSearch(s, 0.2, never)
	l := s.Limit(true)
	if l.Holds || !l.Decided || len(s.Results) > 2 || !strings.Contains(l.Sentence, "Does not hold") {
		t.Errorf("%d probes: %+v", len(s.Results), l)
	}
}

// The limit and the binding goal are found for each kind of load.
func TestTheLimitIsFound(t *testing.T) {
	for _, kind := range Kinds {
		goals, err := ParseSLO("ttft:p90<400ms,error<1%")
		if err != nil {
			t.Fatal(err)
		}
		s := New(kind, goals)
		fakeSearch(s, 40, never)
		l := s.Limit(true)
		if l.Load < 38 || l.Load > 42 || l.Binding != "TTFT p90 < 400 ms" || !l.Holds {
			t.Errorf("%s: %s %+v", kind, l.Sentence, l.Probes)
		}
		if !strings.HasPrefix(l.Sentence, "Holds TTFT p90 < 400 ms") || !strings.Contains(l.Sentence, " breaks") {
			t.Error(l.Sentence)
		}
	}
}

// A search with too little time is undecided.
func TestBudgetBoundsTheSearch(t *testing.T) {
	goals, err := ParseSLO("ttft:p90<400ms")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Rate, goals)
	s.Budget = 25 * time.Second
	fakeSearch(s, 40, never)
	l := s.Limit(true)
	spent := time.Duration(0)
	for _, r := range s.Results {
		spent += r.Took
	}
	if l.Decided || !strings.HasPrefix(l.Sentence, "Undecided: ") || spent > 2*s.Budget {
		t.Errorf("%v: %s", spent, l.Sentence)
	}
}

// The named load held in a probe of its own, and a load near it missed.
func TestTheAnswerWasMeasured(t *testing.T) {
	for _, limit := range []float64{3, 40, 300} {
		goals, err := ParseSLO("ttft:p90<400ms")
		if err != nil {
			t.Fatal(err)
		}
		s := New(Rate, goals)
		fakeSearch(s, limit, never)
		l := s.Limit(true)
		held, missed := false, false
		for _, r := range s.Results {
			held = held || r.Load == l.Load && s.worstRatio(r) <= 1
			missed = missed || r.Load == l.Missed && s.missed(r)
		}
		if !l.Decided || !held || !missed || l.Missed > (1+foundWithinFactor*s.Within)*l.Load || l.Load > limit || l.Missed < limit {
			t.Errorf("limit %v: %+v", limit, l)
		}
	}
}

// No load above --to is tried. If --to holds, it is a lower bound.
func TestTheHighestLoadIsKept(t *testing.T) {
	goals, err := ParseSLO("ttft:p90<400ms")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Rate, goals)
	s.To = 10
	fakeSearch(s, 40, never)
	if l := s.Limit(true); l.Load != 10 || l.High != 0 || !strings.Contains(l.Sentence, "10 req/s at least") {
		t.Errorf("%+v", l)
	}
}

// A void probe is run once more. If it is void again, the load is too high for the client.
func TestVoidProbesProveNothing(t *testing.T) {
	goals, err := ParseSLO("ttft:p90<400ms")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Rate, goals)
	fakeSearch(s, 40, func(p Probe) string {
		if p.Load > 20 {
			return "the client is short of CPU"
		}
		return ""
	})
	l := s.Limit(true)
	if l.Load > 21.5 || l.Load < 10 || !strings.Contains(l.Sentence, "could not be offered: the client is short of CPU") {
		t.Errorf("%+v", l)
	}
	s = New(Rate, goals)
	s.Budget = time.Minute
	fakeSearch(s, 40, func(p Probe) string {
		if p.Load > 5 {
			return "the client is short of CPU"
		}
		return ""
	})
	if l := s.Limit(true); !strings.Contains(l.Sentence, "could not be offered: the client is short of CPU") || strings.Contains(l.Sentence, "break") {
		t.Errorf("%s", l.Sentence)
	}
	s = New(Rate, goals)
	fakeSearch(s, 40, func(Probe) string { return "no clock" })
	if l := s.Limit(true); l.Holds || len(s.Results) > 3 || !strings.Contains(l.Sentence, "No probe proves anything: no clock") {
		t.Errorf("%+v", l)
	}
}

// A search has an answer even if it was cut short: three scouts are undecided.
func TestAPartOfASearchIsAnAnswer(t *testing.T) {
	goals, err := ParseSLO("ttft:p90<400ms")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Rate, goals)
	for range 3 {
		p, _ := s.Next()
		w := s.Watch(p)
		feed(w, p, 40)
		s.Add(w, "")
	}
	if l := s.Limit(false); l.Done || !strings.HasPrefix(l.Sentence, "Stopped early. So far: Undecided: ") {
		t.Error(l.Sentence)
	}
	if l := New(Rate, goals).Limit(false); !strings.Contains(l.Sentence, "nothing was measured") {
		t.Error(l.Sentence)
	}
}

// Two probes of one load are averaged before the isotonic regression pools loads, so lower
// loads keep their own miss ratios.
func TestProbesOfOneLoadAreAveragedFirst(t *testing.T) {
	goals, err := ParseSLO("error<5%")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Rate, goals)
	for _, one := range []struct{ load, share, count float64 }{{31, 0.012, 250}, {37, 0.008, 270}, {40, 0.006, 320}, {40, 0.2, 1240}} {
		s.Results = append(s.Results, Result{Probe: Probe{Load: one.load}, Goals: []Evidence{{Count: one.count, Share: one.share}}})
	}
	if low, high := s.bracket(); low != 37 || high != 40 {
		t.Errorf("the limit is between %v and %v, want 37 and 40", low, high)
	}
}
