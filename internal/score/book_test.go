package score

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// questions is a source with one question for each session.
type questions struct{ reference func(i uint64) string }

func (s questions) Session(i uint64) (tacho.Session, error) {
	q := tacho.Request{Scorer: "gsm8k-strict", Reference: s.reference(i), Input: tacho.Input{Text: fmt.Sprintf("question %d of many, which is long enough to be recognized if an answer repeats it from its first letter to its last", i)}}
	q.Extra = map[string]any{"tools": []any{map[string]any{"function": map[string]any{"name": "known"}}}}
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: q}}}, nil
}

// reply returns a record of a session.
func reply(session uint64, text string) *tacho.Record {
	return &tacho.Record{Session: session, Text: text, Answer: text, Finish: "stop", Output: 10, Asked: 50, OutputFrom: tacho.FromUsage}
}

func TestChecks(t *testing.T) {
	long := "this answer is long enough that two different prompts do not get it by chance, is it not so"
	prompt, _ := questions{func(uint64) string { return "" }}.Session(19)
	change := func(r *tacho.Record, f func(*tacho.Record)) *tacho.Record { f(r); return r }
	records := []*tacho.Record{
		reply(1, "fine"), reply(2, ""), reply(3, "a\x00b"), reply(4, "a\ufffd"), reply(5, "a\xff"), reply(6, long), reply(7, long),
		reply(8, "well "+strings.Repeat("and so ", 60)), reply(9, strings.Repeat("one two three four five six seven eight. Then ", 12)+"the end"),
		change(reply(10, "x"), func(r *tacho.Record) { r.Finish = "length" }),
		change(reply(11, "x"), func(r *tacho.Record) { r.Output = 51 }),
		change(reply(12, "x"), func(r *tacho.Record) { r.Finish = "" }),
		change(reply(13, "x"), func(r *tacho.Record) { r.Calls = []tacho.FunctionCall{{Name: "known", Arguments: `{"a":`}} }),
		change(reply(14, "x"), func(r *tacho.Record) { r.Calls = []tacho.FunctionCall{{Name: "unknown", Arguments: `{}`}} }),
		change(reply(15, "x"), func(r *tacho.Record) { r.Failure, r.Text = &tacho.Failure{Cause: tacho.Reset}, "a\x00" }),
		change(reply(16, "x"), func(r *tacho.Record) { r.Finish, r.Output = "length", 50 }),
		change(reply(17, "counted by events"), func(r *tacho.Record) { r.Output, r.OutputFrom = 60, tacho.FromEvents }),
		change(reply(18, strings.Repeat("la ", 200)), func(r *tacho.Record) { r.Exact = true }), // loops are normal if the end is ignored
		reply(19, prompt.Turns[0].Request.Input.Text+" Yes."),
		change(reply(21, ""), func(r *tacho.Record) { r.Output, r.Events = 1, make(tacho.Events, 1) }), // the token that ends
		change(reply(22, "x"), func(r *tacho.Record) { // cut, not broken
			r.Finish, r.Output, r.Calls = "length", 50, []tacho.FunctionCall{{Name: "known", Arguments: `{"a":`}}
		}),
		change(reply(20, ""), func(r *tacho.Record) { r.Events = make(tacho.Events, 3) }), // the text was not kept
	}
	b := &Book{Text: true, Source: questions{func(uint64) string { return "" }}}
	for _, r := range records {
		b.Add(r)
	}
	got := b.Judge()
	want := []metric.AnswerFinding{
		{Kind: noFinish, Count: 1, Session: 12},
		{Kind: duplicate, Count: 2, Session: 6},
		{Kind: "empty with finish reason stop", Count: 2, Session: 2},
		{Kind: "with invalid UTF-8 or replacement characters", Count: 2, Session: 4},
		{Kind: "with control characters", Count: 1, Session: 3},
		{Kind: "ended by length before the requested length", Count: 1, Session: 10},
		{Kind: "longer than requested", Count: 1, Session: 11},
		{Kind: "in a loop", Count: 2, Session: 8},
		{Kind: "with tool arguments that are not JSON", Count: 1, Session: 13},
		{Kind: "with a tool that was not offered", Count: 1, Session: 14},
		{Kind: "that repeat the prompt", Count: 1, Session: 19},
	}
	if diff := cmp.Diff(want, got.Findings, cmp.AllowUnexported(metric.AnswerFinding{})); diff != "" {
		t.Error(diff)
	}
	if got.Checked != 20 || got.Unchecked != 1 || got.Flagged != 15 {
		t.Errorf("checked %d, not checked %d, flagged %d", got.Checked, got.Unchecked, got.Flagged)
	}
}

func TestScoreOfALevel(t *testing.T) {
	b := &Book{Source: questions{func(i uint64) string { return fmt.Sprint(i) }}, Whole: true}
	for i := range uint64(10) {
		r := reply(i, fmt.Sprintf("#### %d", i+i/8)) // 8 and 9 are wrong
		r.Labels = tacho.Labels{{Key: "half", Value: fmt.Sprint(i / 5)}}
		b.Add(r)
	}
	cut := reply(10, "")
	cut.Finish = "length"
	b.Add(cut)
	got := b.Judge().Score
	share := 0.8
	want := &metric.Score{
		Scorer: "gsm8k-strict", Right: 8, Wrong: 2, NoAnswer: 1, Share: &share, Interval: got.Interval,
		Why:    []metric.NamedCount{{Name: "cut by length before the answer", Count: 1}},
		Groups: []metric.GroupScore{{Label: "half=0", Right: 5}, {Label: "half=1", Right: 3, Wrong: 2}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if i := got.Interval; i.Low < 0.489 || i.Low > 0.491 || i.High < 0.943 || i.High > 0.944 { // Wilson's interval of 8 in 10
		t.Errorf("interval %+v", *i)
	}
	b = &Book{Source: questions{func(uint64) string { return "" }}}
	b.Add(reply(0, "#### 1"))
	if got := b.Judge().Score; got.LeftOut != 1 || got.Share != nil {
		t.Errorf("without a reference: %+v", got)
	}
}

// A scorer that is not known scores nothing, and is not named beside the others.
func TestUnknownScorer(t *testing.T) {
	known, _ := questions{func(uint64) string { return "1" }}.Session(0)
	b := &Book{Source: mixed{known}}
	b.Add(reply(0, "#### 1"))
	b.Add(reply(1, "#### 1"))
	if got := b.Judge().Score; got.Scorer != "gsm8k-strict" || got.Right != 1 || got.LeftOut != 1 {
		t.Errorf("%+v", got)
	}
}

// mixed is a source whose odd sessions have an unknown scorer.
type mixed struct{ session tacho.Session }

func (m mixed) Session(i uint64) (tacho.Session, error) {
	t := m.session.Turns[0]
	if i%2 == 1 {
		t.Request.Scorer = "unknown"
	}
	return tacho.Session{ID: i, Turns: []tacho.Turn{t}}, nil
}

// A book that is not Whole has a bound, and says what it left out.
func TestBookIsBounded(t *testing.T) {
	b := &Book{}
	text := strings.Repeat("x", 1<<20)
	for i := range uint64(100) {
		b.Add(reply(i, text))
	}
	if got := b.Judge(); got.Checked != 64 || got.Unchecked != 36 {
		t.Errorf("%d checked, %d not", got.Checked, got.Unchecked)
	}
}

// Expressions, schemas and answers from outside do not stop a run.
func TestScorersAreBounded(t *testing.T) {
	q := &tacho.Request{Reference: "(x?y?a?){300}((a+)+)+$"}
	if got := matchesRegex(&Answer{Content: strings.Repeat("aax ", 1<<20)}, q); got.Mark != LeftOut {
		t.Errorf("a slow expression is %+v", got)
	}
	if got := matchesRegex(&Answer{Content: strings.Repeat("a", 1<<20)}, &tacho.Request{Reference: "a$"}); got.Mark != Right {
		t.Errorf("a fast expression is %+v", got)
	}
	if !tooDeep([]byte(`["` + strings.Repeat("]", 1000) + `",` + strings.Repeat("[", 500))) {
		t.Error("brackets in a text hide levels")
	}
	q.Reference = `{"type": "object"}`
	if got := validSchema(&Answer{Content: "{}"}, q); got.Mark != Right {
		t.Errorf("a fast schema is %+v", got)
	}
	schemas.drop(q.Reference) // as after a timeout
	t.Cleanup(func() {        // the cache is shared by all tests
		schemas.mu.Lock()
		defer schemas.mu.Unlock()
		delete(schemas.all, q.Reference)
	})
	if got := validSchema(&Answer{Content: "{}"}, q); got.Mark != LeftOut || got.Why != "the validation takes too long" {
		t.Errorf("a schema that took too long is %+v", got)
	}
}
