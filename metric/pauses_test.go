package metric

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// streamAt returns a successful stream with one token at each time. All times are in milliseconds.
func streamAt(sent, prompt int, at ...int) *tacho.Record {
	r := &tacho.Record{Timeline: tacho.NewTimeline(time.Duration(sent) * time.Millisecond), Input: prompt, Output: len(at)}
	r.Sent, r.Clock = r.Due, tacho.KernelClock
	for _, ms := range at {
		r.Events = append(r.Events, tacho.Event{At: time.Duration(ms) * time.Millisecond, Tokens: 1})
	}
	r.End = r.Last()
	return r
}

// tokens returns 50 times with 10 ms between them.
func tokens(from int) (out []int) {
	for i := range 50 {
		out = append(out, from+10*i)
	}
	return out
}

func pausesOf(c Config, records ...*tacho.Record) *ServerPauses {
	var a Accumulator
	for _, r := range records {
		_ = a.Add(r)
	}
	s := a.Summary(c)
	return s.Pauses
}

// paused returns streams with a token every 10 ms from a server that stops at the given times, in milliseconds. A
// stream begins every 50 ms, has 20 prompt tokens, 50 output tokens and its first token after 20 ms.
func paused(until int, stops ...[2]int) (out []*tacho.Record) {
	clock := func(at int) int { // the wall clock when the server has worked for a time
		for _, s := range stops {
			if at >= s[0] {
				at += s[1]
			}
		}
		return at
	}
	for sent := 0; sent < until; sent += 50 {
		worked := 0 // the server's working time when the request arrives
		for worked < sent && clock(worked) < sent {
			worked++
		}
		var at []int
		for _, ms := range tokens(worked + 20) {
			at = append(at, clock(ms))
		}
		out = append(out, streamAt(sent, 20, at...))
	}
	return out
}

func kinds(ps *ServerPauses) string {
	if ps == nil {
		return "none"
	}
	var text strings.Builder
	for _, p := range ps.List {
		fmt.Fprintf(&text, "%s%s %.0f ms at %.2f s; ", p.Kind, p.Endpoint, p.Millis, p.AtS)
	}
	if ps.PrefillStops > 0 {
		fmt.Fprintf(&text, "%d prefills", ps.PrefillStops)
	}
	return text.String()
}

// The stops of real engines: SGLang's garbage collection, a batch of prompts in SGLang, and prompts in chunks in vLLM.
func TestPausesOfEngines(t *testing.T) {
	text := must.Get(os.ReadFile("testdata/pauses.json"))(t)
	var captures []struct {
		Name     string
		Requests []struct {
			Sent, In int
			At       []int // the first time and differences
		}
	}
	must.Do(t, json.Unmarshal(text, &captures))
	want := map[string]string{
		"pause":           "server 506 ms at 23.03 s; 1 prefills",
		"prefill":         "2 prefills",
		"chunked prefill": "3 prefills",
	}
	for _, c := range captures {
		var records []*tacho.Record
		for _, r := range c.Requests {
			for i := 1; i < len(r.At); i++ {
				r.At[i] += r.At[i-1]
			}
			records = append(records, streamAt(r.Sent, r.In, r.At...))
		}
		if got := kinds(pausesOf(Config{}, records...)); got != want[c.Name] {
			t.Errorf("%s: %s, want %s", c.Name, got, want[c.Name])
		}
	}
}

func TestPauseKinds(t *testing.T) {
	pause := [2]int{2000, 500}
	client := Config{Client: &Client{Pauses: Pauses{TotalS: 0.5, List: []Stall{{AtS: 1.99, Millis: 500}}}}}
	long := append(paused(1000), streamAt(200, 2000, tokens(2200)...)) // 1 ms for each prompt token
	for _, r := range long[:20] {
		for i := range r.Events { // no step of decoding fits in between
			if r.Events[i].At > 400*time.Millisecond {
				r.Events[i].At += 1800 * time.Millisecond
			}
		}
		r.End = r.Last()
	}
	chunks := append(paused(1000), streamAt(200, 1600, tokens(1800)...))
	for _, r := range chunks[:20] { // steps of 400 ms with a chunk and one token of each stream
		for i := range r.Events {
			switch at := r.Events[i].At.Milliseconds(); {
			case at >= 240:
				r.Events[i].At += 1600 * time.Millisecond
			case at >= 200 && r.Sent < 150*time.Millisecond:
				r.Events[i].At = time.Duration(600+400*((at-200)/10)) * time.Millisecond
			case at >= 200:
				r.Events[i].At += 1600 * time.Millisecond
			}
		}
		r.End = r.Last()
	}
	held := paused(4000, pause)
	for _, r := range held { // the server went on, but the tokens arrived later
		for i := range r.Events {
			if at := r.Events[i].At; at >= 2500*time.Millisecond && at < 2700*time.Millisecond && r.Sent < 2*time.Second {
				r.Events[i].At = 2500*time.Millisecond + time.Duration(i)*time.Microsecond
			}
		}
	}
	two := slices.Concat(paused(4000), paused(4000, pause))
	for i, r := range two {
		r.Endpoint = []string{"a", "b"}[2*i/len(two)]
	}
	for _, c := range []struct {
		name    string
		config  Config
		records []*tacho.Record
		want    string
	}{
		{"none", Config{}, paused(4000), "none"},
		{"a pause", Config{}, paused(4000, pause), "server 509 ms at 1.99 s; "},
		{"too short", Config{}, paused(4000, [2]int{2000, 80}), "none"},
		{"no work", Config{}, []*tacho.Record{streamAt(0, 20, tokens(20)...), streamAt(2000, 20, tokens(2020)...)}, "none"},
		{"the client", client, paused(4000, pause), "client 509 ms at 1.99 s; "},
		{"a long prompt", Config{}, long, "1 prefills"},
		{"a prompt in chunks", Config{}, chunks, "4 prefills"},
		{"held", Config{}, held, "held 509 ms at 1.99 s; "},
		{"one of two", Config{}, two, "replicab 509 ms at 1.99 s; "},
	} {
		got := kinds(pausesOf(c.config, c.records...))
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestPausesExplainSlowRequests(t *testing.T) {
	got := pausesOf(Config{}, paused(60_000, [2]int{5000, 500}, [2]int{25_000, 500}, [2]int{45_000, 500})...)
	if got == nil {
		t.Fatal("no pauses")
	}
	// Every request takes 20 ms, or up to 520 ms if it was sent in a pause.
	if got.Pauses != 3 || got.EveryS < 20 || got.EveryS > 20.6 || got.SlowMillis > 275 || got.Slow < 12 || got.Slow != got.SlowInPauses {
		t.Errorf("%+v", got)
	}
	if *got.P99Millis < 300 || *got.P99Without > 25 {
		t.Errorf("p99 %v ms, %v ms without pauses", *got.P99Millis, *got.P99Without)
	}
	seen := paused(90_000, [2]int{5000, 500}, [2]int{15_000, 500}, [2]int{25_000, 500}, [2]int{45_000, 500}, [2]int{55_000, 500}, [2]int{65_000, 500})
	if missed := pausesOf(Config{}, seen...); missed.EveryS < 10 || missed.EveryS > 10.8 {
		t.Errorf("one pause of a rhythm without a witness: every %v s", missed.EveryS)
	}
	irregular := pausesOf(Config{}, paused(60_000, [2]int{5000, 500}, [2]int{15_000, 500}, [2]int{45_000, 500})...)
	if irregular.EveryS != 0 || irregular.Pauses != 3 {
		t.Errorf("gaps of 10 and 30 s are no rhythm: %+v", irregular)
	}
}

// The pauses of a long run depend on the set of records, not on their order or on how they are shared.
func TestPausesMerge(t *testing.T) {
	records := paused(20_000, [2]int{5000, 500}, [2]int{12_000, 1000})
	for i, r := range records {
		r.Endpoint = []string{"a", "b"}[i%2]
	}
	hours := 3 * 3600 * 1000 // the unit is then longer than a millisecond
	records = append(records, streamAt(hours, 20, tokens(hours+20)...))
	want := pausesOf(Config{}, records...)
	if got := kinds(want); got != "server 504 ms at 4.99 s; server 1008 ms at 11.99 s; " {
		t.Errorf("%s", got)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(records), func(i, k int) { records[i], records[k] = records[k], records[i] })
	var sum, other Accumulator
	for i, r := range records {
		_ = []*Accumulator{&sum, &other}[i%2].Add(r)
	}
	sum.Merge(&other)
	s := sum.Summary(Config{})
	if diff := cmp.Diff(want, s.Pauses); diff != "" {
		t.Errorf("merged: %s", diff)
	}
}

// The cure is named only if the engine is known to have it.
func TestPauseCures(t *testing.T) {
	for engine, want := range map[string]string{"sglang": "freeze_gc", "vllm": "read its log", "": "read its log"} {
		var a Accumulator
		for _, r := range paused(10_000, [2]int{5000, 500}) {
			_ = a.Add(r)
		}
		s := a.Summary(Config{Engine: engine})
		if !slices.ContainsFunc(s.Verdict.Reasons, func(r Reason) bool { return r.Code == "server-pauses" && strings.Contains(r.Text, want) }) {
			t.Errorf("%s: %+v, want %s", engine, s.Verdict.Reasons, want)
		}
	}
}

// A running level names the pauses of finished requests, and no time that requests in flight may have filled.
func TestPausesSoFar(t *testing.T) {
	all := paused(30_000, [2]int{5000, 500}, [2]int{28_500, 500})
	var f SoFar
	for _, r := range all {
		if r.End < 29*time.Second {
			f.Add(r)
		}
	}
	s := f.Summary(Config{})
	if got := kinds(f.Pauses(&s)); got != "server 509 ms at 4.99 s; " {
		t.Errorf("%s", got)
	}
	var parts SoFar
	for i := range 2 {
		var part SoFar
		for _, r := range all[i*len(all)/2 : (i+1)*len(all)/2] {
			part.Add(r)
		}
		parts.Merge(&part)
	}
	if got := parts.Pauses(&s); got == nil || got.Pauses != 2 {
		t.Errorf("merged: %s", kinds(got))
	}
}

func TestPauseWords(t *testing.T) {
	rhythm := [][2]int{{5000, 500}, {25_000, 500}, {45_000, 500}}
	for _, c := range []struct {
		stops [][2]int
		want  []string
	}{
		{rhythm[:1], []string{"the server stood still once for 509 ms, at 4.99 s: read", "100 % of requests with TTFT above 275 ms waited in a pause of the server: cure"}},
		{rhythm, []string{"the server stood still 3 times for 509 ms, about every 20 s: read", "TTFT p99 is 320 ms, and 20 ms without requests in pauses, in which 100 % of those above 275 ms waited: cure"}},
	} {
		var a Accumulator
		for _, r := range paused(60_000, c.stops...) {
			_ = a.Add(r)
		}
		s := a.Summary(Config{})
		for _, want := range c.want {
			if !slices.ContainsFunc(s.Verdict.Reasons, func(r Reason) bool { return strings.HasPrefix(r.Text, want) && r.Severity == Note }) {
				t.Errorf("%+v, want %s", s.Verdict.Reasons, want)
			}
		}
		for text, want := range map[string]Standing{"pauses<1": Missed, "longest_pause<0.6s": Met, "longest_pause<200ms": Missed} {
			goals, err := ParseSLO(text)
			if err != nil || goals[0].Standing(&s) != want {
				t.Errorf("%s: %v, want %s", text, err, want)
			}
		}
	}
}
