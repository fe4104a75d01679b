// Package conclusion draws the conclusion of a run, as data and in sentences. The
// terminal, the page, the list of runs and the files all take it from here, so they
// cannot disagree.
//
// INVALID levels support no conclusion. A conclusion from DEGRADED levels is marked
// DEGRADED. A percentile is claimed only if there are enough requests for it.
package conclusion

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A Conclusion is the result of a run in short.
type Conclusion struct {
	// Verdict is the worst verdict of the levels behind the conclusion. It is INVALID if
	// no level supports a conclusion.
	Verdict metric.Severity `json:"verdict"`
	// Simulated reports whether a simulated engine served the run. Text says so, too.
	Simulated bool `json:"simulated,omitempty"`

	Goal    string   `json:"goal,omitempty"`     // SLO of the run, such as "TTFT < 500 ms for 99 % of the requests"
	Held    *Load    `json:"held,omitempty"`     // the highest load within the SLO; without an SLO the highest load with which the server keeps up
	Missed  *Load    `json:"missed,omitempty"`   // the next load tried; nil if there was none, and for a search
	Breaks  *Break   `json:"breaks,omitempty"`   // worst metric at Missed
	Untried string   `json:"untried,omitempty"`  // loads next to Held that were not tried
	LeftOut []string `json:"left_out,omitempty"` // INVALID levels
	// Evidence counts the requests behind the claim about Held, or about the level with
	// the highest throughput.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Answers is the verdict on the answers; nil if there was nothing to say.
	Answers *Answers `json:"answers,omitempty"`
	// Text is the conclusion in sentences.
	Text []string `json:"text"`
	// Headline is the conclusion in one sentence and three numbers.
	Headline Headline `json:"headline"`

	best *Load // the level of the sentence, if the levels are no series of loads
	kept bool  // the server keeps up with the rate of best
}

// A Load is a level and its throughput.
type Load struct {
	Level            int     `json:"level"` // index in the run
	Name             string  `json:"name"`  // "concurrency 8"
	Requests         int     `json:"requests"`
	RequestsPerS     float64 `json:"requests_per_s"`
	OutputTokensPerS float64 `json:"output_tokens_per_s,omitempty"`
}

// A Break is the metric that breaks if the load is too high, and its value there.
type Break struct {
	Metric    string  `json:"metric"`    // "ttft"; "failures" if too many requests fail
	Statistic string  `json:"statistic"` // "p99", "max"; "share" of failures
	Value     float64 `json:"value"`
	Unit      string  `json:"unit,omitempty"`  // "ms"; a share has none
	Limit     float64 `json:"limit,omitempty"` // limit of the SLO in the same unit; 0 if there is none
}

// Evidence counts the requests behind a claim.
type Evidence struct {
	Requests  int `json:"requests"`
	Effective int `json:"effective_samples,omitempty"` // effective sample size; 0 if unknown
}

// Of draws the conclusion of a run.
func Of(run *outcome.Run) Conclusion {
	for _, n := range run.Notes {
		if outcome.IsLimit(n) {
			return finished(ofSearch(n.Text, run), run.Levels, run.Simulated())
		}
	}
	return finished(ofLevels(run.Levels), run.Levels, run.Simulated())
}

// OfLevels draws the conclusion of levels.
func OfLevels(levels []outcome.Level) Conclusion { return finished(ofLevels(levels), levels, false) }

// finished puts the verdict and the word SIMULATED before the first sentence, appends the excluded levels and
// fills in the headline.
func finished(c Conclusion, levels []outcome.Level, simulated bool) Conclusion {
	c.Simulated = simulated
	var words []string
	text, invalid := strings.CutPrefix(c.Text[0], string(metric.Invalid)+": ")
	if invalid || c.Verdict == metric.Degraded || c.Verdict == metric.Predicted {
		words = append(words, string(c.Verdict))
	}
	if simulated {
		words = append(words, outcome.SimulatedWord)
	}
	if len(words) > 0 {
		c.Text[0] = strings.Join(words, ", ") + ": " + text
	}
	if len(c.LeftOut) > 0 && c.Verdict != metric.Invalid {
		c.Text = append(c.Text, "Excluded because INVALID: "+someOf(c.LeftOut)+".")
	}
	if c.Answers = answersOf(levels); c.Answers != nil {
		c.Text = append(c.Text, c.Answers.Text...)
	}
	for i := range c.Text {
		c.Text[i] = clip(c.Text[i], mostSentence)
	}
	c.Headline = headline(&c, levels)
	return c
}

func ofLevels(levels []outcome.Level) Conclusion {
	var origin []int
	for i := range levels {
		if t := levels[i].Summary.Throughput; t != nil && levels[i].Summary.Verdict.Severity != metric.Invalid {
			origin = append(origin, i)
		}
	}
	c := Conclusion{Verdict: metric.Invalid, LeftOut: leftOut(levels)}
	switch {
	case len(origin) == 0 && len(c.LeftOut) > 0:
		c.Text = []string{nothing(levels)}
		return c
	case len(origin) == 0:
		c.Text = []string{"Nothing was measured."}
		return c
	}
	usable := make([]outcome.Level, 0, len(origin))
	for _, i := range origin {
		usable = append(usable, levels[i])
	}
	c.Verdict = worst(usable)
	var first []outcome.Level // of the first sentence
	if k := climbOf(usable, origin); k != nil {
		k.all = levels
		k.conclude(&c)
		c.Verdict = k.verdict()
		first = k.levels[k.places[max(k.kept()-1, 0)]:][:1]
	} else {
		best := mostServed(usable)
		first = usable[best : best+1]
		c.Text = append(serves(usable, best, len(levels)), standing(&usable[best].Summary)...)
		if l := &usable[best]; l.Summary.Completed > 0 {
			c.Evidence = evidence(&l.Summary)
			c.best = loadServed(origin[best], NameOf(l), &l.Summary)
			if c.kept = keepsUp(usable, best); c.kept {
				c.best.Name = configured(&l.Summary)
			}
		}
	}
	c.Text = withFailures(c.Text, usable, first)
	c.Text = append(c.Text, slowStart(&first[0], len(levels))...)
	return c
}

// worst returns the worst verdict of levels. PREDICTED outranks all others, because a
// prediction stays a prediction with any other flaw.
func worst(levels []outcome.Level) metric.Severity {
	order := []metric.Severity{metric.Unjudged, metric.Valid, metric.Degraded, metric.Invalid, metric.Predicted}
	out := order[0]
	for i := range levels {
		if v := levels[i].Summary.Verdict.Severity; slices.Index(order, v) > slices.Index(order, out) {
			out = v
		}
	}
	return out
}

// leftOut names the INVALID levels.
func leftOut(levels []outcome.Level) (out []string) {
	for i := range levels {
		if levels[i].Summary.Verdict.Severity == metric.Invalid {
			out = append(out, NameOf(&levels[i]))
		}
	}
	return out
}

// nothing is the conclusion if no level supports one, with the first reason.
func nothing(levels []outcome.Level) string {
	for i := range levels {
		s := &levels[i].Summary
		if s.Completed == 0 && s.Verdict.Severity == metric.Invalid {
			return "INVALID: " + noSuccess(&levels[i])
		}
		for _, r := range s.Verdict.Reasons {
			if r.Severity == metric.Invalid && r.Code == failureMetric {
				return "INVALID: " + failed(levels[i:i+1])
			}
			if r.Severity == metric.Invalid {
				return "INVALID: nothing can be concluded, because " + r.Text + "."
			}
		}
	}
	return "INVALID: nothing can be concluded."
}

// noSuccess is the sentence for a level without a successful request.
func noSuccess(l *outcome.Level) string {
	s := &l.Summary
	if s.Failed == 0 {
		return fmt.Sprintf("None of %s requests had finished when the run was stopped.", metric.Integer(s.Requests))
	}
	return fmt.Sprintf("None of %s requests succeeded%s.", metric.Integer(s.Requests), strings.Replace(cause([]outcome.Level{*l}), " with", " failed with", 1))
}
