package conclusion

import (
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// findings are the codes of reasons that describe the server. Levels and searches try
// loads that are too high on purpose, so these reasons are results and not doubts.
var findings = []string{"no-success", "failures", metric.QueueGrowth, "unsettled"}

// trust returns a verdict without its findings.
func trust(v *metric.Verdict) metric.Severity {
	if v.Severity != metric.Degraded && v.Severity != metric.Invalid {
		return v.Severity
	}
	out := metric.Valid
	for _, r := range v.Reasons {
		doubt := r.Severity == metric.Degraded && out != metric.Invalid || r.Severity == metric.Invalid
		if doubt && !slices.Contains(findings, r.Code) {
			out = r.Severity
		}
	}
	return out
}

// ofSearch is the conclusion of a search: the sentence of the search, judged by its
// probes.
func ofSearch(sentence string, run *outcome.Run) Conclusion {
	levels := run.Levels
	probes := make([]outcome.Level, len(levels))
	for i := range levels {
		probes[i] = levels[i]
		probes[i].Summary.Verdict.Severity = trust(&levels[i].Summary.Verdict)
	}
	c := Conclusion{LeftOut: leftOut(probes)}
	if len(levels) > 0 && len(c.LeftOut) == len(levels) {
		c.Verdict, c.Text = metric.Invalid, []string{nothing(probes)}
		return c
	}
	c.Verdict = worst(slices.DeleteFunc(probes, func(l outcome.Level) bool { return l.Summary.Verdict.Severity == metric.Invalid }))
	c.Text = []string{strings.TrimPrefix(sentence, metric.PredictedWord)} // the file of a search starts with the word, too
	c.Held = heldProbe(run)
	return c
}

// heldProbe returns the level of the probe that held at the limit, or nil if no probe
// held.
func heldProbe(run *outcome.Run) *Load {
	if run.HeldProbe == nil {
		return nil
	}
	i := slices.IndexFunc(run.Levels, func(l outcome.Level) bool { return l.Index == *run.HeldProbe })
	if i < 0 || run.Levels[i].Summary.Throughput == nil {
		return nil
	}
	return loadServed(i, NameOf(&run.Levels[i]), &run.Levels[i].Summary)
}
