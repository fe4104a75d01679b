package search

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/metric"
)

// A Limit is the answer of a search.
type Limit struct {
	SLO      string  `json:"slo"`
	Kind     Kind    `json:"kind"`
	Holds    bool    `json:"holds"`             // a load keeps the SLO
	Load     float64 `json:"load,omitempty"`    // highest load that kept the SLO in a probe of its own
	Missed   float64 `json:"missed,omitempty"`  // lowest load above Load that missed the SLO
	Low      float64 `json:"low,omitempty"`     // lower end of the 95 % confidence interval; 0 is unknown
	High     float64 `json:"high,omitempty"`    // upper end of the 95 % confidence interval; 0 is unknown
	Decided  bool    `json:"decided"`           // Missed is near Load, or no load holds
	Binding  string  `json:"binding,omitempty"` // the goal missed most at Missed
	Probe    *int    `json:"probe,omitempty"`   // number of the probe of Load
	Done     bool    `json:"done"`              // the search was not cut short
	Sentence string  `json:"sentence"`
	Probes   []Tried `json:"probes"`
}

// Tried is a probe as it is stored and shown.
type Tried struct {
	Load     float64   `json:"load"`
	Alone    bool      `json:"one_at_a_time,omitempty"`
	Requests int       `json:"requests"`
	Seconds  float64   `json:"seconds"`
	Served   float64   `json:"served_per_s"`
	Values   []float64 `json:"values"` // one for each goal: percentile, mean or share
	Verdict  string    `json:"verdict"`
	Why      string    `json:"why,omitempty"`
}

// Limit returns the answer so far. done is false if the search was cut short.
func (s *Search) Limit(done bool) Limit {
	l := Limit{SLO: s.slo(), Kind: s.Kind, Done: done}
	for _, r := range s.Results {
		tried := Tried{
			Load: r.Load, Alone: r.Alone, Requests: r.Requests, Seconds: r.Took.Seconds(),
			Served: r.Served, Verdict: r.Verdict.String(), Why: r.Why, Values: []float64{},
		}
		for _, e := range r.Goals {
			tried.Values = append(tried.Values, min(e.Value, jsonInfinity))
		}
		l.Probes = append(l.Probes, tried)
	}
	s.fill(&l)
	l.Sentence = s.sentence(&l)
	if !done {
		l.Sentence = "Stopped early. So far: " + l.Sentence
	}
	return l
}

// Curve returns the probes with a value of a goal by rising load, and of each load the
// probe with the most requests.
func (l *Limit) Curve(goal int) (out []Tried) {
	for _, p := range l.Probes {
		if p.Alone || p.Verdict == Void.String() || !(p.Values[goal] < infinite) {
			continue
		}
		i, same := slices.BinarySearchFunc(out, p.Load, func(o Tried, load float64) int { return cmp.Compare(o.Load, load) })
		switch {
		case !same:
			out = slices.Insert(out, i, p)
		case p.Requests > out[i].Requests:
			out[i] = p
		}
	}
	return out
}

// foundWithin returns the ratio of the lowest load that misses to the highest that holds
// up to which a limit counts as found.
func (s *Search) foundWithin() float64 { return 1 + foundWithinFactor*s.Within }

// fill sets the fields of the answer.
func (s *Search) fill(l *Limit) {
	ratios := s.missRatios()
	low, high := s.bracket()
	for i, r := range s.Results {
		if r.Load <= low && ratios[r.Load] <= 1 && s.passed(r) && r.Load >= l.Load {
			l.Holds, l.Load, l.Probe = true, r.Load, new(i)
		}
	}
	for _, r := range s.Results {
		if r.usable() && !r.Effort.Scout && (r.Verdict == Overrun || ratios[r.Load] > 1) && r.Load > l.Load && (l.Missed == 0 || r.Load < l.Missed) {
			l.Missed = r.Load
		}
	}
	l.Binding = s.breaking(l.Missed)
	l.Low, l.High = s.interval(low, high)
	l.Low = min(l.Low, l.Load)
	_, missed := s.alone()
	_, changed := s.drift()
	switch {
	case changed:
	case l.Holds:
		l.Decided = s.decided(l)
	case missed, low == 0 && high > 0 && s.noLoadHolds(high):
		l.Decided = true
	}
}

// decided reports whether the load that holds is a limit: a load near it misses, and one
// of the two was measured again later. Or no higher load can be tried.
func (s *Search) decided(l *Limit) bool {
	adjacent := l.Missed <= s.foundWithin()*l.Load || s.Kind != Rate && l.Missed == l.Load+1
	_, stale := s.staleEnd(l.Load, l.Missed)
	return l.Missed > 0 && adjacent && !stale || s.reachedTo(l.Load) || s.whyNotSent(l.Load) != ""
}

// reachedTo reports whether a load is the highest allowed load.
func (s *Search) reachedTo(load float64) bool { return s.To > 0 && load >= s.To }

// breaking returns the goal with the highest miss ratio at a load.
func (s *Search) breaking(load float64) (goal string) {
	most := 0.0 // it may be below 1, because the isotonic regression pools loads
	for _, r := range s.Results {
		for i, e := range r.Goals {
			if ratio := e.missRatio(s.Goals[i]); r.Load == load && r.usable() && ratio > most {
				most, goal = ratio, s.Goals[i].String()
			}
		}
	}
	return goal
}

func (s *Search) slo() string {
	var all []string
	for _, g := range s.Goals {
		all = append(all, g.String())
	}
	return strings.Join(all, ", ")
}

// units are the units of the kinds of load.
var units = map[Kind]string{Rate: "req/s", Concurrency: "requests in flight", Users: "users"}

// sentence returns the answer in words.
func (s *Search) sentence(l *Limit) string {
	unit := units[s.Kind]
	switch {
	case len(s.Results) == 0:
		return "nothing was measured."
	case s.voids() == len(s.Results):
		return "No probe proves anything: " + s.Results[0].Why + "."
	case l.Decided && !l.Holds:
		return fmt.Sprintf("Does not hold %s at any load; %s.", l.SLO, s.lowest())
	case !l.Decided:
		return s.undecided(l)
	case l.Missed == 0 && s.whyNotSent(l.Load) == "":
		return fmt.Sprintf("Holds %s up to %s %s at least, the highest load that was tried.", l.SLO, metric.Setting(l.Load), unit)
	}
	out := fmt.Sprintf("Holds %s up to %s %s%s", l.SLO, metric.Setting(l.Load), unit, l.bounds())
	if why := s.whyNotSent(l.Load); why != "" {
		return out + "; more could not be offered: " + why + "."
	}
	if l.Binding != "" {
		out += fmt.Sprintf("; at %s %s breaks", metric.Setting(l.Missed), l.Binding)
	}
	switch {
	case s.overran(l) && l.Binding == "":
		out += fmt.Sprintf("; at %s requests queue", metric.Setting(l.Missed))
	case s.overran(l):
		out += ", and requests queue"
	}
	return out + "."
}

// bounds returns the interval in words.
func (l *Limit) bounds() string {
	switch {
	case l.Low > 0 && l.High > 0:
		return fmt.Sprintf(" (%s to %s)", metric.Brief(l.Low), metric.Brief(l.High))
	case l.High > 0:
		return fmt.Sprintf(" (at most %s)", metric.Brief(l.High))
	case l.Low > 0:
		return fmt.Sprintf(" (at least %s)", metric.Brief(l.Low))
	}
	return ""
}

// undecided returns the sentence for a search without an answer.
func (s *Search) undecided(l *Limit) string {
	unit := units[s.Kind]
	if c, changed := s.drift(); changed {
		return fmt.Sprintf("Undecided: the server became %s during the search: compare probe %d at %s %s with probe %d at %s.",
			c.how, c.before.Number+1, metric.Setting(c.before.Load), unit, c.after.Number+1, metric.Setting(c.after.Load))
	}
	low, high := s.bracket()
	why := s.whyNotSent(low)
	switch {
	case why != "" && low > 0:
		return fmt.Sprintf("Undecided: more than %s %s could not be offered: %s.", metric.Setting(low), unit, why)
	case l.Holds && l.Missed > 0:
		return fmt.Sprintf("Undecided: the limit of %s is between %s and %s %s.", l.SLO, metric.Setting(l.Load), metric.Setting(l.Missed), unit)
	case l.Holds:
		return fmt.Sprintf("Undecided: %s holds at %s %s, and no higher load was measured for long enough.", l.SLO, metric.Setting(l.Load), unit)
	case low > 0 && high > 0:
		return fmt.Sprintf("Undecided: %s seems to break between %s and %s %s, but no load was measured for long enough.", l.SLO, metric.Setting(low), metric.Setting(high), unit)
	case high > 0:
		return fmt.Sprintf("Undecided: %s breaks at %s %s; no load was seen to hold.", l.SLO, metric.Setting(high), unit)
	}
	return fmt.Sprintf("Undecided: no load was measured for long enough to judge %s.", l.SLO)
}

// overran reports whether the missed load overran the server.
func (s *Search) overran(l *Limit) bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool { return r.Load == l.Missed && r.Verdict == Overrun })
}

// whyNotSent returns the reason why the client could send no load above another; empty if
// it could, or if a higher load missed.
func (s *Search) whyNotSent(load float64) (why string) {
	for _, r := range s.Results {
		if r.Load > load && r.Verdict.Missed() {
			return ""
		}
		if s.cannotSend(r) {
			why = r.Why
		}
	}
	return why
}

// lowest returns the value of the worst goal at the lowest missed load.
func (s *Search) lowest() string {
	least, have := Result{}, false
	for _, r := range s.Results {
		missed := r.Verdict != Void && (r.Verdict.Missed() || s.worstRatio(r) > 1)
		if missed && (!have || r.Alone || r.Load < least.Load && !least.Alone) {
			least, have = r, true
		}
	}
	at := metric.Setting(least.Load) + " " + units[s.Kind]
	if least.Alone {
		at = "one request at a time"
	}
	for i, e := range least.Goals {
		if ratio := e.missRatio(s.Goals[i]); ratio > 1 && ratio == s.worstRatio(least) {
			return fmt.Sprintf("at %s %s is %s", at, s.Goals[i].Words(), s.Goals[i].Show(e.Value))
		}
	}
	return "at " + at + " requests queue"
}

const (
	// jsonInfinity represents infinity in JSON, which cannot encode it.
	jsonInfinity = 1e12
	// infinite is the value from which on a value is shown as infinite.
	infinite = 1e11
)

// Show formats a value of the goal: "412 ms", "2.44 s", "0.2 %".
func (g Goal) Show(value float64) string {
	switch {
	case g.reportsShare():
		return metric.Brief(100*value) + " %"
	case value > infinite:
		return "without end"
	case g.Metric.Unit == metric.Millis:
		return metric.Duration(value)
	}
	return metric.Brief(value) + " " + string(g.Metric.Unit)
}

// Unit returns the unit of a kind of load.
func (k Kind) Unit() string { return units[k] }
