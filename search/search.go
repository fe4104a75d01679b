package search

import (
	"math"
	"slices"
	"strconv"
	"time"
)

// A Kind is the load that find turns up until the SLO breaks.
type Kind string

// The kinds of load.
const (
	Rate        Kind = "rate"        // requests per second
	Concurrency Kind = "concurrency" // requests in flight
	Users       Kind = "users"       // sessions under way, with their think time
)

// Kinds lists all kinds of load.
var Kinds = []Kind{Rate, Concurrency, Users}

// A Probe is a load to measure.
type Probe struct {
	Number   int
	Kind     Kind
	Load     float64
	Alone    bool          // one request at a time, whatever the kind: the least load there is
	Expected time.Duration // estimated duration of a request; 0 is unknown
	Effort   Effort
}

// Open says whether requests are sent whether or not others were answered.
func (p Probe) Open() bool { return p.Kind == Rate && !p.Alone }

// A Result is the outcome of a probe.
type Result struct {
	Probe
	Verdict               Verdict
	Why                   string     // reason of a void or undecided verdict
	Goals                 []Evidence // one for each goal
	Requests              int
	Enough                bool          // the steady part has as many requests as its goals need, or the verdict is certain
	Served                float64       // requests per second in the steady part, or until the last answer if that is more
	Takes                 time.Duration // p95 of the requests' durations
	Took                  time.Duration // duration of the probe
	latency, latencyError float64       // mean of the logarithm of the requests' durations, and its standard error
	window                []seen        // requests of the steady part
	schedule              []arrival     // arrivals of all requests
	begin                 int           // index in schedule of the first request of the window
	counts                [][]float64   // weights of the requests in the window for each goal; nil is 1
}

// A Search looks for the highest load that keeps the goals. Run the probe that Next
// returns under its Watch, and Add the Watch when the last request finished.
//
// The search names only loads that it measured. Scouts go up until a goal is missed.
// Probes between the highest load that holds and the lowest that misses follow, until
// both are within Within of each other and each has a full probe that shows it. Time
// that is left goes into the two, until random variation hardly explains either.
type Search struct {
	Kind    Kind
	Goals   []Goal
	From    float64       // first load; 0 begins with one request at a time
	To      float64       // highest load to try; 0 is no limit
	Within  float64       // ratio of the lowest load that misses to the highest that holds, less 1
	Budget  time.Duration // most time for all probes together; 0 is chosen by the load
	Size    int           // most requests of a probe; 0 is as many as the goals need
	Results []Result
	process []arrival // a long stretch of the arrivals, at one a second
	lenses  []lens    // of the goals
	curves  []*curve
	usual   arrival // a usual request
}

// DefaultWithin is how exact a limit is unless the user says otherwise.
const DefaultWithin = 0.05

const (
	mostProbes = 60 // a search that does not end by itself ends here
	mostFulls  = 5  // full probes of an end of the bracket
	mostVoid   = 6  // probes that prove nothing, before the search gives up

	nearEnough = 1.5 // ratio of a load that the client cannot send to one that holds

	aloneSize = 4  // requests of the first probe at least
	scoutSize = 20 // requests of a scout at least
	scoutStep = 4  // ratio of the loads of two scouts
	nearStep  = 2  // the same after a load near which the limit seemed to be

	endDoubt   = 0.1  // chance of a wrong verdict on either end of the bracket, if there is time
	roughDoubt = 0.2  // chance of a wrong verdict of a scout: later probes correct it
	fullDoubt  = 0.05 // chance of a wrong verdict of a probe that stops early

	// fullTail is how many requests beyond the percentile a full probe sees: a p99
	// takes 2,000 requests. Below fullSize, requests that are served together decide,
	// and a server near its limit has hardly filled.
	fullTail = 20
	fullSize = 1000
	meanSize = 2000 // a mean of waits varies as much as a p99: a few long ones decide
	shorter  = 4    // ratio of the sizes of a full probe and a short one
	// errorTail is how many failures a full probe would see at the limit. If it sees
	// none of three, the share is below the limit with a chance of 95 %.
	errorTail     = 3
	mostErrorSize = 1000

	// A probe lasts this long at least, because a server may stall or fill for seconds,
	// and this many times as long as a request takes. Scouts are shorter, because they
	// may be far beyond the limit, and then the search waits until the queue is served.
	scoutTime    = 2 * time.Second
	fullTime     = 20 * time.Second
	leastDurable = 5
	scoutDurable = 2

	// A search lasts as long as this many requests take at its limit, which is about
	// a quarter of a sweep of ten levels with 1,000 requests each; at least
	// leastBudget.
	budgetRequests = 6500
	undecidedTimes = 3 // factor of the budget while there is no answer
	leastBudget    = 90 * time.Second
)

// New returns a search with default bounds.
func New(kind Kind, goals []Goal) *Search {
	return &Search{Kind: kind, Goals: goals, Within: DefaultWithin}
}

// Watch returns the judge of a probe.
func (s *Search) Watch(p Probe) *Watch {
	return &Watch{Probe: p, goals: s.Goals, nextLook: p.Effort.Least}
}

// Add takes the outcome of a probe. void is the reason if the probe proves nothing.
func (s *Search) Add(w *Watch, void string) Result {
	r := w.result()
	s.measure(&r)
	if void != "" {
		r.Verdict, r.Why, r.Enough = Void, void, false
	}
	s.Results = append(s.Results, r)
	s.weigh()
	return r
}

// measure expresses lengths as ratios to the mean lengths of the first probe.
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

// ratio is a length in units of the usual one; 1 if lengths are unknown.
func ratio(length, usual float64) float64 {
	const least = 0.01
	if usual == 0 {
		return 1
	}
	return max(length/usual, least)
}

// Next returns the next probe; false ends the search.
func (s *Search) Next() (Probe, bool) {
	left := s.left()
	if len(s.Results) >= mostProbes || s.voids() >= mostVoid || left <= 0 {
		return Probe{}, false
	}
	p, ok := s.again()
	if !ok {
		p, ok = s.choose()
	}
	p.Number, p.Kind, p.Expected = len(s.Results), s.Kind, s.takes(p.Load)
	durable := leastDurable * p.Expected
	if p.Effort.Rough {
		durable = scoutDurable * p.Expected
	}
	p.Effort.LeastTime = max(p.Effort.LeastTime, durable)
	if s.Budget > 0 {
		p.Effort.MostTime = left
	}
	return p, ok
}

// left is the time that the search may still take.
func (s *Search) left() time.Duration {
	spent := time.Duration(0)
	for _, r := range s.Results {
		spent += r.Took
	}
	if s.Budget > 0 {
		return s.Budget - spent
	}
	rate := s.rate()
	if rate == 0 {
		return leastBudget
	}
	whole := max(time.Duration(budgetRequests/rate*float64(time.Second)), leastBudget)
	if l := (Limit{}); spent >= whole {
		if s.fill(&l); !l.Decided {
			whole *= undecidedTimes
		}
	}
	return whole - spent
}

// rate is the number of requests per second served at the load that holds, or at
// the lowest load tried if none holds; 0 if nothing is known.
func (s *Search) rate() float64 {
	low, _ := s.bracket()
	rate := 0.0
	for _, r := range s.Results {
		if r.Verdict != Void && !r.Alone && (r.Load == low || low == 0 && (rate == 0 || r.Served < rate)) {
			rate = r.Served
		}
	}
	return rate
}

// takes estimates how long a request takes at a load by the nearest probe that held;
// 0 if there was none. Requests at an overloaded server take as long as the probe.
func (s *Search) takes(load float64) (took time.Duration) {
	nearest := math.Inf(1)
	for _, r := range s.Results {
		d := math.Abs(math.Log(load / r.Load))
		if r.Alone && s.Kind == Rate {
			d = math.Abs(math.Log(load / r.Served))
		}
		if r.Verdict != Void && !r.Verdict.Missed() && d < nearest {
			took, nearest = r.Takes, d
		}
	}
	return took
}

// again repeats a probe that proved nothing, once, because its cause may be gone.
func (s *Search) again() (Probe, bool) {
	n := len(s.Results)
	if n == 0 || s.Results[n-1].Verdict != Void || n > 1 && s.Results[n-2].Verdict == Void {
		return Probe{}, false
	}
	return s.Results[n-1].Probe, true
}

// voids counts the probes that proved nothing.
func (s *Search) voids() (n int) {
	for _, r := range s.Results {
		n += int(failed(r.Verdict == Void))
	}
	return n
}

// tooMuch says whether the client could not send a load, even when it tried again.
func (s *Search) tooMuch(r Result) bool {
	return r.Verdict == Void && !slices.ContainsFunc(s.Results, func(o Result) bool { return o.Load >= r.Load && o.Verdict != Void })
}

// choose returns the next probe by what is known so far.
func (s *Search) choose() (Probe, bool) {
	if len(s.Results) == s.voids() {
		if len(s.Results) > 1 {
			return Probe{}, false
		}
		if s.From > 0 {
			return s.scout(s.From), true
		}
		return Probe{Load: 1, Alone: true, Effort: Effort{Least: aloneSize, Most: 3 * aloneSize, Doubt: roughDoubt, Rough: true}}, true
	}
	low, high := s.bracket()
	held, missed := s.alone()
	if _, changed := s.drift(); changed || missed {
		return Probe{}, false
	}
	switch {
	case high == 0 && low == 0 && !held && s.Results[0].Alone: // a few requests alone are no proof
		p := s.full(1)
		p.Alone = true
		return p, true
	case high == 0 && low == 0:
		return s.up(s.few())
	case high == 0:
		return s.up(low)
	case low == 0:
		return s.down(high)
	}
	return s.refine(low, high)
}

// scout returns a short probe.
func (s *Search) scout(load float64) Probe {
	return Probe{Load: load, Effort: Effort{Least: scoutSize, Most: 5 * scoutSize, Doubt: roughDoubt, Rough: true, LeastTime: scoutTime}}
}

// full returns a probe with as many requests as the goals need.
func (s *Search) full(load float64) Probe {
	return Probe{Load: load, Effort: Effort{Least: 3 * scoutSize, Most: s.need(), Doubt: fullDoubt, LeastTime: fullTime, Full: true}}
}

// short returns a probe between a scout and a full one, to look for the limit.
func (s *Search) short(load float64) Probe {
	p := s.full(load)
	p.Effort.Most, p.Effort.LeastTime, p.Effort.Full = max(p.Effort.Most/shorter, 5*scoutSize), scoutTime, false
	return p
}

// need is how many requests a full probe takes in its steady part.
func (s *Search) need() int {
	n := needAll(s.Goals)
	if s.Size > 0 {
		n = min(n, s.Size)
	}
	return n
}

// needAll is how many requests it takes to judge all goals.
func needAll(goals []Goal) int {
	n := fullSize
	for _, g := range goals {
		n = max(n, g.need())
	}
	return n
}

// need is how many requests it takes to judge the goal.
func (g Goal) need() int {
	switch {
	case g.Metric == nil:
		return min(int(math.Ceil(errorTail/g.Share)), mostErrorSize)
	case g.Mean:
		return meanSize
	}
	return int(math.Round(fullTail / g.Share))
}

// few is the load of about one request at a time, as the first probe shows it.
func (s *Search) few() float64 {
	for _, r := range s.Results {
		if r.Alone && r.Verdict != Void && s.Kind == Rate {
			return r.Served
		}
	}
	return 1
}

// up goes to a higher load than one that holds.
func (s *Search) up(from float64) (Probe, bool) {
	step := float64(scoutStep)
	if !s.onlyScouted(from) {
		step = nearStep
	}
	load := s.round(from * step)
	if load <= from {
		load = from + 1
	}
	if s.To > 0 && load >= s.To {
		load = s.To
		if from >= s.To {
			return s.full(from), !s.enough(from)
		}
	}
	return s.scout(load), true
}

// down goes to a lower load than one that misses, if none holds. One request at a
// time is the least load there is: if that misses, no load holds.
func (s *Search) down(high float64) (Probe, bool) {
	if s.hopeless(high) {
		return Probe{}, false
	}
	if high <= s.few() && !s.enoughAlone() {
		p := s.full(1)
		p.Alone = true
		return p, true
	}
	return s.short(s.round(high / scoutStep)), true
}

// hopeless says whether no load holds, if the lowest load tried misses: it is much
// lower than one request at a time, or goals are missed as often at a quarter of the
// load.
func (s *Search) hopeless(high float64) bool {
	const (
		lowest    = 16  // times less than one request at a time is as good as none
		unchanged = 0.5 // share of the misses that is left; a queue would leave a quarter or less
	)
	if s.Kind != Rate {
		return high <= 1
	}
	few := s.few()
	if high > few || !s.enoughAlone() {
		return false
	}
	at, above := 0.0, math.Inf(1)
	for _, r := range s.Results {
		switch {
		case !r.tells():
		case r.Load == high:
			at = max(at, s.worst(r))
		case r.Load >= 0.9*scoutStep*high && s.missed(r) && r.Verdict != Overrun:
			above = min(above, s.worst(r))
		}
	}
	return high < few/lowest || at > unchanged*above
}

// round makes a load one that can be asked for.
func (s *Search) round(load float64) float64 {
	if s.Kind == Rate {
		short, _ := strconv.ParseFloat(strconv.FormatFloat(load, 'g', 4, 64), 64) // FormatFloat wrote it
		return short
	}
	return max(math.Round(load), 1)
}

// refine narrows the bracket, and then measures its two ends for longer.
func (s *Search) refine(low, high float64) (Probe, bool) {
	if s.missesAbove(low) >= 2 && s.onlyScouted(low) { // two probes missed: does low hold at all?
		return s.short(low), true
	}
	if s.unoffered(low) != "" && high/low <= nearEnough { // the client is at its limit
		return s.full(low), !s.enough(low)
	}
	if high/low <= wide && s.onlyScouted(high) { // a scout may take a filling server for a full one
		return s.short(high), true
	}
	load, near := s.between(low, high)
	if load = s.round(load); low < load && load < high {
		if near {
			return s.full(load), true
		}
		return s.short(load), true
	}
	switch { // both ends need a probe of their own, and not only the average of several
	case !s.shown(low, s.passed) && s.fulls(low) < mostFulls:
		return s.full(low), true
	case !s.shown(high, s.missed) && s.fulls(high) < mostFulls:
		return s.full(high), true
	}
	if load, again := s.older(low, high); again { // has the server changed?
		return s.full(load), true
	}
	lowDoubt, _ := s.chances(low, low)
	_, highDoubt := s.chances(high, high)
	load = high
	if lowDoubt > highDoubt {
		load = low
	}
	return s.full(load), max(lowDoubt, highDoubt) > endDoubt && s.fulls(load) < mostFulls
}
