// Package conclusion says what a run came to, as data and in sentences. The
// terminal, the page, the list of runs and the files all have it from here, so
// they cannot disagree.
//
// INVALID levels support no conclusion. A conclusion that rests on DEGRADED levels
// says so. No percentile is claimed of fewer requests than it takes.
package conclusion

import (
	"fmt"
	"slices"

	"tacho/metric"
	"tacho/outcome"
)

// A Conclusion is what a run came to.
type Conclusion struct {
	// Verdict is the worst of the levels that the conclusion rests on; INVALID if no
	// level supports one.
	Verdict metric.Severity `json:"verdict"`
	Goal    string          `json:"goal,omitempty"`     // what Held holds, such as "TTFT p99 < 500 ms"
	Held    *Load           `json:"held,omitempty"`     // the highest load that holds the goal
	Missed  *Load           `json:"missed,omitempty"`   // the next load that was tried; nil if there was none, and for a search
	Breaks  *Break          `json:"breaks,omitempty"`   // what is worst at Missed
	Untried string          `json:"untried,omitempty"`  // the loads next to Held that were not tried
	LeftOut []string        `json:"left_out,omitempty"` // INVALID levels
	// Evidence is what the claim about Held, or about the level that serves most, rests on.
	Evidence *Evidence `json:"evidence,omitempty"`
	// Text is the conclusion in sentences.
	Text []string `json:"text"`
}

// A Load is a level and what it served.
type Load struct {
	Level            int     `json:"level"` // its place in the run
	Name             string  `json:"name"`  // "8 requests at a time"
	Requests         int     `json:"requests"`
	RequestsPerS     float64 `json:"requests_per_s"`
	OutputTokensPerS float64 `json:"output_tokens_per_s,omitempty"`
}

// A Break is the metric that breaks at a load that is too high, and its value there.
type Break struct {
	Metric    string  `json:"metric"`    // "ttft"; "failures" if too many requests fail
	Statistic string  `json:"statistic"` // "p99", "max"; "share" of failures
	Value     float64 `json:"value"`
	Unit      string  `json:"unit,omitempty"`  // "ms"; a share has none
	Limit     float64 `json:"limit,omitempty"` // of the SLO, in the same unit; 0 is none
}

// Evidence is how many requests a claim rests on.
type Evidence struct {
	Requests  int `json:"requests"`
	Effective int `json:"effective_samples,omitempty"` // independent requests that would tell as much; 0 is not known
}

// Of draws the conclusion of a run.
func Of(run *outcome.Run) Conclusion {
	for _, n := range run.Notes {
		if outcome.IsLimit(n) {
			return finished(ofSearch(n.Text, run))
		}
	}
	return OfLevels(run.Levels)
}

// OfLevels draws the conclusion of some levels.
func OfLevels(levels []outcome.Level) Conclusion { return finished(ofLevels(levels)) }

// finished says the verdict first and the levels that were left out last.
func finished(c Conclusion) Conclusion {
	if c.Verdict == metric.Degraded || c.Verdict == metric.Predicted {
		c.Text[0] = string(c.Verdict) + ": " + c.Text[0]
	}
	if len(c.LeftOut) > 0 && c.Verdict != metric.Invalid {
		c.Text = append(c.Text, "INVALID and left out: "+someOf(c.LeftOut)+".")
	}
	for i := range c.Text {
		c.Text[i] = clip(c.Text[i], mostSentence)
	}
	return c
}

func ofLevels(levels []outcome.Level) Conclusion {
	all := climb{levels: levels}
	for i := range levels {
		if t := levels[i].Summary.Throughput; t != nil && levels[i].Summary.Verdict.Severity != metric.Invalid {
			all.places = append(all.places, i)
		}
	}
	c := Conclusion{Verdict: metric.Invalid, LeftOut: leftOut(levels)}
	switch {
	case len(all.places) == 0 && len(c.LeftOut) > 0:
		c.Text = []string{nothing(levels)}
		return c
	case len(all.places) == 0:
		c.Text = []string{"Nothing was measured."}
		return c
	}
	usable := make([]outcome.Level, 0, len(all.places))
	for _, i := range all.places {
		usable = append(usable, levels[i])
	}
	c.Verdict = worst(usable)
	if places, option, load := outcome.Ladder(usable); len(places) > 0 {
		k := climb{levels: usable, places: places, option: option, load: load, origin: all.places, all: levels}
		k.conclude(&c)
		c.Verdict = k.verdict()
		c.Text = append(c.Text, failures(usable)...)
	} else {
		var best *metric.Summary
		if best, c.Text = serves(usable, len(levels)); best.Completed > 0 {
			c.Evidence = evidence(best)
		}
	}
	return c
}

// worst is the worst verdict of some levels. A prediction is one whatever else is
// known of it.
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
			out = append(out, named(&levels[i]))
		}
	}
	return out
}

// nothing says that no level supports a conclusion, and the first reason.
func nothing(levels []outcome.Level) string {
	for i := range levels {
		s := &levels[i].Summary
		if s.Completed == 0 && s.Verdict.Severity == metric.Invalid {
			return "INVALID: " + noSuccess(s)
		}
		for _, r := range s.Verdict.Reasons {
			if r.Severity == metric.Invalid {
				return "INVALID: nothing can be concluded, because " + r.Text + "."
			}
		}
	}
	return "INVALID: nothing can be concluded."
}

// noSuccess is what there is to say if no request succeeded.
func noSuccess(s *metric.Summary) string {
	if s.Failed == 0 {
		return fmt.Sprintf("None of %s requests had finished when the run was stopped.", whole(s.Requests))
	}
	return fmt.Sprintf("None of %s requests succeeded.", whole(s.Requests))
}
