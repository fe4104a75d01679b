package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// A Limit is what a search came to.
type Limit struct {
	SLO      string  `json:"slo"`
	Kind     Kind    `json:"kind"`
	Holds    bool    `json:"holds"`             // at some load it holds
	Load     float64 `json:"load,omitempty"`    // the highest that holds it
	Low      float64 `json:"low,omitempty"`     // the load is between these, with a chance of 95 %
	High     float64 `json:"high,omitempty"`    // 0 where nothing was found to be too much
	Binding  string  `json:"binding,omitempty"` // the goal that is missed first beyond it
	Done     bool    `json:"done"`              // the search was not cut short
	Sentence string  `json:"sentence"`
	Probes   []Tried `json:"probes"`
}

// Tried is a probe as it is kept and shown.
type Tried struct {
	Load     float64   `json:"load"`
	Alone    bool      `json:"one_at_a_time,omitempty"`
	Long     bool      `json:"long,omitempty"`
	Requests int       `json:"requests"`
	Seconds  float64   `json:"seconds"`
	Served   float64   `json:"served_per_s"`
	Values   []float64 `json:"values"` // of the goals: percentile, mean or share
	Verdict  string    `json:"verdict"`
	Why      string    `json:"why,omitempty"`
}

// Limit is what is known so far; done says that nobody cut the search short.
func (s *Search) Limit(done bool) Limit {
	l := Limit{SLO: s.slo(), Kind: s.Kind, Done: done}
	for _, r := range s.Results {
		tried := Tried{
			Load: r.Load, Alone: r.Alone, Long: r.Long, Requests: r.Requests, Seconds: r.Took.Seconds(),
			Served: r.Served, Verdict: r.Verdict.String(), Why: r.Why, Values: []float64{},
		}
		for _, e := range r.Goals {
			tried.Values = append(tried.Values, min(e.Value, 1e12)) // JSON knows no infinity
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

// Curve are the probes by rising load, of each load the longest; those that say
// nothing of a goal are left out.
func (l *Limit) Curve(goal int) (out []Tried) {
	for _, p := range l.Probes {
		if p.Alone || p.Verdict == Void.String() || !(p.Values[goal] < unending) {
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

// fill says where the limit is.
func (s *Search) fill(l *Limit) {
	low, high := s.bracket()
	switch {
	case low == 0 && (high > 0 || !s.aloneHolds()):
		return
	case high == 0:
		l.Holds, l.Load, l.Low = true, low, low
		return
	}
	l.Holds = true
	if s.unoffered(low) != "" || s.Kind != Rate && high-low <= 1 {
		l.Load, l.Low, l.High = low, low, high
		l.Binding = s.breaking(high)
		return
	}
	s.look()
	best, chance := s.limits()
	by := unsure(chance)
	l.Load, l.Low, l.High = s.round(best.load), s.round(best.load/by), s.round(best.load*by)
	if best.goal >= 0 {
		l.Binding = s.Goals[best.goal].String()
	}
}

// methodOff is by how much the method itself may be off, beside chance: probes are
// short, each begins with an empty server, and a real one may resemble no model. On
// engines whose limits are known it is up to 1 % too high or too low on the mean.
const methodOff = 0.03

// unsure is by which factor the limit may be higher or lower: as far as nearly all
// redraws of the probes reach, and what the method may be off.
func unsure(chance []float64) float64 {
	reach := math.Log(chance[len(chance)-1-len(chance)/40]/chance[len(chance)/40]) / 2
	return math.Exp(math.Hypot(reach, methodOff))
}

// breaking is the goal that a load misses most.
func (s *Search) breaking(load float64) string {
	for _, r := range s.Results {
		if r.Load == load && r.pressure() > 1 {
			i := slices.IndexFunc(r.Goals, func(e Evidence) bool { return e.Pressure == r.pressure() })
			return s.Goals[i].String()
		}
	}
	return ""
}

func (s *Search) aloneHolds() bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool { return r.Alone && r.leans() == Holds })
}

func (s *Search) slo() string {
	var all []string
	for _, g := range s.Goals {
		all = append(all, g.String())
	}
	return strings.Join(all, ", ")
}

// units are what the kinds of load count.
var units = map[Kind]string{Rate: "req/s", Concurrency: "requests at once", Users: "users"}

func (s *Search) sentence(l *Limit) string {
	unit := units[s.Kind]
	switch {
	case len(s.Results) == 0:
		return "nothing was measured."
	case s.voids() == len(s.Results):
		return "No probe proves anything: " + s.Results[0].Why + "."
	case !l.Holds:
		return fmt.Sprintf("Does not hold %s at any load that was tried; %s.", l.SLO, s.worst())
	case l.Load == 0:
		return fmt.Sprintf("Holds %s one request at a time; no more is known.", l.SLO)
	case l.High == 0:
		return fmt.Sprintf("Holds %s up to %s %s at least, the highest load that was tried.", l.SLO, number(l.Load), unit)
	}
	out := fmt.Sprintf("Holds %s up to %s %s (%s to %s)", l.SLO, number(l.Load), unit, number(l.Low), number(l.High))
	if why := s.unoffered(l.Load); why != "" {
		return out + "; more could not be offered: " + why + "."
	}
	if l.Binding != "" {
		out += "; beyond it " + l.Binding + " breaks first"
	}
	switch {
	case s.piles() && l.Binding == "":
		out += "; beyond it requests queue"
	case s.piles():
		out += ", and requests queue"
	}
	if s.Kind == Rate && !s.tried(l.Load) {
		out += ". The search was over before that load itself was tried for long"
	}
	return out + "."
}

// piles says whether requests were seen to pile up.
func (s *Search) piles() bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool { return r.Verdict == Overrun })
}

// unoffered is why nothing above a load could be offered, where that is so.
func (s *Search) unoffered(load float64) (why string) {
	for _, r := range s.Results {
		if r.Load > load && r.Verdict.Missed() {
			return ""
		}
		if s.tooMuch(r) {
			why = r.Why
		}
	}
	return why
}

// worst is by how much the lowest load misses the SLO.
func (s *Search) worst() string {
	least := s.Results[0]
	for _, r := range s.Results {
		if r.Verdict != Void && (r.Alone || r.Load < least.Load && !least.Alone) {
			least = r
		}
	}
	at := number(least.Load) + " " + units[s.Kind]
	if least.Alone {
		at = "one request at a time"
	}
	for i, e := range least.Goals {
		if e.Pressure == least.pressure() {
			return fmt.Sprintf("at %s %s is %s", at, s.Goals[i].Words(), s.Goals[i].Show(e.Value))
		}
	}
	return "at " + at + " requests queue"
}

// unending is above all that can be measured.
const unending = 1e11

// Show is a value of the goal in words: "412.3 ms", "0.2 %".
func (g Goal) Show(value float64) string {
	switch {
	case g.counted():
		return number(100*value) + " %"
	case value > unending:
		return "without end"
	}
	return number(value) + " " + string(g.Metric.Unit)
}

// number has as many digits as anybody reads.
func number(v float64) string {
	digits := 0
	for limit := 100.0; v < limit && digits < 3; limit /= 10 {
		digits++
	}
	text := strconv.FormatFloat(v, 'f', digits, 64)
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return text
}

// Unit is what a kind of load counts.
func (k Kind) Unit() string { return units[k] }

// Number is a load or a value as it is shown.
func Number(v float64) string { return number(v) }
