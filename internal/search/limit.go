package search

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/metric"
)

// A Limit is the answer of a search.
type Limit struct {
	SLO      string  `json:"slo"`
	Kind     Kind    `json:"kind"`
	Holds    bool    `json:"holds"`             // a load keeps the SLO
	Load     float64 `json:"load,omitempty"`    // highest load that is proved to keep the SLO
	Missed   float64 `json:"missed,omitempty"`  // lowest load above Load that is proved to miss the SLO
	Low      float64 `json:"low,omitempty"`     // lower end of the 95 % confidence interval; 0 if the probes do not prove both ends
	High     float64 `json:"high,omitempty"`    // upper end; 0 if Low is
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

// fill sets the fields of the answer.
func (s *Search) fill(l *Limit) {
	low, high := s.bracket()
	l.Load = s.holdsBelow(low, decideAlpha)
	l.Missed = s.missesAbove(high, decideAlpha)
	for i, r := range s.Results {
		if l.Load > 0 && r.Load == l.Load && r.usable() && (l.Probe == nil || r.steady > s.Results[*l.Probe].steady) {
			l.Holds, l.Probe = true, new(i)
		}
	}
	l.Binding = s.breaking(l.Missed)
	_, missed := s.alone()
	_, changed := s.drift()
	switch {
	case changed:
	case l.Holds:
		adjacent := l.Missed <= (1+foundWithinFactor*s.Within)*l.Load || s.adjacent(l.Load, l.Missed)
		l.Decided = l.Missed > 0 && adjacent || s.reachedTo(l.Load) || l.Load >= low && s.whyNotSent(l.Load) != ""
	case missed, s.noLoadHolds():
		l.Decided = true
	}
	if l.Decided && l.Holds {
		l.Low, l.High = s.interval(low, high)
	}
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
	upTo := "up to"
	if !s.heldBelow(l.Load) {
		upTo = "at"
	}
	out := fmt.Sprintf("Holds %s %s %s %s%s", l.SLO, upTo, metric.Setting(l.Load), unit, l.bounds())
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

// heldBelow reports whether lower loads held too, and none missed.
func (s *Search) heldBelow(load float64) (held bool) {
	for _, r := range s.Results {
		if r.Verdict == Void || !r.Alone && r.Load >= load {
			continue
		}
		if r.Verdict == Overrun && !s.overloaded(r) {
			continue
		}
		if r.Verdict.Missed() {
			return false
		}
		held = true
	}
	return held
}

// bounds returns the interval in words. An interval has two ends.
func (l *Limit) bounds() string {
	if l.Low == 0 || l.High == 0 {
		return ""
	}
	return fmt.Sprintf(" (%s to %s)", metric.Brief(l.Low), metric.Brief(l.High))
}

// undecided returns the sentences for a search without an answer.
func (s *Search) undecided(l *Limit) string {
	unit := units[s.Kind]
	if c, changed := s.drift(); changed {
		return fmt.Sprintf("Undecided: the server became %s during the search: compare probe %d at %s %s with probe %d at %s.",
			c.how, c.before.Number+1, metric.Setting(c.before.Load), unit, c.after.Number+1, metric.Setting(c.after.Load))
	}
	low, high := s.bracket()
	low, high = cmp.Or(l.Load, low), cmp.Or(l.Missed, high)
	if why := s.whyNotSent(low); why != "" && low > 0 {
		return fmt.Sprintf("Undecided: more than %s %s could not be offered: %s.", metric.Setting(low), unit, why)
	}
	var out string
	switch {
	case l.Holds && l.Missed > 0:
		out = fmt.Sprintf("Undecided: the limit of %s is between %s and %s %s.", l.SLO, metric.Setting(low), metric.Setting(high), unit)
	case l.Holds:
		out = fmt.Sprintf("Undecided: %s holds at %s %s, and no higher load is known to miss it.", l.SLO, metric.Setting(low), unit)
	case low > 0 && high > 0:
		out = fmt.Sprintf("Undecided: %s seems to break between %s and %s %s, but no load was measured for long enough.", l.SLO, metric.Setting(low), metric.Setting(high), unit)
	case high > 0:
		out = fmt.Sprintf("Undecided: %s breaks at %s %s, and no load is known to hold it.", l.SLO, metric.Setting(high), unit)
	default:
		return fmt.Sprintf("Undecided: no load was measured for long enough to judge %s.", l.SLO)
	}
	return out + s.reason(low, high)
}

// reason explains in a sentence why a search has no answer, with the time that would
// tell. It is empty without a known reason.
func (s *Search) reason(low, high float64) string {
	more := roughly(s.MoreTime())
	if r, goal, ok := s.rhythm(low, high); ok {
		e := r.Goals[goal]
		spells := "one spell of misses of about %s in %s decides"
		if e.Misses > 1.5 {
			spells = strconv.Itoa(int(math.Round(e.Misses))) + " spells of misses of about %s in %s decide"
		}
		return fmt.Sprintf(" In probe %d at %s %s, "+spells+" on %s: %s more would tell.", r.Number+1, metric.Setting(r.Load), units[s.Kind],
			metric.Duration(1e3*e.Count*e.Share/max(e.Misses, 1)/r.Served), metric.Duration(1e3*r.Took.Seconds()), s.Goals[goal], more)
	}
	if rate := s.acceptedRate(); high > rate && low < high {
		return fmt.Sprintf(" The server accepts %s %s in the long run and more in a burst: %s more would tell.", metric.Brief(rate), units[s.Kind], more)
	}
	return fmt.Sprintf(" About %s more would tell.", more)
}

// MoreTime estimates the time after which a search without an answer has one: as long as
// a few clusters of misses take at both ends of the bracket, and at least as long as the
// search took.
func (s *Search) MoreTime() (more time.Duration) {
	for _, r := range s.Results {
		more += r.Took
	}
	low, high := s.bracket()
	return max(more, 2*minClusters*s.gap(max(low, high/2)), s.burstTime((low+high)/2))
}

// roughly returns a time in full minutes or hours.
func roughly(d time.Duration) string {
	switch minutes := int(math.Ceil(d.Minutes())); {
	case minutes <= 1:
		return "a minute"
	case minutes <= 90:
		return strconv.Itoa(minutes) + " minutes"
	}
	return strconv.Itoa(int(math.Ceil(d.Hours()))) + " hours"
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
	case g.Good != nil:
		return metric.Brief(100*(1-value)) + " %"
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
