package conclusion

import (
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// A Headline is the conclusion in one sentence and three numbers. Load is nil if no
// level supports a conclusion, or if no load keeps the goal.
type Headline struct {
	Sentence string `json:"sentence"`
	// Load is the recommended level: the highest load within the goal. If the levels are no
	// series of loads, it is the level with the highest throughput, and Held is false.
	Load *Load `json:"load,omitempty"`
	Held bool  `json:"held,omitempty"` // Load is the highest load within the SLO, or a load with which the server keeps up
	// TookS is the duration of Load in seconds, if it has too few requests for a throughput.
	TookS float64 `json:"took_s,omitempty"`
	Tail  *Tail   `json:"tail,omitempty"` // TTFT at Load, or E2EL if there are no tokens
}

// A Tail is the tail of a latency at one level.
type Tail struct {
	Metric    string  `json:"metric"`    // "ttft" or "e2el"
	Statistic string  `json:"statistic"` // "p99", or "max" if there are too few requests for a p99
	Millis    float64 `json:"ms"`
}

// A Number is one number of a headline, formatted for people.
type Number struct {
	Label string `json:"label"` // "TTFT p99"
	Value string `json:"value"`
	Unit  string `json:"unit,omitempty"`
}

// headline returns the headline of a conclusion about levels.
func headline(c *Conclusion, levels []outcome.Level) Headline {
	h := Headline{Sentence: c.Text[0], Load: c.Held, Held: c.Held != nil || c.kept}
	if h.Load == nil {
		h.Load = c.best
	}
	if c.Verdict == metric.Invalid || h.Load == nil {
		h.Load, h.Held = nil, false
		return h
	}
	s := &levels[h.Load.Level].Summary
	if !levels[h.Load.Level].HasRate() {
		h.TookS = s.DurationS
	}
	if b := latencyBreak(s); b != nil {
		h.Tail = &Tail{b.Metric, b.Statistic, b.Value}
	}
	return h
}

// Numbers returns the load, the output tokens per second and the tail latency.
func (h *Headline) Numbers() (out []Number) {
	if h.Load == nil {
		return nil
	}
	switch {
	case h.Held:
		out = append(out, heldNumber(h.Load.Name))
	case h.TookS > 0:
		value, unit, _ := strings.Cut(metric.Duration(1000*h.TookS), " ")
		out = append(out, Number{plural(h.Load.Requests, "request"), value, unit})
	default:
		out = append(out, Number{"Served", metric.Brief(h.Load.RequestsPerS), "requests/s"})
	}
	if h.Load.OutputTokensPerS > 0 && h.TookS == 0 {
		out = append(out, Number{"Output", metric.Brief(h.Load.OutputTokensPerS), "tokens/s"})
	}
	if h.Tail != nil {
		value, unit, _ := strings.Cut(metric.Duration(h.Tail.Millis), " ")
		out = append(out, Number{strings.ToUpper(h.Tail.Metric) + " " + h.Tail.Statistic, value, unit})
	}
	return out
}

// heldNumber splits the name of a load into its value and unit.
func heldNumber(name string) Number {
	for option, form := range loadWords {
		before, after, _ := strings.Cut(form, "%s")
		value, found := strings.CutPrefix(name, before)
		if value, ends := strings.CutSuffix(value, after); found && ends && !strings.Contains(value, " ") {
			return Number{"Load held", value, loadUnits[option]}
		}
	}
	return Number{Label: "Load held", Value: name}
}

// loadUnits maps each load option to the unit of its value.
var loadUnits = map[string]string{"request-rate": "requests/s", "max-concurrency": "concurrent requests", "num-prompts": "requests in a burst"}
