// Package score judges answers: whether they are right (Scorers), whether they show signs of a broken server (Book.Check),
// and whether load made them worse (Compare). It works on answers that were kept during the measurement and runs after
// the measurement.
package score

import (
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/spelling"
)

// An Answer is what a scorer reads of one request.
type Answer struct {
	Text    string // the whole text, with reasoning
	Content string // the text without reasoning and tool calls
	Calls   []tacho.FunctionCall
	Finish  string

	NoReasoning bool // Content was empty, and the text of the reasoning is scored
}

// A Mark is the result of scoring an answer.
type Mark int

// The marks.
const (
	NoAnswer Mark = iota // the answer was cut while the model reasoned, or is empty
	Wrong
	Right
	LeftOut // the question has no usable reference
)

// A Result is a mark with its reason.
type Result struct {
	Mark
	Why      string // class of a wrong answer; may be empty
	Unparsed bool   // the answer has not the requested form, and a less strict rule was used
}

func markOf(right bool) Result {
	if right {
		return Result{Mark: Right}
	}
	return Result{Mark: Wrong}
}

// A Scorer compares an answer with the reference of its request.
type Scorer struct {
	Name, Doc string
	Keyed     bool // needs a reference
	Missing   Mark // mark of a missing answer: NoAnswer, or Wrong if the published rule says so
	of        func(a *Answer, q *tacho.Request) Result
}

// Scorers are all scorers, in the order of help.
var Scorers = []Scorer{
	{Name: "gsm8k-strict", Keyed: true, Doc: "number after the first ####, as lm-eval's strict-match", of: compared(strictNumber, exactMatch)},
	{Name: "gsm8k-flexible", Keyed: true, Doc: "last number, as lm-eval's flexible-extract", of: compared(flexibleNumber, exactMatch)},
	{Name: "gsm8k-numeric", Keyed: true, Doc: "number after ####, else the last number, compared as numbers, as AIPerf", of: numeric},
	{Name: "aime-int", Keyed: true, Doc: "last \\boxed integer, else the last integer", of: aimeInteger},
	{Name: "choice", Keyed: true, Doc: "letter: \"answer is (X)\", else \"Answer: X\", else the last single letter A to J", of: choiceOf("A-J")},
	{Name: "choice-4", Keyed: true, Doc: "the same with the letters A to D", of: choiceOf("A-D")},
	{Name: "exact", Keyed: true, Doc: "the text of the reference, without white space at both ends", of: exactText},
	{Name: "contains", Keyed: true, Doc: "the reference occurs in the answer; case is ignored", of: containsText},
	{Name: "regex", Keyed: true, Doc: "the answer matches the reference, a regular expression of Go", of: matchesRegex},
	{Name: "json", Doc: "one valid JSON value", of: validJSON},
	{Name: "json-schema", Doc: "JSON valid against the reference, a JSON Schema, or against the schema in the request", of: validSchema},
	{Name: "bfcl", Keyed: true, Doc: "tool calls, as the AST check of the Berkeley Function Calling Leaderboard (Python categories)", Missing: Wrong, of: bfcl},
}

// Named returns a scorer.
func Named(name string) (*Scorer, error) {
	var names []string
	for i := range Scorers {
		if Scorers[i].Name == name {
			return &Scorers[i], nil
		}
		names = append(names, Scorers[i].Name)
	}
	return nil, spelling.Unknown("scorer", name, names)
}

// Score marks an answer.
func (s *Scorer) Score(a *Answer, q *tacho.Request) Result {
	a.settle()
	if strings.TrimSpace(a.Content) == "" && len(a.Calls) == 0 {
		if s.Missing == Wrong { // no call is the right answer to some questions
			return s.of(a, q)
		}
		if a.Finish == "length" {
			return Result{Why: "cut by length before the answer"}
		}
		return Result{Mark: Wrong, Why: "empty"}
	}
	return s.of(a, q)
}

// settle finds the part of the text to score: the text after the reasoning, or the reasoning if there is no other text
// and the answer was not cut.
func (a *Answer) settle() {
	if content, thinks := withoutThinking(a.Content); thinks {
		a.Content = content
	}
	if strings.TrimSpace(a.Content) != "" || len(a.Calls) > 0 || a.Finish == "length" {
		return
	}
	text := strings.NewReplacer("<think>", "", "</think>", "").Replace(a.Text)
	if strings.TrimSpace(text) != "" {
		a.Content, a.NoReasoning = text, true
	}
}

// withoutThinking removes reasoning that the server left in the text. If the reasoning has no end, nothing remains.
func withoutThinking(text string) (rest string, thinks bool) {
	before, after, begins := strings.Cut(text, "<think>")
	if !begins {
		if _, after, ends := strings.Cut(text, "</think>"); ends { // the template contains the beginning
			return after, true
		}
		return text, false
	}
	_, after, _ = strings.Cut(after, "</think>")
	return before + after, true
}
