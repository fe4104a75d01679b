package score

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// A trial is a computed run: answers of a model to prompts, alone twice and under load.
type trial struct {
	prompts  int
	accuracy float64
	floor    float64 // share of answers with other words, in each pass
	fault    float64 // share of answers under load that are another prompt's
	digits   float64 // share of answers under load with wrong digits from the middle on
	half     float64 // share of answers under load that end in their middle
	unscored bool
}

func (tr *trial) run(rng *rand.Rand) *metric.PairedAnswers {
	source := questions{func(i uint64) string { return fmt.Sprint(i * 7) }}
	if tr.unscored {
		source.reference = func(uint64) string { return "" }
	}
	correct := make([]bool, tr.prompts)
	for i := range correct {
		correct[i] = rng.Float64() < tr.accuracy
	}
	text := func(i int) string {
		result := i * 7
		if !correct[i] {
			result++
		}
		words := strings.Repeat(fmt.Sprintf("step %d is good and ", i), 6)
		if rng.Float64() < tr.floor { // other words anywhere
			all := strings.Fields(words)
			all[rng.IntN(len(all))] = "fine"
			words = strings.Join(all, " ")
		}
		return fmt.Sprintf("%sthat is %d\n#### %d", words, result, result)
	}
	pass := func(load bool) *Book {
		b := &Book{Source: source, Whole: true, Text: true}
		for i := range tr.prompts {
			answer := text(i)
			switch draw := rng.Float64(); {
			case !load:
			case draw < tr.fault:
				answer = text(rng.IntN(tr.prompts))
			case draw < tr.fault+tr.digits:
				answer = answer[:len(answer)/2] + " that is 1\n#### 1"
			case draw < tr.fault+tr.digits+tr.half:
				answer = answer[:len(answer)/2]
			}
			b.Add(reply(uint64(i), answer))
		}
		b.Judge()
		return b
	}
	base := &Baseline{First: pass(false), Second: pass(false)}
	return base.Compare(pass(true), 1)
}

// found returns the share of runs with worse answers.
func (tr *trial) found(seed uint64, runs int) float64 {
	rng, n := rand.New(rand.NewPCG(seed, 1)), 0
	for range runs {
		if tr.run(rng).Verdict.Bad() {
			n++
		}
	}
	return float64(n) / float64(runs)
}

// Large faults are found, and answers that change without a fault are not called worse.
func TestFaultsAreFound(t *testing.T) {
	for name, c := range map[string]struct {
		trial
		least, most float64
	}{
		"no fault":                 {trial{prompts: 200, accuracy: 0.9, floor: 0.11}, 0, 0.05},
		"other prompts' answers":   {trial{prompts: 200, accuracy: 0.9, floor: 0.11, fault: 0.1}, 1, 1},
		"wrong digits":             {trial{prompts: 200, accuracy: 0.9, floor: 0.11, digits: 0.1}, 1, 1},
		"other answers, no scorer": {trial{prompts: 200, accuracy: 0.9, floor: 0.02, fault: 0.1, unscored: true}, 0.9, 1},
	} {
		if got := c.found(5, 20); got < c.least || got > c.most {
			t.Errorf("%s: found in %v of the runs, want %v to %v", name, got, c.least, c.most)
		}
	}
}

func TestCompare(t *testing.T) {
	base := &Baseline{First: &Book{Whole: true}, Second: &Book{Whole: true}}
	load := &Book{Whole: true}
	same := "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
	late := strings.Replace(same, "sixteen", "end", 1)
	for i, texts := range [][3]string{
		{same, same, same}, {same, late, same}, {same, same, late}, {same, late, late}, {same, same, "Something else " + same},
	} {
		for k, b := range []*Book{base.First, base.Second, load} {
			b.Add(reply(uint64(i), texts[k]))
		}
	}
	load.Add(reply(9, "not sent alone"))
	for _, b := range []*Book{base.First, base.Second, load} {
		b.Judge()
	}
	p := base.Compare(load, 3)
	if p.Prompts != 5 || p.Changed != 3 || p.Floor != 2 || p.OnlyLoad != 2 || p.OnlyAlone != 1 || p.Early != 1 || p.Long != 2 || p.Levels != 3 {
		t.Errorf("%+v", *p)
	}
	if p.First[0] != 1 || p.First[3] != 2 { // at word 0, and at word 15
		t.Errorf("first differences %v at %v", p.First, p.FirstEdges)
	}
	if len(p.Examples) != 2 || p.Examples[0].Session != 2 || !strings.HasSuffix(p.Examples[0].Load, "end") {
		t.Errorf("examples %+v", p.Examples)
	}
	if !base.Has(4) || base.Has(9) {
		t.Error("Has is wrong about the sessions sent alone")
	}
}

// Equal answers depend on the number of prompts, which is larger under load, so they are no sign of a fault. Equal prompts
// count once, and so do answers until a conversation differs. A score of 0 alone cannot become worse.
func TestComparesOnlyWhatCanBeCompared(t *testing.T) {
	compare := func(source tacho.Source, alone, load func(i uint64) string, prompts, all uint64) *metric.PairedAnswers {
		pass := func(n uint64, text func(i uint64) string) *Book {
			b := &Book{Whole: true, Text: true, Source: source}
			for i := range n {
				b.Add(reply(i, text(i)))
			}
			b.Judge()
			return b
		}
		base := &Baseline{First: pass(prompts, alone), Second: pass(prompts, alone)}
		return base.Compare(pass(all, load), 1)
	}
	canned := func(i uint64) string { return fmt.Sprint(strings.Repeat("the same long answer ", 5), i%50) }
	numbered := questions{func(uint64) string { return "" }}
	if p := compare(numbered, canned, canned, 50, 1000); p.Broken != 0 || p.Prompts != 50 || p.Verdict.Bad() {
		t.Errorf("the same answers to more prompts: %+v", *p)
	}
	one, _ := numbered.Session(0)
	if p := compare(always{one}, canned, canned, 200, 200); p.Prompts != 1 || p.Verdict != metric.CannotTell {
		t.Errorf("one prompt, 200 times: %+v", *p)
	}
	wrong := func(uint64) string { return "#### 1" }
	p := compare(questions{func(uint64) string { return "2" }}, wrong, wrong, 500, 500)
	if p.Verdict != metric.CannotTell || !strings.Contains(p.Words(""), "no answer is right alone") {
		t.Errorf("wrong answers alone: %s", p.Words(""))
	}
	right := func(uint64) string { return "#### 2" }
	sometimes := func(i uint64) string { return fmt.Sprint("#### ", 1+min(i%5, 1)) }
	p = compare(questions{func(uint64) string { return "2" }}, sometimes, right, 500, 500)
	if p.Verdict != metric.AsUnloaded || !strings.HasPrefix(p.Words(""), "not worse, with a gain of 20 points (16.") {
		t.Errorf("better answers under load: %s", p.Words(""))
	}
	base := &Baseline{First: &Book{Whole: true}, Second: &Book{Whole: true}}
	load := &Book{Whole: true}
	for turn, under := range []string{"same", "other", "differs because of the turn before"} {
		for _, b := range []*Book{base.First, base.Second, load} {
			r := reply(1, "same")
			if r.Turn = turn; b == load {
				r.Text = under
			}
			b.Add(r)
		}
	}
	if p := base.Compare(load, 1); p.Prompts != 2 || p.Changed != 1 {
		t.Errorf("a conversation that differs from its second turn on: %+v", *p)
	}
}

// always is a source with one session.
type always struct{ session tacho.Session }

func (a always) Session(uint64) (tacho.Session, error) { return a.session, nil }
