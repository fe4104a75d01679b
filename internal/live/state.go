package live

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

const mostTicks = 240 // in the history of a level

// Period is the planned length of a tick.
const Period = 500 * time.Millisecond

// A State collects the live state of a run. Its methods are safe for concurrent use.
type State struct {
	mu       sync.Mutex
	about    About
	level    Level
	over     bool
	doing    string
	totals   Totals
	at       time.Duration
	judged   judged
	flows    []flow
	client   *metric.Client
	failures map[string]*Failure
	window   []Tick // the latest ticks
	points   []Point
	earlier  []Point // of earlier levels
	ttft     Bins    // of the level
	itl      Bins
	past     []Past
	notes    []string
}

// Describe sets the target of the run.
func (b *State) Describe(a About) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.about = a
}

// Note adds a line to the notes.
func (b *State) Note(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, line)
	b.notes = b.notes[max(0, len(b.notes)-50):]
}

// SetActivity sets the activity before the next level, such as a server start.
func (b *State) SetActivity(what string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.doing = what
}

// Begin starts a level.
func (b *State) Begin(l Level) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.earlier = append(b.earlier, b.points...)
	b.earlier = b.earlier[max(0, len(b.earlier)-mostTicks):]
	b.ttft, b.itl = nil, nil
	b.level, b.over, b.doing, b.at, b.totals, b.judged, b.flows, b.client = l, false, "", 0, Totals{}, judged{}, nil, nil
	b.failures, b.window, b.points = map[string]*Failure{}, nil, nil
}

// Add adds a tick of the current level. Ticks of several generators with the same number
// are merged.
func (b *State) Add(t Tick) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.totals, b.at = b.totals.Plus(t.Totals), max(b.at, t.At)
	b.judged.add(&t.judged)
	b.flow()
	b.ttft.add(t.TTFT)
	b.itl.add(t.ITL)
	b.client = worse(b.client, t.Client)
	for _, f := range t.Failed {
		f.addTo(b.failures)
	}
	i := slices.IndexFunc(b.window, func(w Tick) bool { return w.Seq == t.Seq })
	switch {
	case i >= 0:
		b.window[i].add(&t)
	case len(b.window) > 0 && t.Seq < b.window[0].Seq:
		return // outside the window, so it only counts for the totals
	default:
		i = len(b.window)
		b.window = append(b.window, t)
		b.points = append(b.points, Point{})
	}
	back := len(b.window) - i
	b.points[len(b.points)-back] = b.point(b.window[i : i+1])
	b.window = b.window[max(0, len(b.window)-10):] // the moving average
	b.points = b.points[max(0, len(b.points)-mostTicks):]
}

// add merges a tick with the same number into t.
func (t *Tick) add(o *Tick) {
	t.At, t.Span = max(t.At, o.At), max(t.Span, o.Span)
	t.Totals = t.Plus(o.Totals)
	t.TTFT.add(o.TTFT)
	t.ITL.add(o.ITL)
	t.TPOT.add(o.TPOT)
	t.E2EL.add(o.E2EL)
	t.Server = cmp.Or(t.Server, o.Server)
}

// worse merges two client measurements into the worse one by the rules of the verdict.
func worse(a, b *metric.Client) *metric.Client {
	if a == nil || b == nil {
		return cmp.Or(b, a)
	}
	out := *b
	out.BusyShare, out.StolenShare = max(a.BusyShare, b.BusyShare), max(a.StolenShare, b.StolenShare)
	out.WakeMillis, out.GCMillis = max(a.WakeMillis, b.WakeMillis), max(a.GCMillis, b.GCMillis)
	if a.Pauses.LongestMillis > b.Pauses.LongestMillis {
		out.Pauses = a.Pauses
	}
	return &out
}

// point summarizes consecutive ticks.
func (b *State) point(ticks []Tick) Point {
	var sum Tick
	p := Point{Level: b.level.Number}
	for i := range ticks {
		t := &ticks[i]
		sum.Span += t.Span
		sum.Totals = sum.Plus(t.Totals)
		sum.TTFT.add(t.TTFT)
		sum.ITL.add(t.ITL)
		sum.TPOT.add(t.TPOT)
		sum.E2EL.add(t.E2EL)
		p.AtS = t.At.Seconds()
		p.Server = cmp.Or(t.Server, p.Server)
	}
	if s := sum.Span.Seconds(); s > 0 {
		p.SentPerS, p.ServedPerS, p.TokensPerS = float64(sum.Sent)/s, float64(sum.Finished-sum.Totals.Failed)/s, float64(sum.Tokens)/s
		p.FailedPerS = float64(sum.Totals.Failed) / s
	}
	p.InFlight = b.totals.InFlight()
	p.TTFT, p.TPOT, p.ITL, p.E2EL = sum.TTFT.figure(), sum.TPOT.figure(), sum.ITL.figure(), sum.E2EL.figure()
	return p
}

// End finishes the current level with its result.
func (b *State) End(l *outcome.Level) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.over = true
	s := &l.Summary
	p := Past{Level: b.level, Seconds: s.DurationS, Failed: s.Failed, Verdict: s.Verdict.Severity}
	if t := s.Throughput; t != nil {
		p.RequestsPerS, p.TokensPerS = t.RequestsPerS, t.OutputTokensPerS
	}
	p99 := func(m *metric.Metric) *float64 {
		if stats := s.Dist(m).Stats; stats != nil && !s.Verdict.Voids(m.Name) {
			return new(stats.Percentile(99))
		}
		return nil
	}
	p.TTFTP99, p.TPOTP99, p.ITLP99, p.E2ELP99 = p99(metric.TTFT), p99(metric.TPOT), p99(metric.ITL), p99(metric.E2EL)
	b.past = append(b.past, p)
}

// Snapshot returns the current state of the run.
func (b *State) Snapshot() Snapshot {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := Snapshot{
		About: b.about, Level: b.level, Over: b.over, Doing: b.doing, AtS: b.at.Seconds(), Totals: b.totals, Now: b.point(b.window), Verdict: b.verdict(),
		History: slices.Clone(b.points), Earlier: slices.Clone(b.earlier), TTFT: b.ttft.buckets(), ITL: b.itl.buckets(), Past: slices.Clone(b.past), Notes: slices.Clone(b.notes),
	}
	for _, f := range slices.Collect(maps.Values(b.failures)) {
		s.Failures = append(s.Failures, *f)
	}
	slices.SortFunc(s.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.LastS, a.LastS), cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Status, b.Status))
	})
	s.progress()
	return s
}

// Draining reports whether all requests are sent and only answers are outstanding.
func (s *Snapshot) Draining() bool { return !s.Over && s.LeftS != nil && *s.LeftS == 0 }

// progress computes the share of the level that is finished and the remaining time.
func (s *Snapshot) progress() {
	l := &s.Level
	planned, timed := l.Planned()
	switch {
	case s.Over:
		s.Share, s.LeftS = new(1.0), new(0.0)
	case l.Sessions > 0 && (l.Seconds == 0 || l.Rate > 0):
		s.Share = new(min(float64(s.Totals.Sessions)/float64(l.Sessions), 1))
	case timed:
		s.Share = new(min(s.AtS/planned, 1))
	}
	switch waiting := float64(int64(l.Sessions) - s.Totals.Sessions); {
	case s.Over:
	case timed && s.AtS < planned:
		s.LeftS = new(planned - s.AtS)
	case timed && l.Sessions == 0:
		s.LeftS = new(0.0)
	case l.Sessions > 0 && s.Now.ServedPerS > 0:
		s.LeftS = new(waiting / s.Now.ServedPerS)
	}
	switch {
	case s.LeftS == nil:
	case l.Probe:
		s.RunLeftS = new(max(l.Seconds-s.AtS, 0))
		s.LeftS = new(min(*s.LeftS, *s.RunLeftS))
	case l.LaterS != nil:
		s.RunLeftS = new(*s.LeftS + *l.LaterS)
	}
}

// mostFlows is the number of flows that are kept. A longer level keeps every second one.
const mostFlows = 4096

// flow adds the totals at this time to the flows. Ticks of several generators with the same time are one.
func (b *State) flow() {
	if n := len(b.flows); n > 0 && b.flows[n-1].at == b.at {
		b.flows = b.flows[:n-1]
	}
	if len(b.flows) == mostFlows {
		for i := range mostFlows / 2 {
			b.flows[i] = b.flows[2*i+1]
		}
		b.flows = b.flows[:mostFlows/2]
	}
	b.flows = append(b.flows, flow{b.at, b.totals.Sent, b.totals.Finished})
}

// verdict judges the requests that have finished so far, by the rules of the final verdict. The worst
// reasons come first, because a screen has no room for all.
func (b *State) verdict() metric.Verdict {
	if b.level.Predicted {
		return metric.Verdict{Severity: metric.Predicted}
	}
	s := b.judged.summary(&b.level, b.at)
	if s.Requests == 0 {
		return tooEarly("no request has finished; %d are in flight", b.totals.InFlight())
	}
	s.Config.Client = b.client
	s.Pauses = b.judged.soFar.Pauses(&s)
	s.LimitBound = b.level.Concurrency > 0 && slices.ContainsFunc(b.flows, func(f flow) bool { return f.sent-f.finished >= int64(b.level.Concurrency) })
	if b.level.Rate > 0 {
		s.Backlog = backlog(b.flows)
	}
	v := metric.JudgeSoFar(&s)
	rank := []metric.Severity{metric.Invalid, metric.Degraded, metric.Note}
	weight := func(r metric.Reason) int { // a queue comes before doubts about single figures
		w := 2 * slices.Index(rank, r.Severity)
		if r.Code != metric.QueueGrowth {
			w++
		}
		return w
	}
	slices.SortStableFunc(v.Reasons, func(a, b metric.Reason) int { return weight(a) - weight(b) })
	grown := len(v.Reasons) > 0 && v.Reasons[0].Code == metric.QueueGrowth
	if open := b.totals.InFlight(); b.level.Rate > 0 && open > 0 && !grown && (rising(s.Backlog) || s.Backlog == nil && open > b.totals.Finished) {
		early := tooEarly("%d requests are in flight, and the number still rises", open)
		v.Reasons = append(early.Reasons, v.Reasons...)
		if v.Severity == metric.Valid {
			v.Severity = early.Severity
		}
	}
	return v
}

// rising reports whether the number in flight rises by more than a standard deviation of its random variation. The
// rule on growing queues needs more evidence.
func rising(b *metric.Backlog) bool {
	return b != nil && float64(b.Late-b.Early) >= math.Sqrt(float64(b.Due))
}

// tooEarly is the verdict on a level that cannot be judged yet.
func tooEarly(format string, open int64) metric.Verdict {
	return metric.Verdict{Severity: metric.Unjudged, Reasons: []metric.Reason{{Code: "too-early", Severity: metric.Note, Text: fmt.Sprintf(format, open)}}}
}
