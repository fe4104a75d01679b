package metric

import (
	"fmt"
	"math"
	"strings"
)

// Answers is the judgement on the answers of a level, made after the measurement. Package internal/score fills it in.
type Answers struct {
	Checked   int             `json:"checked"`             // successful requests whose text was checked
	Unchecked int             `json:"unchecked,omitempty"` // successful requests without a kept text
	Flagged   int             `json:"flagged"`             // of Checked: requests with a finding
	Findings  []AnswerFinding `json:"findings,omitempty"`
	Score     *Score          `json:"score,omitempty"`  // nil without a scorer
	Paired    *PairedAnswers  `json:"paired,omitempty"` // nil without --check-answers
}

// An AnswerFinding counts answers that look broken.
type AnswerFinding struct {
	Kind    string `json:"kind"`
	Count   int    `json:"count"`
	Session uint64 `json:"session"` // of the first
}

// A Score counts right answers.
type Score struct {
	Scorer   string       `json:"scorer"`
	Right    int          `json:"right"`
	Wrong    int          `json:"wrong"`
	NoAnswer int          `json:"no_answer,omitempty"` // cut while the model reasoned, or empty
	LeftOut  int          `json:"left_out,omitempty"`  // without a usable reference
	Unparsed int          `json:"unparsed,omitempty"`  // without the requested form, and scored by a less strict rule
	Thought  int          `json:"thought,omitempty"`   // without text besides the reasoning, which was scored
	Share    *float64     `json:"share"`               // right / (right + wrong)
	Interval *Limits      `json:"interval,omitempty"`  // of Share, by Wilson
	Why      []NamedCount `json:"why,omitempty"`       // classes of wrong and left out answers
	Groups   []GroupScore `json:"groups,omitempty"`    // by label, if there are several
}

// Limits are the ends of a 95 % confidence interval.
type Limits struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// A NamedCount is a number with its name.
type NamedCount struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// A GroupScore is the score of the requests with one label.
type GroupScore struct {
	Label string `json:"label"`
	Right int    `json:"right"`
	Wrong int    `json:"wrong"`
}

// A PairedAnswers compares answers under load with answers to the same prompts sent alone.
type PairedAnswers struct {
	Prompts int          `json:"prompts"` // different prompts, answered alone, alone again and under load
	Levels  int          `json:"levels"`  // levels compared in this run; p-values are adjusted for them
	Score   *PairedScore `json:"score,omitempty"`

	Changed    int     `json:"changed"`     // answers under load that differ from the first alone
	Floor      int     `json:"floor"`       // second answers alone that differ from the first
	OnlyLoad   int     `json:"only_load"`   // differ under load, but not alone
	OnlyAlone  int     `json:"only_alone"`  // differ alone, but not under load
	ChangedP   float64 `json:"changed_p"`   // one-sided, McNemar
	Broken     int     `json:"broken"`      // answers with a finding of the checks under load, and none alone
	Early      int     `json:"early"`       // of Long: differ in the first three words
	Long       int     `json:"long"`        // of OnlyLoad: answers long enough to tell
	EarlyP     float64 `json:"early_p"`     // one-sided, against differences spread over the answers
	First      []int   `json:"first"`       // differences under load, by the position of the first: FirstEdges
	FirstEdges []int   `json:"first_edges"` // lower ends of the ranges of First, in words
	Detectable float64 `json:"detectable"`  // loss found with 80 % probability, as a share
	Verdict    Answer  `json:"verdict"`     // of this level
	Examples   []Pair  `json:"examples,omitempty"`
}

// A PairedScore counts pairs of scores.
type PairedScore struct {
	Both    int     `json:"both"`    // right alone and under load
	Lost    int     `json:"lost"`    // right alone only
	Gained  int     `json:"gained"`  // right under load only
	Neither int     `json:"neither"` // wrong twice
	Loss    float64 `json:"loss"`    // share lost - share gained
	Range   Limits  `json:"range"`   // of Loss, 95 %, Newcombe's method 10
	P       float64 `json:"p"`       // one-sided, McNemar
	AloneP  float64 `json:"alone_p"` // two-sided, between both passes alone
}

// A Pair is a prompt whose answers differ.
type Pair struct {
	Session uint64 `json:"session"`
	Alone   string `json:"alone"` // both texts from shortly before the first difference
	Load    string `json:"load"`
	At      int    `json:"at"` // number of the first word that differs
}

// An Answer is the verdict on the answers of a level.
type Answer string

// The verdicts on answers.
const (
	AsUnloaded   Answer = "as unloaded"
	WorseAnswer  Answer = "worse"
	BrokenAnswer Answer = "broken"                        // findings of the checks under load only
	MixedAnswer  Answer = "different from the start"      // a sign of mixed streams or lost blocks
	MoreChanged  Answer = "more often changed than alone" // more than alone; only a score tells whether they are worse
	CannotTell   Answer = "cannot be told"
)

// Bad reports whether the answers became worse.
func (a Answer) Bad() bool { return a == WorseAnswer || a == BrokenAnswer || a == MixedAnswer }

// Words returns the verdict on a level as the rest of a sentence. where names the level, as in " at concurrency 64"; it
// may be empty.
func (p *PairedAnswers) Words(where string) string {
	if p.Prompts == 0 {
		return "cannot be told" + where + ", because no prompt was answered both alone and under load"
	}
	share := func(n int) string { return Percent(float64(n) / float64(p.Prompts)) }
	return fmt.Sprintf("%s; %s of them differ under load, %s differ anyway", p.short(where), share(p.Changed), share(p.Floor))
}

// short returns the verdict without the shares of changed answers.
func (p *PairedAnswers) short(where string) string {
	text := string(p.Verdict)
	switch s := p.Score; {
	case p.Verdict == WorseAnswer:
		text += " by " + s.words()
	case p.Verdict == MixedAnswer:
		text += fmt.Sprintf(" in %d of %d long answers that differ only under load, a sign of mixed streams", p.Early, p.Long)
	case p.Verdict == BrokenAnswer:
		text += fmt.Sprintf(" in %d of %d prompts that were answered well alone", p.Broken, p.Prompts)
	case p.Verdict == AsUnloaded && s != nil:
		text += ", with a loss of " + s.words()
		if s.Range.High < 0 {
			gain := PairedScore{Loss: -s.Loss, Range: Limits{Low: -s.Range.High, High: -s.Range.Low}}
			text = "not worse, with a gain of " + gain.words()
		}
	case p.Verdict == CannotTell && s != nil && s.RightAlone() == 0:
		text += ", because no answer is right alone"
	case p.Verdict == CannotTell && s != nil:
		text += fmt.Sprintf(", because %d prompts leave a loss of %s possible", p.Prompts, s.words())
	}
	return text + where
}

// RightAlone returns the number of prompts answered rightly alone.
func (s *PairedScore) RightAlone() int { return s.Both + s.Lost }

// words returns the loss with its interval.
func (s *PairedScore) words() string {
	return fmt.Sprintf("%s (%s to %s)", Points(s.Loss), number(100*s.Range.Low), number(100*s.Range.High))
}

// Points formats a share as percentage points.
func Points(share float64) string {
	text := number(100 * share)
	if text == "1" {
		return "1 point"
	}
	return text + " points"
}

// number formats a number of percentage points.
func number(v float64) string {
	if v = math.Round(10*v) / 10; v == 0 {
		v = 0 // without a sign
	}
	return Setting(v)
}

// answerRules name findings about answers. They do not change the verdict on the measurement.
var answerRules = []Rule{
	{
		Code: BrokenAnswers, Unit: "answers", Note: 0, Degraded: never, Invalid: never, atEnd: true,
		Action: "read these answers with --save-detailed",
		Doc:    "answers with a sign of a broken server, such as control characters or loops, or finish reasons that contradict the length. The measurement itself stays usable",
		value: func(s *Summary) (float64, bool) {
			if s.Config.Answers == nil {
				return 0, false
			}
			return float64(s.Config.Answers.Flagged), true
		},
		text: func(s *Summary, _ float64) string {
			a := s.Config.Answers
			var parts []string
			for i, f := range a.Findings {
				if i == mostFindings {
					parts = append(parts, fmt.Sprintf("and %d more kinds", len(a.Findings)-i))
					break
				}
				parts = append(parts, fmt.Sprintf("%d %s", f.Count, f.Kind))
			}
			return fmt.Sprintf("%d of %d answers look broken (%s)", a.Flagged, a.Checked, strings.Join(parts, ", "))
		},
	},
	{
		Code: "answers-worse", Unit: "levels", Note: 0, Degraded: never, Invalid: never, atEnd: true,
		Action: "read the examples in the JSON report",
		Doc:    "1 if load made the answers worse or mixed them up, compared with the same prompts sent alone (`--check-answers`)",
		value: func(s *Summary) (float64, bool) {
			a := s.Config.Answers
			return oneIf(a != nil && a.Paired != nil && a.Paired.Verdict.Bad()), true
		},
		text: func(s *Summary, _ float64) string { return "answers are " + s.Config.Answers.Paired.short("") },
	},
}

// BrokenAnswers is the code of the reason about answers that look broken.
const BrokenAnswers = "answers-broken"

// mostFindings is the number of kinds of findings in a reason.
const mostFindings = 2

// answerQuantities are the numbers of a level about its answers.
var answerQuantities = []Quantity{
	{Name: "score", Title: "Score", Unit: percentUnit, Better: 1, of: ofAnswers(func(a *Answers) *float64 {
		if a.Score == nil || a.Score.Share == nil {
			return nil
		}
		return percentOf(*a.Score.Share)
	})},
	{Name: "broken_answers", Title: "Broken answers", Unit: percentUnit, Better: -1, of: ofAnswers(func(a *Answers) *float64 {
		if a.Checked == 0 {
			return nil
		}
		return percentOf(float64(a.Flagged) / float64(a.Checked))
	})},
	{Name: "score_loss", Title: "Score lost under load", Unit: percentUnit, Better: -1, of: ofPairs(func(p *PairedAnswers) *float64 {
		if p.Score == nil {
			return nil
		}
		return percentOf(p.Score.Loss)
	})},
	{Name: "worse_answers", Title: "Worse answers", Better: -1, of: ofPairs(func(p *PairedAnswers) *float64 {
		v := oneIf(p.Verdict.Bad())
		return &v
	})},
}

func percentOf(share float64) *float64 {
	v := 100 * share
	return &v
}

func ofAnswers(of func(*Answers) *float64) func(*Summary) *float64 {
	return func(s *Summary) *float64 {
		if s.Config.Answers == nil {
			return nil
		}
		return of(s.Config.Answers)
	}
}

func ofPairs(of func(*PairedAnswers) *float64) func(*Summary) *float64 {
	return ofAnswers(func(a *Answers) *float64 {
		if a.Paired == nil || a.Paired.Prompts == 0 {
			return nil
		}
		return of(a.Paired)
	})
}
