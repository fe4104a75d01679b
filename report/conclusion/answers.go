package conclusion

import (
	"fmt"
	"slices"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// Answers is the verdict on the answers of a run, beside the verdict on its measurement.
type Answers struct {
	Verdict metric.Answer `json:"verdict,omitempty"` // empty if the answers were not compared
	Level   string        `json:"level,omitempty"`   // the level behind the verdict
	Score   *float64      `json:"score,omitempty"`   // of that level, as a share
	Text    []string      `json:"text"`
}

// answersOf concludes on the answers of levels, or returns nil if nothing was judged.
func answersOf(levels []outcome.Level) *Answers {
	at, places := -1, byLoad(levels)
	var bad []int // places with worse answers
	for _, i := range places {
		p := paired(&levels[i])
		switch {
		case p == nil:
		case p.Verdict.Bad():
			bad = append(bad, i)
		case at < 0 || rankOf(p.Verdict) >= rankOf(paired(&levels[at]).Verdict):
			at = i // the highest load with the weakest verdict
		}
	}
	out := &Answers{}
	switch {
	case len(bad) > 0:
		at = bad[0]
		out.Text = append(out.Text, "Answers: "+paired(&levels[at]).Words(atLoad(levels, places, bad))+".")
	case at >= 0:
		out.Text = append(out.Text, "Answers: "+paired(&levels[at]).Words(named(levels, at))+".")
	}
	if at >= 0 {
		out.Verdict, out.Level = paired(&levels[at]).Verdict, NameOf(&levels[at])
	} else if at = slices.IndexFunc(levels, func(l outcome.Level) bool { return scoreOf(&l) != nil }); at >= 0 {
		s := scoreOf(&levels[at])
		text := fmt.Sprintf("Answers: score %s (%s to %s) by %s%s", metric.Percent(*s.Share), metric.Percent(s.Interval.Low),
			metric.Percent(s.Interval.High), s.Scorer, named(levels, at))
		if left := s.NoAnswer + s.LeftOut; left > 0 {
			text += fmt.Sprintf("; %d of %d answers could not be scored", left, left+s.Right+s.Wrong)
		}
		out.Text = append(out.Text, text+".")
	}
	if at >= 0 && scoreOf(&levels[at]) != nil {
		out.Score = scoreOf(&levels[at]).Share
	}
	if i := mostBroken(levels); i >= 0 {
		for _, r := range levels[i].Summary.Verdict.Reasons {
			if r.Code == metric.BrokenAnswers {
				out.Text = append(out.Text, fmt.Sprintf("Answers%s: %s.", named(levels, i), r.Text))
			}
		}
	}
	if out.Text == nil {
		return nil
	}
	return out
}

// rankOf orders the verdicts that are not bad, the weakest last.
func rankOf(v metric.Answer) int {
	return slices.Index([]metric.Answer{metric.AsUnloaded, metric.CannotTell, metric.MoreChanged}, v)
}

func paired(l *outcome.Level) *metric.PairedAnswers {
	if l.Summary.Config.Answers == nil {
		return nil
	}
	return l.Summary.Config.Answers.Paired
}

func scoreOf(l *outcome.Level) *metric.Score {
	if a := l.Summary.Config.Answers; a != nil && a.Score != nil && a.Score.Share != nil {
		return a.Score
	}
	return nil
}

// byLoad returns the indices of levels by rising load, or in their order.
func byLoad(levels []outcome.Level) []int {
	if places, _, _ := outcome.Ladder(levels); len(places) == len(levels) {
		return places
	}
	all := make([]int, len(levels))
	for i := range all {
		all[i] = i
	}
	return all
}

// atLoad names the levels with worse answers.
func atLoad(levels []outcome.Level, places, bad []int) string {
	if len(levels) == 1 {
		return ""
	}
	if len(bad) > 1 && slices.Equal(bad, places[len(places)-len(bad):]) {
		return " from " + inSentence(NameOf(&levels[bad[0]])) + " on"
	}
	return named(levels, bad[0])
}

func named(levels []outcome.Level, i int) string {
	if len(levels) == 1 {
		return ""
	}
	return " at " + inSentence(NameOf(&levels[i]))
}

// mostBroken returns the level with the most broken answers, or -1.
func mostBroken(levels []outcome.Level) int {
	at, most := -1, 0
	for i := range levels {
		if a := levels[i].Summary.Config.Answers; a != nil && a.Flagged > most {
			at, most = i, a.Flagged
		}
	}
	return at
}
