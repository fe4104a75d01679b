package search

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"
	"time"

	"tacho"
	"tacho/stat"
)

// A Verdict is what a probe shows of its load.
type Verdict int

// The verdicts.
const (
	Undecided Verdict = iota // it is too close to the limit to tell
	Holds
	Misses
	Overrun // requests come faster than they are served
	Void    // the probe proves nothing
)

var verdictNames = [...]string{"undecided", "holds", "misses", "overrun", "void"}

func (v Verdict) String() string { return verdictNames[v] }

// Missed says whether the load is too high.
func (v Verdict) Missed() bool { return v == Misses || v == Overrun }

// An Effort is how much a probe may cost, and how certain it must be.
type Effort struct {
	Least     int           // requests before a first verdict
	Most      int           // requests while the load is steady
	Doubt     float64       // chance of a wrong verdict, at the limit itself, on either side
	Rough     bool          // values far below the limits are enough
	Full      bool          // Most is as many requests as the goals need
	LeastTime time.Duration // before a first verdict
	MostTime  time.Duration // the probe ends then; 0 is no limit
}

// A Watch judges a probe while it runs. It looks at the requests that were sent
// while the load was steady: after the server had filled, and long enough ago
// that slow ones have ended too. It looks ever more rarely, and each look may be
// wrong with its part of the doubt only.
type Watch struct {
	Probe
	goals    []Goal
	seen     []seen
	now      time.Duration // the latest end
	last     time.Duration // the latest due time
	nextLook int
	verdict  Verdict
	decided  time.Duration // when the verdict was reached; 0 is not yet
}

// seen is what is kept of a request.
type seen struct {
	due, end       time.Duration
	inFlight       int     // at its end
	prompt, output float64 // tokens
	marks          []mark  // one for each goal
}

// A mark is what a request says of a goal: its values, and how many of them
// miss it.
type mark struct {
	sum, n, miss float64
	room         float64 // factor by which latencies may grow until their mean misses the goal, as a logarithm
}

// Add takes a request in, with the number of those in flight at its end, and
// says whether there is a verdict: then no more need be sent. What is in flight
// is to be added too.
func (w *Watch) Add(r *tacho.Record, inFlight int) (enough bool) {
	if r.Probe || r.Failure != nil && r.Failure.Cause == tacho.Canceled {
		return w.decided > 0
	}
	one := seen{due: r.Due, end: r.End, inFlight: inFlight, prompt: float64(r.Input), output: float64(r.Output), marks: make([]mark, len(w.goals))}
	for i, g := range w.goals {
		m := &one.marks[i]
		g.of(r, func(v float64) {
			m.sum += v
			m.n++
			m.miss += failed(g.misses(v))
		})
		if g.Metric != nil && m.n > 0 {
			m.room = math.Log(g.room(m.sum / m.n))
		}
	}
	w.seen = append(w.seen, one)
	w.now, w.last = max(w.now, r.End), max(w.last, r.Due)
	if w.decided == 0 && len(w.seen) >= w.nextLook && w.now >= w.Effort.LeastTime {
		w.look()
	}
	if most := w.Effort.MostTime; w.decided == 0 && most > 0 && w.last >= most {
		w.decided = w.now
	}
	return w.decided > 0
}

// lookEvery is how often a probe is judged anew: after so many times as many
// requests. There are some twenty looks in a long probe, which all see much the
// same; looksCount is by how much each must be surer than the probe as a whole.
const (
	lookEvery  = 1.2
	looksCount = 6
)

func (w *Watch) look() {
	w.nextLook = max(w.Effort.Least, int(lookEvery*float64(len(w.seen))))
	w.verdict = w.judge(w.now, w.Effort.Doubt/looksCount)
	if w.verdict != Undecided || len(w.window(w.now)) >= w.Effort.Most {
		w.decided = w.now
	}
}

// Ceiling is how many requests a probe takes at the very most: those of the steady
// part, and those before and after.
func (p Probe) Ceiling() int {
	const filling = 1.5 // the first third may not be steady yet
	around, durable := 2*p.Load, p.Load*p.Effort.LeastTime.Seconds()
	switch {
	case p.Open():
		around *= p.Expected.Seconds()
	case p.Expected > 0:
		durable /= p.Expected.Seconds()
	default:
		durable = 0
	}
	return int(max(float64(p.Effort.Most)/enoughPart, filling*durable)+around) + 2*p.Effort.Least
}

// judge weighs what was seen up to a moment; each goal may be judged wrongly
// with a chance of doubt.
func (w *Watch) judge(now time.Duration, doubt float64) Verdict {
	trend := w.trend(now, overrunBy)
	if trend == growing {
		return Overrun
	}
	// A server that is still filling is better than it will be, and those that have
	// ended are the fast ones: whoever misses a goal so will miss it.
	if ended := w.between(w.filled(now), now); len(ended) >= w.Effort.Least {
		for i, g := range w.goals {
			if asBad, _ := evidence(g, ended, i).chances(g); asBad < doubt {
				return Misses
			}
		}
	}
	window := w.window(now)
	if len(window) < w.Effort.Least {
		return Undecided
	}
	all := Holds
	for i, g := range w.goals {
		switch w.judgeGoal(g, evidence(g, window, i), doubt) {
		case Misses:
			return Misses
		case Undecided:
			all = Undecided
		case Holds:
		}
	}
	if all == Holds && trend != steady {
		return Undecided // what is still rising has not shown yet where it ends
	}
	return all
}

// farBelow is the part of a limit that is far enough below it for a rough look.
const (
	farBelow  = 0.6
	strangers = 4 // how many independent requests such a look takes
)

func (w *Watch) judgeGoal(g Goal, e Evidence, doubt float64) Verdict {
	low, high := e.chances(g)
	switch {
	case low < doubt, w.Effort.Rough && g.Metric != nil && e.N >= strangers && e.Pressure > 1/farBelow:
		return Misses
	case high < doubt, e.Bad == 0 && g.Metric == nil && (w.Effort.Rough || e.Count >= float64(g.need())):
		return Holds
	case e.Bad == 0 && w.Effort.Rough && e.N >= strangers && e.Pressure < farBelow:
		return Holds
	}
	return Undecided
}

// open are the goals that are too close to their limits to tell.
func (w *Watch) open(window []seen) string {
	var names []string
	for i, g := range w.goals {
		if w.judgeGoal(g, evidence(g, window, i), w.Effort.Doubt) == Undecided {
			names = append(names, g.Words())
		}
	}
	if names == nil {
		return "whether requests pile up"
	}
	return strings.Join(names, ", ")
}

// window are the requests of the steady part, in order of their due times.
func (w *Watch) window(now time.Duration) []seen { return w.between(w.filled(now), now-w.horizon()) }

func (w *Watch) between(from, to time.Duration) []seen {
	var out []seen
	for _, s := range w.seen {
		if s.due >= from && s.due <= to && (w.decided == 0 || s.due <= w.decided) {
			out = append(out, s)
		}
	}
	slices.SortStableFunc(out, func(a, b seen) int { return cmp.Compare(a.due, b.due) })
	return out
}

// filled is when the server has filled. Near its limit a server fills for several
// times as long as a request takes.
func (w *Watch) filled(now time.Duration) time.Duration {
	const times, part = 5, 4
	return min(times*w.horizon(), max(now/part, min(w.horizon(), now/3)))
}

// horizon is how long most requests take: the server has filled after it, and
// those that were sent before it have ended.
func (w *Watch) horizon() time.Duration {
	if len(w.seen) == 0 {
		return 0
	}
	took := make([]float64, len(w.seen))
	for i, s := range w.seen {
		took[i] = float64(s.end - s.due)
	}
	return time.Duration(stat.New(took).Quantile(0.95))
}

// The ways the number of requests in flight goes.
type trend int

const (
	steady trend = iota
	rising
	growing // without an end in sight
)

// trend says whether requests pile up. What is in flight rises until the
// server has filled, and is steady then, up to chance; where more come than are
// served it goes on rising by the difference.
func (w *Watch) trend(now time.Duration, overrunBy float64) trend {
	if !w.Open() {
		return steady
	}
	from := w.filled(now)
	mean, ended := w.quarters(from, now)
	if slices.Contains(mean[:], 0) {
		return rising
	}
	const parts = len(mean)
	span, length := w.horizon().Seconds(), (now - from).Seconds()
	rise := mean[parts-1] - mean[0]
	// Those in flight at two moments a horizon apart are strangers to each other, and
	// their number varies as that of any arrivals does.
	apart := max(length/float64(parts)/max(span, 1e-9), 0.25)
	chance := math.Sqrt(2 * mean[parts-1] / apart)
	if rise < 2*chance {
		return steady
	}
	// In a rush, more come than usual; it is the server that must be too slow. And
	// one that is still filling fills ever more slowly.
	behind := min(rise/(length*float64(parts-1)/float64(parts)), w.Load-ended/length)
	goesOn := slices.IsSorted(mean[:]) && mean[parts-1]-mean[parts-2] > rise/float64(parts)
	if goesOn && rise > 4*chance && behind > overrunBy*w.Load && length > 2*span {
		return growing
	}
	return rising
}

// quarters are how many requests were in flight in each quarter of a time, at the
// ends of requests, and how many ended in it; 0 where nobody knows.
func (w *Watch) quarters(from, to time.Duration) (mean [4]float64, ended float64) {
	var count [len(mean)]float64
	for _, s := range w.seen {
		if s.end >= from && s.end <= to && to > from {
			i := min(int(time.Duration(len(mean))*(s.end-from)/(to-from)), len(mean)-1)
			mean[i] += float64(s.inFlight)
			count[i]++
			ended++
		}
	}
	for i, n := range count {
		mean[i] = (mean[i] + n/1e6) / max(n, 1) // an idle server is not an unknown one
	}
	return mean, ended
}

// overrunBy is the share of the arrivals that must stay behind to end a probe. Near
// its limit a server fills slowly, and for a while a smaller share stays behind.
// overrunAtEnd is the share for a probe with all of its requests. keptUp is the share
// of the arrivals that a server serves at least if it keeps up, in any probe.
// enoughPart is the part of the wanted requests that must be left after filling.
const (
	enoughPart   = 0.75
	keptUp       = 0.7
	overrunBy    = 0.2
	overrunAtEnd = 0.05
)

// result is the outcome of the probe, when its last request finished.
func (w *Watch) result() Result {
	until := cmp.Or(w.decided, w.last)
	r := Result{Probe: w.Probe, Verdict: w.verdict, Requests: len(w.seen), Took: w.now, Takes: w.horizon()}
	window := w.between(w.filled(until), until) // all of them finished
	certain := r.Verdict != Undecided
	if !certain {
		r.Verdict = w.judge(until, w.Effort.Doubt)
	}
	if r.Verdict != Overrun && w.trend(until, overrunAtEnd) == growing {
		r.Verdict = Overrun
	}
	if r.Verdict == Undecided {
		r.Why = w.open(window)
	}
	r.Enough = !w.Effort.Rough && (certain || w.Effort.Full && float64(len(window)) >= enoughPart*float64(w.Effort.Most))
	r.window = window
	r.schedule = make([]arrival, len(w.seen))
	for i, one := range w.seen {
		r.schedule[i] = arrival{one.due.Seconds(), one.prompt, one.output}
	}
	slices.SortStableFunc(r.schedule, func(a, b arrival) int { return cmp.Compare(a.at, b.at) })
	if len(window) > 0 {
		r.begin = sort.Search(len(r.schedule), func(i int) bool { return r.schedule[i].at >= window[0].due.Seconds() })
	}
	for i, g := range w.goals {
		r.Goals = append(r.Goals, evidence(g, window, i))
	}
	r.latency, r.latencyError = logLatency(window)
	r.Served = w.served(until)
	if w.fellBehind(until) {
		r.Verdict = Overrun
	}
	return r
}

// served is how many requests were answered per second: while the load was steady, or
// until the last answer, because an overloaded server goes on when nothing is sent.
func (w *Watch) served(until time.Duration) (rate float64) {
	if from := w.filled(until); until > from {
		_, ended := w.flow(from, until)
		rate = ended / (until - from).Seconds()
	}
	if w.now > 0 {
		rate = max(rate, float64(len(w.seen))/w.now.Seconds())
	}
	return rate
}

// fellBehind says whether the server answered far fewer requests than were sent, in the
// last third of the time in which they were sent: before, it fills.
func (w *Watch) fellBehind(until time.Duration) bool {
	sending := min(until, w.last)
	came, ended := w.flow(sending-sending/3, sending)
	behind := came - ended
	return w.Open() && until >= w.Effort.LeastTime && behind > (1-keptUp)*came && behind > 3*math.Sqrt(came)
}

// flow counts the requests that were due in a time, and those that ended in it.
func (w *Watch) flow(from, to time.Duration) (came, ended float64) {
	for _, s := range w.seen {
		came += failed(s.due > from && s.due <= to)
		ended += failed(s.end > from && s.end <= to)
	}
	return came, ended
}

// logLatency is the mean of the logarithm of the requests' durations, and its
// standard error.
func logLatency(window []seen) (mean, standardError float64) {
	var logs []float64
	for _, s := range window {
		if took := s.end - s.due; took > 0 {
			logs = append(logs, math.Log(took.Seconds()))
		}
	}
	if len(logs) < scoutSize {
		return 0, math.Inf(1)
	}
	size := stat.EffectiveSize(logs)
	all := stat.New(logs)
	return all.Mean(), all.Std() / math.Sqrt(size)
}
