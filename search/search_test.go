package search

import (
	"math"
	"strings"
	"testing"
	"time"
)

// A fake server keeps its SLO up to a load: the latency of a request is a power
// of it.
func fakeSearch(s *Search, limit float64, void func(Probe) string) {
	for p, ok := s.Next(); ok; p, ok = s.Next() {
		w := s.Watch(p)
		feed(w, p, limit)
		s.Add(w, void(p))
	}
}

func never(Probe) string { return "" }

// One at a time is too much: there is no limit, and the search is over at once.
func TestNothingHolds(t *testing.T) {
	goals, err := ParseSLO("ttft:p90<400ms")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Rate, goals)
	fakeSearch(s, 0.2, never)
	l := s.Limit(true)
	if l.Holds || len(s.Results) != 1 || !strings.Contains(l.Sentence, "Does not hold") {
		t.Errorf("%d probes: %+v", len(s.Results), l)
	}
}

// The limit is found whatever is turned up, with the goal that breaks.
func TestTheLimitIsFound(t *testing.T) {
	for _, kind := range Kinds {
		goals, err := ParseSLO("ttft:p90<400ms,error<1%")
		if err != nil {
			t.Fatal(err)
		}
		s := New(kind, goals)
		fakeSearch(s, 40, never)
		l := s.Limit(true)
		if l.Load < 38 || l.Load > 42 || l.Binding != "TTFT p90 < 400 ms" || !l.Holds || len(s.Results) > DefaultProbes {
			t.Errorf("%s: %s %+v", kind, l.Sentence, l.Probes)
		}
		if !strings.HasPrefix(l.Sentence, "Holds TTFT p90 < 400 ms") || !strings.Contains(l.Sentence, "breaks first") {
			t.Error(l.Sentence)
		}
	}
}

// What is left of a search is time: a scout takes as much of it as many requests near
// the limit do. But there are always some requests by number.
func TestScoutsCountByTheirTime(t *testing.T) {
	goals, err := ParseSLO("ttft:p99<400ms")
	if err != nil {
		t.Fatal(err)
	}
	const load = 10
	s := New(Rate, goals)
	whole := s.left(all, load)
	for _, c := range []struct {
		seconds float64
		verdict Verdict
		takes   float64
	}{{30, Holds, 30 * load}, {30, Void, 0}, {1e6, Holds, whole - least/s.share() + 20}} {
		s.Results = []Result{{Probe: Probe{Kind: Rate, Load: 1, Alone: true}, Verdict: c.verdict, Requests: 20, Took: time.Duration(c.seconds * 1e9)}}
		if takes := whole - s.left(all, load); math.Abs(takes-c.takes) > 1e-6 {
			t.Errorf("%v s, %s: takes %.1f requests, want %.1f", c.seconds, c.verdict, takes, c.takes)
		}
	}
}

// A winner that had no long probe is said to have had none.
func TestAnUntriedWinnerIsNamed(t *testing.T) {
	goals, err := ParseSLO("ttft:p90<400ms")
	if err != nil {
		t.Fatal(err)
	}
	const untried = "before that load itself was tried for long"
	for probes, want := range map[int]bool{DefaultProbes: false, 5: true} {
		s := New(Rate, goals)
		s.Probes = probes
		fakeSearch(s, 40, never)
		if l := s.Limit(true); strings.Contains(l.Sentence, untried) != want {
			t.Errorf("%d probes: %s", probes, l.Sentence)
		}
	}
}

// Nothing above --to is tried, and what holds there is a lower bound.
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

// A probe that proves nothing is run once more, and then is too much for the
// client; nothing else is said of it.
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
	fakeSearch(s, 40, func(Probe) string { return "no clock" })
	if l := s.Limit(true); l.Holds || len(s.Results) > 3 || !strings.Contains(l.Sentence, "No probe proves anything: no clock") {
		t.Errorf("%+v", l)
	}
}

// A search that was cut short says what it knows.
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
	if l := s.Limit(false); l.Done || !strings.HasPrefix(l.Sentence, "Stopped early. So far: Holds") {
		t.Error(l.Sentence)
	}
	if l := New(Rate, goals).Limit(false); !strings.Contains(l.Sentence, "nothing was measured") {
		t.Error(l.Sentence)
	}
}
