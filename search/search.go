package search

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// A Kind is what is turned up until the SLO breaks.
type Kind string

// The kinds of load.
const (
	Rate        Kind = "rate"        // requests per second
	Concurrency Kind = "concurrency" // requests in flight
	Users       Kind = "users"       // sessions under way, with their pauses
)

// Kinds are all of them.
var Kinds = []Kind{Rate, Concurrency, Users}

// A Probe is a load to try.
type Probe struct {
	Number   int
	Kind     Kind
	Load     float64
	Alone    bool          // one request at a time, whatever the kind: the least load there is
	Long     bool          // of the load that seems to be the limit
	Expected time.Duration // about how long a request takes; 0 is unknown
	Effort   Effort
}

// Open says whether requests come whether or not others are answered.
func (p Probe) Open() bool { return p.Kind == Rate && !p.Alone }

// A Result is what a probe came to.
type Result struct {
	Probe
	Verdict  Verdict
	Why      string // of a void one, and of one that is undecided: what it does not tell
	Goals    []Evidence
	Requests int
	Served   float64       // requests per second, while the load was steady
	Takes    time.Duration // what most requests took at most
	Took     time.Duration
	window   []seen      // its requests, while the load was steady
	schedule []arrival   // when all of its requests came
	begin    int         // of these, the first of the window
	counts   [][]float64 // how much each of these counts for each goal; nil is as one
}

// tells says whether the fit can learn from it.
func (r Result) tells() bool { return r.Verdict != Void && !r.Alone }

// A Search looks for the limit. Run what Next asks for, under the Watch of it,
// and Add the Watch when the last of its requests is in.
type Search struct {
	Kind    Kind
	Goals   []Goal
	From    float64 // where to begin; 0 finds out
	To      float64 // the highest load to try; 0 is no end
	Within  float64 // how exact the limit must be, as a part of it
	Probes  int     // most probes
	Size    int     // most requests of a probe; 0 is as many as the goals ask for
	Results []Result
	process []arrival // a long stretch of the arrivals, at one a second
	lenses  []lens    // of the goals
	curves  []*curve
	usual   arrival // a usual request
}

// The defaults.
const (
	DefaultWithin = 0.05
	DefaultProbes = 11
)

// New returns a search with the usual bounds.
func New(kind Kind, goals []Goal) *Search {
	return &Search{Kind: kind, Goals: goals, Within: DefaultWithin, Probes: DefaultProbes}
}

// Watch is what judges a probe.
func (s *Search) Watch(p Probe) *Watch {
	return &Watch{Probe: p, goals: s.Goals, nextLook: p.Effort.Least}
}

// Add takes in what a probe came to. A probe that proves nothing says why.
func (s *Search) Add(w *Watch, void string) Result {
	r := w.result()
	s.measure(&r)
	if void != "" {
		r.Verdict, r.Why = Void, void
	}
	s.Results = append(s.Results, r)
	s.weigh()
	return r
}

// measure makes lengths parts of those of a usual request, which is that of the first
// probe.
func (s *Search) measure(r *Result) {
	if s.usual == (arrival{}) {
		n := float64(max(len(r.schedule), 1))
		for _, one := range r.schedule {
			s.usual.prompt, s.usual.output = s.usual.prompt+one.prompt/n, s.usual.output+one.output/n
		}
	}
	for i := range r.schedule {
		one := &r.schedule[i]
		one.prompt, one.output = ratio(one.prompt, s.usual.prompt), ratio(one.output, s.usual.output)
	}
}

// ratio is how long something is, where 1 is usual; what nobody knows is usual.
func ratio(long, usual float64) float64 {
	const least = 0.01
	if usual == 0 {
		return 1
	}
	return max(long/usual, least)
}

// Next is the next load to try; false is when there is no more to learn.
func (s *Search) Next() (Probe, bool) {
	if len(s.Results) >= s.Probes || s.voids() > 3 {
		return Probe{}, false
	}
	p, ok := s.again()
	if !ok {
		p, ok = s.choose()
	}
	p.Number, p.Kind, p.Expected = len(s.Results), s.Kind, s.takes(p.Load)
	return p, ok
}

// takes is about how long a request takes at a load, by the nearest that was
// tried; 0 where nothing was.
func (s *Search) takes(load float64) (took time.Duration) {
	nearest := math.Inf(1)
	for _, r := range s.Results {
		if d := math.Abs(math.Log(load / r.Load)); r.Verdict != Void && d < nearest {
			took, nearest = r.Takes, d
		}
	}
	return took
}

// again is a probe that proved nothing, once more: whatever was in its way may be
// gone.
func (s *Search) again() (Probe, bool) {
	n := len(s.Results)
	if n == 0 || s.Results[n-1].Verdict != Void || n > 1 && s.Results[n-2].Verdict == Void {
		return Probe{}, false
	}
	return s.Results[n-1].Probe, true
}

// voids are how many probes proved nothing.
func (s *Search) voids() (n int) {
	for _, r := range s.Results {
		n += int(failed(r.Verdict == Void))
	}
	return n
}

// tooMuch says whether a load could not be offered, even when it was tried again.
func (s *Search) tooMuch(r Result) bool {
	return r.Verdict == Void && !slices.ContainsFunc(s.Results, func(o Result) bool { return o.Load >= r.Load && o.Verdict != Void })
}

func (s *Search) choose() (Probe, bool) {
	if len(s.Results) == 0 {
		if s.From > 0 {
			return s.scout(s.From), true
		}
		return Probe{Load: 1, Alone: true, Effort: Effort{Least: aloneSize, Most: 3 * aloneSize, Doubt: roughDoubt, Rough: true}}, true
	}
	low, high := s.bracket()
	switch {
	case s.hopeless(low, high):
		return Probe{}, false
	case high == 0 && low == 0: // one at a time is fine
		return s.up(s.few(), 0)
	case high == 0:
		return s.up(low, s.pressure(low))
	case low == 0:
		return s.scout(s.round(high / scoutStep)), true
	}
	return s.refine(low, high)
}

// The sizes of probes, in requests, and by how much loads go up.
const (
	aloneSize  = 4
	scoutSize  = 20
	scoutStep  = 4
	roughDoubt = 0.2

	short = 5  // of the slowest requests that a goal allows, in a probe near the limit
	once  = 11 // and in one that is longer: what it shows may be that the limit is elsewhere
	long  = 24 // and near the limit itself, in all
	least = 22 // and in the whole search at least
	all   = 29 // and in as many as could be sent at the limit in the time of the whole search
	extra = 3  // and beyond that, where the winner had no long probe yet

	// A goal that allows many slow requests still needs some hundreds: those that
	// are served together resemble each other.
	mostShare = 0.0135
)

// effort is that of a probe that may see so many of the slowest requests that a
// goal allows.
func (s *Search) effort(slowest float64) Effort {
	return Effort{Least: 3 * scoutSize, Most: s.size(slowest), Doubt: 0.05}
}

// size is how many requests of a probe it takes to see so many of the slowest.
func (s *Search) size(slowest float64) int {
	n := int(slowest / s.share())
	if s.Size > 0 {
		n = min(n, s.Size)
	}
	return n
}

// share is that of the slowest requests which the goal allows that breaks first, or
// one that breaks soon after.
func (s *Search) share() float64 {
	const soon = 1.1
	samples, share := s.samples(), mostShare
	best := s.cross(samples, 1)
	low, high := s.ends()
	for i, g := range s.Goals {
		if best.goal >= 0 && g.Metric != nil && !g.Mean && s.crossing(i, samples, best.load, 1, [2]float64{low, high}) < soon*best.load {
			share = min(share, g.Share)
		}
	}
	return share
}

func (s *Search) scout(load float64) Probe {
	return Probe{Load: load, Effort: Effort{Least: scoutSize, Most: 5 * scoutSize, Doubt: roughDoubt, Rough: true}}
}

// few is a load of a few requests at a time, as the first probe shows it.
func (s *Search) few() float64 {
	if s.Kind == Rate {
		return s.Results[0].Served
	}
	return 1
}

// up goes up from a load that holds: fast while it is far below the limits.
func (s *Search) up(from, pressure float64) (Probe, bool) {
	step := min(max(1.1*math.Pow(1/max(pressure, 1e-3), 0.9), 1.15), scoutStep)
	load := s.round(from * step)
	if load <= from {
		load = from + 1
	}
	if s.To > 0 && load >= s.To {
		if from >= s.To {
			return Probe{}, false
		}
		load = s.To
	}
	return s.scout(load), true
}

// pressure is how near the limits a load came.
func (s *Search) pressure(load float64) (most float64) {
	for _, r := range s.Results {
		if r.Load == load && r.tells() {
			most = max(most, r.pressure())
		}
	}
	return most
}

func (r Result) pressure() (most float64) {
	for _, e := range r.Goals {
		most = max(most, e.Pressure)
	}
	return most
}

// leans is the verdict of a probe, or the side to which one leans that is too
// close to tell, or that had only a rough look.
func (r Result) leans() Verdict {
	if r.Verdict != Undecided && (r.Verdict != Holds || !r.Effort.Rough) {
		return r.Verdict
	}
	if r.pressure() > 1 {
		return Misses
	}
	return Holds
}

// bracket is the highest load that holds and the lowest that does not; 0 where
// there is none. One that could not be offered is too high for this client.
func (s *Search) bracket() (low, high float64) {
	for _, r := range s.Results {
		if (s.tooMuch(r) || r.leans().Missed() && !s.outweighed(r)) && !r.Alone && (high == 0 || r.Load < high) {
			high = r.Load
		}
	}
	for _, r := range s.Results {
		// A scout ends before it has seen what a load near the limit does in time.
		room := 1.0
		if r.Effort.Rough {
			room = 1.3
		}
		if !r.Alone && r.leans() == Holds && r.Load > low && (high == 0 || room*r.Load < high) {
			low = r.Load
		}
	}
	return low, high
}

// outweighed says whether a probe that leans to a miss is contradicted: one of at
// least its load saw more requests, and leans to the other side.
func (s *Search) outweighed(r Result) bool {
	return slices.ContainsFunc(s.Results, func(o Result) bool {
		return !o.Alone && o.Load >= r.Load && len(o.window) > len(r.window) && o.leans() == Holds
	})
}

// hopeless says whether there is nothing to look for: one request at a time is
// too many, or even a small part of that.
func (s *Search) hopeless(low, high float64) bool {
	if first := s.Results[0]; first.Alone && (first.Verdict.Missed() || first.Verdict == Void) {
		return true
	}
	if low > 0 || high == 0 {
		return false
	}
	if s.Kind != Rate {
		return high <= 1
	}
	first := s.Results[0]
	return high < first.Load/50 || first.Alone && high < first.Served/50
}

// round makes a load one that can be asked for.
func (s *Search) round(load float64) float64 {
	if s.Kind == Rate {
		short, _ := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 4, 64), 64) // what was just written
		return short
	}
	return max(math.Round(load), 1)
}

// refine tries the load that is the limit by all that was seen, until that is
// known well enough: the winner had enough requests, and chance would not move it
// much.
func (s *Search) refine(low, high float64) (Probe, bool) {
	if s.Kind != Rate && high-low <= 1 {
		return s.last(low)
	}
	best, chance := s.limits()
	near, brief := s.near(best.load), float64(s.size(short))
	left := s.left(all, best.load)
	ending := len(s.Results) == s.Probes-1 || left < brief+float64(s.size(once)) // the winner is still to be tried longer
	if near < brief && !ending {
		load := best.load
		if low < load && load < high { // else the verdicts are contradicted by all that was seen
			margin := min(math.Pow(high/low, 0.2), 1.3)
			load = min(max(load, low*margin), high/margin)
		}
		load = s.round(min(max(load, low/1.3), high*1.3))
		return Probe{Load: load, Effort: s.effort(short)}, true
	}
	wide := math.Log(chance[len(chance)*19/20]/chance[len(chance)/20]) / 2 / s.Within
	more := min(max(near*(wide*wide-1), float64(s.size(long))-near), left)
	if !s.tried(best.load) {
		more = max(more, min(float64(s.size(once)), s.left(all+extra, best.load)))
	}
	if more < brief/2 {
		return Probe{}, false
	}
	p := Probe{Load: s.round(best.load), Long: true, Effort: s.effort(once)}
	p.Effort.Most = int(min(max(more, brief), float64(p.Effort.Most)))
	return p, true
}

// tried says whether a load, or nearly that, had a long probe.
func (s *Search) tried(load float64) bool {
	return slices.ContainsFunc(s.Results, func(r Result) bool {
		return r.Long && r.tells() && math.Abs(math.Log(r.Load/load)) < s.Within/2
	})
}

// left is how many requests may still be sent at a load, of as many as it takes to see so
// many of the slowest. They count by their time: a scout at a low rate takes as long as
// many requests near the limit. But where the limit is far above one at a time, scouts
// would take all of it; so there are always some by number.
func (s *Search) left(slowest, load float64) float64 {
	seconds, sent := 0.0, 0.0
	for _, r := range s.Results {
		if r.Verdict != Void {
			seconds, sent = seconds+r.Took.Seconds(), sent+float64(r.Requests)
		}
	}
	share := s.share()
	if s.Kind != Rate {
		return slowest/share - sent
	}
	return max(slowest/share-seconds*load, least/share-sent)
}

// near is how many requests were sent near a load, by probes that were no scouts.
func (s *Search) near(load float64) (n float64) {
	for _, r := range s.Results {
		if r.tells() && !r.Effort.Rough {
			n += nearness(r.Load, load, fitReach/2) * float64(len(r.window))
		}
	}
	return n
}

// last is the long probe of what seems to be the limit, if it had none yet.
func (s *Search) last(load float64) (Probe, bool) {
	tried := slices.ContainsFunc(s.Results, func(r Result) bool {
		return r.Long && !r.Verdict.Missed() && r.Verdict != Void && r.Load == load
	})
	return Probe{Load: load, Long: true, Effort: s.effort(long)}, !tried
}

// ends are the loads between which the limit must lie. Most probes bound nothing:
// their requests are in the fit, and count there for what they are worth.
func (s *Search) ends() (low, high float64) {
	low, high = math.Inf(1), 0
	for _, r := range s.Results {
		if !r.Alone {
			low, high = min(low, r.Load), max(high, r.Load)
		}
	}
	low, high = low/2, high*1.2
	for _, r := range s.Results {
		if s.tooMuch(r) || r.Verdict == Overrun && !s.outweighed(r) {
			high = min(high, 1.05*r.Load)
		}
	}
	return low, max(high, 1.01*low)
}
