package view

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/termtext"
	"github.com/tacho-bench/tacho/metric"
)

// evil is a text that would break a screen.
const evil = "\x1b[2J\r\n日本日本日本日本日本日本日本 \u202e\x9b"

// A frame fits a screen of any size with any snapshot.
func TestFrameFits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	text := func() string { return strings.Repeat(evil, r.IntN(4)) }
	number := func() *float64 {
		if r.IntN(4) == 0 {
			return nil
		}
		return new(r.Float64() * 1e7)
	}
	figure := func() live.Figure { return live.Figure{P50: number(), P99: number()} }
	for range 200 {
		s := live.Snapshot{
			About: live.About{Server: text(), Model: text()}, Level: live.Level{Number: r.IntN(1000), Of: r.IntN(1000), Name: text(), Rate: r.Float64() * 1e5, Sessions: r.IntN(1e9)},
			Over: r.IntN(3) == 0, Doing: text(), AtS: r.Float64() * 1e6, Share: number(), Verdict: metric.Verdict{Severity: metric.Invalid},
			Now: live.Point{TTFT: figure(), ITL: figure(), TokensPerS: r.Float64() * 1e9, Server: &live.Server{Running: number(), Queued: number(), KVShare: number()}},
		}
		s.LeftS = number()
		if s.LeftS != nil {
			s.RunLeftS = number()
		}
		for range r.IntN(300) {
			s.History = append(s.History, live.Point{TTFT: figure(), ITL: figure(), InFlight: r.Int64N(1e9)})
			s.Notes, s.Failures = append(s.Notes, text()), append(s.Failures, live.Failure{Cause: "status", Status: 503, Count: r.Int64N(1e12), Text: text()})
			s.Past = append(s.Past, live.Past{Level: s.Level, RequestsPerS: r.Float64() * 1e6, TTFTP99: number(), Verdict: metric.Valid})
			s.Verdict.Reasons = append(s.Verdict.Reasons, metric.Reason{Text: text()})
		}
		screen := Screen{Wide: 1 + r.IntN(220), High: 1 + r.IntN(60)}
		lines := screen.Frame(&s)
		if len(lines) > screen.High {
			t.Fatalf("%d lines of %d", len(lines), screen.High)
		}
		for _, l := range lines {
			if termtext.Width(l) > screen.Wide || strings.ContainsAny(l, "\x1b\r\n") {
				t.Fatalf("in %d cells: %q", screen.Wide, l)
			}
		}
		if line := Line(&s); strings.Contains(line, "NaN") {
			t.Fatal(line)
		}
	}
}

// The time that a search takes at most is not cut while a probe waits for its last answers.
func TestSearchWaits(t *testing.T) {
	s := live.Snapshot{AtS: 3500, Share: new(1.0), LeftS: new(0.0), RunLeftS: new(35_000.0), Level: live.Level{Number: 12, Of: 19, AtMost: true, Probe: true}}
	screen := Screen{Wide: 80, High: 24}
	if all := strings.Join(screen.Frame(&s), "\n"); !strings.Contains(all, "last answers, search at most 9:43:20 left") {
		t.Error(all)
	}
}

// A log line does not show 100 % while the last answers are outstanding.
func TestLineWaits(t *testing.T) {
	s := live.Snapshot{Level: live.Level{Number: 1, Of: 1, Seconds: 3}, AtS: 4, Totals: live.Totals{Sent: 9, Finished: 1}, Share: new(1.0), LeftS: new(0.0)}
	if line := Line(&s); !strings.HasPrefix(line, "Level 1 of 1, 0:04 elapsed, waiting for the last answers: 1 done; 8 in flight") {
		t.Error(line)
	}
	s.AtS, *s.Share, *s.LeftS = 1, 0.34, 2
	if line := Line(&s); !strings.HasPrefix(line, "Level 1 of 1, 0:01 elapsed, 0:02 left: 1 done (34 %); 8 in flight") {
		t.Error(line)
	}
}

// The screen and the log say from the start that the server is a simulated engine, and that the level is INVALID so far.
func TestMarksOfARunningLevel(t *testing.T) {
	for _, simulated := range []bool{false, true} {
		for severity, want := range map[metric.Severity]string{
			metric.Unjudged: "not judged so far", metric.Valid: "no problems so far", metric.Degraded: "DEGRADED so far", metric.Invalid: "INVALID so far",
		} {
			if simulated {
				want += ", SIMULATED"
			}
			s := live.Snapshot{About: live.About{Simulated: simulated}, Level: live.Level{Number: 1, Of: 9}, Verdict: metric.Verdict{Severity: severity}}
			screen := Screen{Wide: 80, High: 24}
			frame := slices.IndexFunc(screen.Frame(&s), func(line string) bool {
				return strings.HasPrefix(line, " Verdict") && strings.HasSuffix(line, " "+want)
			})
			if line := Line(&s); frame < 0 || !strings.HasSuffix(line, "; "+want) {
				t.Errorf("%s, simulated %t: %q\n%s", severity, simulated, line, strings.Join(screen.Frame(&s), "\n"))
			}
		}
	}
}

// Elements keep their position when failures and levels are added.
func TestFrameStays(t *testing.T) {
	screen := Screen{Wide: 80, High: 24}
	calm := live.Snapshot{Level: live.Level{Number: 1, Of: 9}, Verdict: metric.Verdict{Severity: metric.Valid}}
	busy := calm
	busy.Verdict.Reasons = []metric.Reason{{Text: "one"}, {Text: "two"}, {Text: "three"}}
	busy.Failures = []live.Failure{{Cause: "a"}, {Cause: "b"}, {Cause: "c"}, {Cause: "d"}}
	busy.Past = make([]live.Past, 12)
	busy.Notes = []string{"note"}
	a, b := screen.Frame(&calm), screen.Frame(&busy)
	for _, name := range []string{"Requests", "TTFT", "Verdict", "Failures"} {
		at := func(lines []string) int {
			for i, l := range lines {
				if strings.HasPrefix(l, " "+name) {
					return i
				}
			}
			return -1
		}
		if at(a) < 0 || at(a) != at(b) {
			t.Errorf("%s moves from line %d to %d", name, at(a), at(b))
		}
	}
}

// No line stays empty on a small screen while levels are left out.
func TestSmallFrameIsFull(t *testing.T) {
	s := live.Snapshot{Level: live.Level{Number: 1, Of: 9}, Past: make([]live.Past, 12), Notes: []string{"note"}, Now: live.Point{Server: &live.Server{
		Running: new(317.0), Queued: new(202.0), KVShare: new(0.5), AgeS: new(0.59),
	}}}
	screen := Screen{Wide: 80, High: 24, Keys: true}
	text := strings.Join(screen.Frame(&s), "\n")
	if _, below, _ := strings.Cut(text, "Verdict"); strings.Contains(below, "\n\n") || !strings.Contains(text, "317 run, 202 queued\n") || !strings.Contains(text, "KV 50 %, read 0.59 s ago") {
		t.Error(text)
	}
}

// All keys are shown, also while the run is to pause.
func TestKeysFit(t *testing.T) {
	for _, pause := range []bool{false, true} {
		lines := Screen{Wide: 80, High: 24, Keys: true, Pause: pause}.Frame(&live.Snapshot{})
		last := lines[len(lines)-1]
		if !strings.Contains(last, "q") || strings.Contains(last, "...") || pause != strings.Contains(last, "PAUSE before the next level") {
			t.Error(last)
		}
	}
}

// The help for the keys is not cut on a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	text := strings.Join(Screen{Wide: 80, High: 24, Keys: true, Help: true}.Frame(&live.Snapshot{}), "\n")
	if strings.Contains(text, "...") || !strings.Contains(text, "half a second.") {
		t.Error(text)
	}
}

// Names of levels are short in the table if they are only loads.
func TestRowName(t *testing.T) {
	for name, want := range map[string]string{
		"--request-rate 16": "16 req/s", "--request-rate inf": "inf req/s", "--request-rate inf --max-concurrency 1": "concurrency 1",
		"--num-prompts 8 --request-rate 2": "8 prompts, 2 req/s", "--backend tgi": "--backend tgi", "--random-input-len 5 --request-rate 2": "--random-input-len 5 --request-rate 2",
		"odd": "odd", "--request-rate 1 odd": "--request-rate 1 odd",
	} {
		if got := rowName(&live.Level{Name: name}); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{0: "0:00", 59.6: "1:00", 61: "1:01", 3600: "1:00:00", 7265: "2:01:05"} {
		if got := clock(v); got != want {
			t.Errorf("%v is shown as %s, want %s", v, got, want)
		}
	}
}
