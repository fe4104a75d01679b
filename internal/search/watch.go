package search

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// A Watch judges a probe while it runs. It evaluates the requests of the steady part:
// sent after the warm-up, and early enough for slow requests to finish too. The
// intervals between two checks grow, and the checks share the significance level.
type Watch struct {
	Probe
	goals        []Goal
	observations []observation
	now          time.Duration // the latest end of a request
	last         time.Duration // the latest due time
	nextCheck    int           // requests
	verdict      Verdict
	decided      time.Duration // when the verdict was reached; 0 is not yet
}

// An observation is the data a Watch keeps of a request.
type observation struct {
	due, end time.Duration
	inFlight int // at the end of the request
	failed   bool
	goals    []goalValues // one for each goal
}

// goalValues summarizes the values of a request for a goal.
type goalValues struct {
	sum, n, misses float64
}

// Add takes a finished request and the number of requests in flight at its end. It
// reports whether there is a verdict: the caller then sends no more requests, and adds
// those in flight when they finish.
func (w *Watch) Add(r *tacho.Record, inFlight int) (enough bool) {
	if r.Probe || r.Failure != nil && r.Failure.Cause == tacho.Canceled {
		return w.decided > 0
	}
	w.observations = append(w.observations, w.observe(r, inFlight))
	w.now, w.last = max(w.now, r.End), max(w.last, r.Due)
	if w.decided == 0 && len(w.observations) >= w.nextCheck && w.now >= w.Effort.MinTime {
		w.check()
	}
	if most := w.Effort.MaxTime; w.decided == 0 && most > 0 && w.last >= most {
		w.decided = w.now
	}
	return w.decided > 0
}

// observe returns the observation of a record.
func (w *Watch) observe(r *tacho.Record, inFlight int) observation {
	o := observation{due: r.Due, end: r.End, inFlight: inFlight, failed: !r.OK(), goals: make([]goalValues, len(w.goals))}
	for i, g := range w.goals {
		values := &o.goals[i]
		g.values(r, func(v float64) {
			values.sum += v
			values.n++
			values.misses += indicator(g.misses(v))
		})
	}
	return o
}

// check judges the running probe, and ends it if the verdict is significant or all
// requests of the steady part finished.
func (w *Watch) check() {
	w.nextCheck = max(w.Effort.MinRequests, int(checkGrowth*float64(len(w.observations))))
	w.verdict = w.judge(w.now, w.Effort.Alpha/checkPenalty)
	window := w.window(w.now)
	few, quiet := w.clusters(window)
	full := len(window) >= w.Effort.MaxRequests && (!few || w.now > clusterTime)
	if w.verdict.Missed() || (full || w.verdict == Holds) && (!quiet || w.now >= w.Effort.QuietTime) {
		w.decided = w.now
	}
}

// clusters reports whether too few independent clusters of misses decide on a full probe,
// and whether it had hardly any misses.
func (w *Watch) clusters(window []observation) (few, quiet bool) {
	quiet = true
	for i, g := range w.goals {
		e := newEvidence(g, window, i)
		few = few || w.Effort.Full && e.fewClusters(g)
		quiet = quiet && e.missRatio(g) <= relevantShare
	}
	return few, quiet
}

// judge returns the verdict at a time, at a significance level for each goal.
func (w *Watch) judge(now time.Duration, alpha float64) Verdict {
	trend := w.trend(now, overrunShare)
	if trend == growing {
		return Overrun
	}
	if w.missesAlready(now, alpha) {
		return Misses
	}
	window := w.window(now)
	if len(window) < w.Effort.MinRequests {
		return Undecided
	}
	verdict := Holds
	for i, g := range w.goals {
		switch w.judgeGoal(g, newEvidence(g, window, i), alpha) {
		case Misses:
			return Misses
		case Undecided:
			verdict = Undecided
		case Holds:
		}
	}
	if verdict == Holds && trend != steady {
		return Undecided // latencies still rise with the requests in flight
	}
	return verdict
}

// missesAlready reports whether the requests that finished so far miss a goal. They are
// the fast ones, and a server that still fills is faster than later. So the complete
// probe would miss the goal too.
func (w *Watch) missesAlready(now time.Duration, alpha float64) bool {
	finished := w.sentBetween(w.warmupEnd(now), now)
	if len(finished) < w.Effort.MinRequests {
		return false
	}
	for i, g := range w.goals {
		if holds, _ := newEvidence(g, finished, i).pValues(g); holds < alpha {
			return true
		}
	}
	return false
}

// judgeGoal returns the verdict on one goal. It is significant, or the probe is a scout
// and the value is far from the limit, or a goal on failures saw no failure in enough
// requests.
func (w *Watch) judgeGoal(g Goal, e Evidence, alpha float64) Verdict {
	holds, misses := e.pValues(g)
	decisive := w.Effort.Scout && e.EffectiveSize >= scoutEffectiveSize
	switch {
	case holds < alpha, decisive && g.Metric != nil && e.Pressure > 1/scoutClearance:
		return Misses
	case misses < alpha, e.Misses == 0 && g.Metric == nil && (w.Effort.Scout || e.Count >= float64(g.fullRequests())):
		return Holds
	case e.Misses == 0 && decisive && e.Pressure < scoutClearance:
		return Holds
	}
	return Undecided
}

// undecidedGoals names the goals too close to their limits.
func (w *Watch) undecidedGoals(window []observation) string {
	var names []string
	for i, g := range w.goals {
		if w.judgeGoal(g, newEvidence(g, window, i), w.Effort.Alpha) == Undecided {
			names = append(names, g.Words())
		}
	}
	if names == nil {
		return "whether requests pile up"
	}
	return strings.Join(names, ", ")
}

// result returns the outcome of the probe after its last request finished.
func (w *Watch) result() Result {
	until := cmp.Or(w.decided, w.last)
	window := w.sentBetween(w.warmupEnd(until), until) // all of them finished
	r := Result{
		Probe: w.Probe, Requests: len(w.observations), Took: w.now, LatencyP95: w.latencyP95(),
		Served: w.served(until), steady: len(window),
	}
	r.burst, r.accepted = w.burst(until)
	r.Verdict, r.Why = w.finalVerdict(until, window)
	significant := w.verdict != Undecided
	r.Enough = !w.Effort.Scout && (significant || w.Effort.Full && float64(len(window)) >= enoughShare*float64(w.Effort.MaxRequests))
	for i, g := range w.goals {
		r.Goals = append(r.Goals, newEvidence(g, window, i))
	}
	r.logLatency, r.logLatencyError = meanLogLatency(window)
	return r
}

// finalVerdict returns the verdict after the last request finished, and the reason of an
// undecided one. It has no penalty for repeated checks.
func (w *Watch) finalVerdict(until time.Duration, window []observation) (v Verdict, why string) {
	if v = w.verdict; v == Undecided {
		v = w.judge(until, w.Effort.Alpha)
	}
	if v != Overrun && w.trend(until, overrunShareAtEnd) == growing {
		v = Overrun
	}
	if v == Undecided {
		why = w.undecidedGoals(window)
	}
	if w.fellBehind(until) {
		v = Overrun
	}
	return v, why
}

// burst returns how many requests beyond the rate that the server accepts it served
// until it began to refuse some, and that rate. Both are 0 if it refused none, or from
// the beginning on.
func (w *Watch) burst(until time.Duration) (requests, rate float64) {
	sent := w.sentBetween(0, until)
	first := slices.IndexFunc(sent, func(o observation) bool { return o.failed })
	if !w.Open() || first < minBurst || len(sent)-first < minBurst {
		return 0, 0
	}
	begin, accepted, late := sent[first].due, 0.0, 0.0
	for i, o := range sent[first:] {
		accepted += indicator(!o.failed)
		late += indicator(o.failed && i > (len(sent)-first)/2)
	}
	refused := float64(len(sent)-first) - accepted
	if accepted > maxAcceptedShare*float64(len(sent)-first) || late < minLateShare*refused { // an outage ends
		return 0, 0
	}
	rate = accepted / max(until-begin, time.Millisecond).Seconds()
	return max(float64(first)-rate*begin.Seconds(), 0), rate
}

// meanLogLatency returns the mean logarithm of the durations of requests, and its
// standard error.
func meanLogLatency(window []observation) (mean, standardError float64) {
	var logs []float64
	for _, o := range window {
		if took := o.end - o.due; took > 0 {
			logs = append(logs, math.Log(took.Seconds()))
		}
	}
	if len(logs) < scoutRequests {
		return 0, math.Inf(1)
	}
	size := stat.EffectiveSize(logs)
	all := stat.New(logs)
	return all.Mean(), all.Std() / math.Sqrt(size)
}
