package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

const (
	// minPause is the minimum length of a pause. Shorter ones are normal on a busy machine.
	minPause = 100 * time.Millisecond
	// pauseSteps is the minimum length of a pause in median gaps between tokens, so that no step of the engine is a
	// pause.
	pauseSteps = 5
	// pauseTail is the part of a pause's length after its end in which the first tokens of prompts show that the engine
	// processed these prompts during the pause. Many streams then go on together, and their tokens do not arrive at the same time.
	pauseTail = 0.25
	// prefillQuantile selects prompts that hardly waited for others.
	prefillQuantile = 0.1
	// prefillShare is how much longer than such a prompt another one may take for its length. An engine may decode in
	// between.
	prefillShare = 2
	// rhythmMin is the number of pauses that can have a rhythm, and rhythmSpread is the largest difference between a
	// gap and the median gap, as a share. Two random gaps differ as little in one of seven cases.
	rhythmMin    = 3
	rhythmSpread = 0.15
	// rhythmMissed is the number of gaps from which one may hold up to two pauses that no stream saw.
	rhythmMissed = 4
	// maxPauses is the number of pauses in a list.
	maxPauses = 100
	// maxReplicas is the number of servers that are checked for pauses of their own.
	maxReplicas = 32
)

// A PauseKind is what stood still, or why.
type PauseKind string

// The kinds of pauses.
const (
	ServerPause  PauseKind = "server"  // all streams of all servers
	ReplicaPause PauseKind = "replica" // all streams of one of several servers
	PrefillPause PauseKind = "prefill" // the engine may have processed prompts instead of decoding
	ClientPause  PauseKind = "client"  // the client was not scheduled
	HeldPause    PauseKind = "held"    // the tokens of the pause arrived in lumps after it: they were held on the way
)

// A Pause is a time in which streams with work received no token.
type Pause struct {
	Kind     PauseKind `json:"kind"`
	AtS      float64   `json:"at_s"`
	Millis   float64   `json:"ms"`
	Endpoint string    `json:"endpoint,omitempty"` // of a ReplicaPause
}

func (p *Pause) quiet() quiet {
	return quiet{time.Duration(p.AtS * 1e9), time.Duration(p.AtS*1e9 + p.Millis*1e6)}
}

// ServerPauses are the pauses of a level. Only pauses of servers count; the others are listed to tell them apart.
type ServerPauses struct {
	Pauses        int     `json:"pauses"` // of a server or a replica
	TotalS        float64 `json:"total_s"`
	MedianMillis  float64 `json:"median_ms"`
	LongestMillis float64 `json:"longest_ms"`
	EveryS        float64 `json:"every_s,omitempty"` // median time between the starts of regular pauses

	SlowMillis   float64  `json:"slow_ms"`                 // median TTFT and half of the median pause
	Slow         int      `json:"slow"`                    // requests with a longer TTFT
	SlowInPauses int      `json:"slow_in_pauses"`          // of Slow: waited for the first token during a pause
	P99Millis    *float64 `json:"ttft_p99_ms"`             // TTFT p99 of all these requests
	P99Without   *float64 `json:"ttft_p99_without_pauses"` // without those that waited during a pause, in milliseconds

	PrefillStops int     `json:"prefill_stops"` // pauses that prompts explain
	PrefillS     float64 `json:"prefill_s"`     // their sum
	ClientStops  int     `json:"client_stops"`  // pauses of the client
	Held         int     `json:"held"`          // pauses on the way from the server

	List []Pause `json:"list,omitempty"` // all but PrefillPause, in order of time; of more than 100 the longest
}

// replicas are the activities of several servers.
type replicas struct {
	by      map[string]*activity
	tooMany bool
}

func (rs *replicas) of(endpoint string) *activity {
	if rs.tooMany || endpoint == "" {
		return nil
	}
	if rs.by == nil {
		rs.by = map[string]*activity{}
	}
	if rs.by[endpoint] == nil {
		rs.by[endpoint] = &activity{}
	}
	if len(rs.by) > maxReplicas {
		rs.by, rs.tooMany = nil, true
		return nil
	}
	return rs.by[endpoint]
}

func (rs *replicas) add(r *tacho.Record) {
	if to := rs.of(r.Endpoint); to != nil {
		to.add(r)
	}
}

func (rs *replicas) merge(o *replicas) {
	if rs.tooMany = rs.tooMany || o.tooMany; rs.tooMany {
		rs.by = nil
	}
	for endpoint, a := range o.by {
		if to := rs.of(endpoint); to != nil {
			to.merge(a)
		}
	}
}

// pauses returns nil if there is no pause.
func (a *Accumulator) pauses(s *Summary) *ServerPauses {
	j := judging{s.Config.Client.stalls(), time.Duration(s.Classic(ITL).Median * 1e6), a.sampling.weight()}
	streams := streamsOf(a.marks, "")
	all := j.judge(&a.activity, streams)
	if len(a.replicas.by) > 1 {
		for endpoint, one := range a.replicas.by {
			for _, p := range j.judge(one, streamsOf(a.marks, endpoint)) {
				if p.Kind == ServerPause && !slices.ContainsFunc(all, func(q Pause) bool { return p.quiet().overlap(q.quiet()) > 0 }) {
					p.Kind, p.Endpoint = ReplicaPause, endpoint
					all = append(all, p)
				}
			}
		}
	}
	return summarizePauses(all, streams)
}

// summarizePauses returns nil if there is no pause.
func summarizePauses(all []Pause, streams []*marks) *ServerPauses {
	if len(all) == 0 {
		return nil
	}
	slices.SortFunc(all, func(a, b Pause) int { return cmp.Or(cmp.Compare(a.AtS, b.AtS), cmp.Compare(a.Endpoint, b.Endpoint)) })
	out := &ServerPauses{}
	out.count(all)
	if out.Pauses > 0 {
		out.explain(streams)
	}
	return out
}

// streamsOf returns the successful streams of a server in the order in which they were sent. The name "" stands for all.
func streamsOf(all []marks, endpoint string) []*marks {
	var out []*marks
	for i := range all {
		if m := &all[i]; m.streamed() && (endpoint == "" || m.endpoint == endpoint) {
			out = append(out, m)
		}
	}
	slices.SortFunc(out, func(a, b *marks) int { return cmp.Compare(a.sent, b.sent) })
	return out
}

// recentStreams is the number of finished requests among which a running level is searched for pauses.
const recentStreams = 1 << 13

// recent holds the latest finished requests of a running level.
type recent struct {
	activity activity
	marks    []marks
}

func (w *recent) add(r *tacho.Record) {
	w.activity.add(r)
	w.marks = append(w.marks, marksOf(r))
	w.forget()
}

func (w *recent) merge(o *recent) {
	w.activity.merge(&o.activity)
	w.marks = append(w.marks, o.marks...)
	w.forget()
}

// forget drops the oldest requests.
func (w *recent) forget() {
	if n := len(w.marks); n >= 2*recentStreams {
		w.marks = append(w.marks[:0], w.marks[n-recentStreams:]...)
	}
}

// pauses returns the pauses so far, or nil. A request in flight may still have received tokens at a time that seems
// quiet, so the latest times are left out.
func (w *recent) pauses(s *Summary) *ServerPauses {
	streams := streamsOf(w.marks, "")
	if len(streams) < fewestRequests {
		return nil
	}
	longest, last := time.Duration(0), time.Duration(0)
	for _, m := range streams {
		longest, last = max(longest, m.last-m.sent), max(last, m.last)
	}
	j := judging{s.Config.Client.stalls(), time.Duration(s.Classic(ITL).Median * 1e6), 1}
	all := slices.DeleteFunc(j.judge(&w.activity, streams), func(p Pause) bool { return p.quiet().to > last-longest })
	return summarizePauses(all, streams)
}

// A stop is a time without a token, with streams that had work.
type stop struct {
	quiet
	waiting []*marks // sent before its end, without a token before its end
}

// stops returns the quiet times of an activity in which streams had work for a minimum length. It shortens them to the
// time with work.
func (a *activity) stops(streams []*marks, least time.Duration) (out []stop) {
	var flying []*marks
	next := 0
	for _, q := range a.quiets(least) {
		for ; next < len(streams) && streams[next].sent < q.to; next++ {
			flying = append(flying, streams[next])
		}
		flying = slices.DeleteFunc(flying, func(m *marks) bool { return m.last < q.to })
		one := stop{quiet: q}
		work := q.to
		for _, m := range flying {
			work = min(work, m.sent)
			if m.first >= q.to {
				one.waiting = append(one.waiting, m)
			}
		}
		if one.from = max(q.from, work); one.length() >= least {
			out = append(out, one)
		}
	}
	return out
}

// judging is what the kind of a pause depends on, besides the streams.
type judging struct {
	clients []quiet       // pauses of the client
	step    time.Duration // median gap between tokens
	weight  int           // requests that one of the streams represents
}

// judge returns the pauses of an activity with their kinds.
func (j *judging) judge(of *activity, streams []*marks) (out []Pause) {
	least := max(minPause, pauseSteps*j.step)
	stops := of.stops(streams, least)
	perToken := prefillTime(streams, stops)
	for i := range stops {
		st := &stops[i]
		kind := ServerPause
		switch {
		case slices.ContainsFunc(j.clients, func(c quiet) bool { return 2*c.overlap(st.quiet) >= st.length() }):
			kind = ClientPause
		case st.length()-st.prefill(perToken, j.step, j.weight) < least:
			kind = PrefillPause
		case of.resumed.lumped(st.to, st.tail()):
			kind = HeldPause
		}
		out = append(out, Pause{Kind: kind, AtS: st.from.Seconds(), Millis: millis(st.length())})
	}
	return out
}

// tail returns the end of the time in which the first tokens of the prompts processed in the pause arrive.
func (st *stop) tail() time.Duration {
	return st.to + time.Duration(pauseTail*float64(st.length()))
}

// prefillTime returns the time per prompt token of prompts that hardly waited for others: over all prompts, or over
// the prompts whose first tokens end a stop if it is shorter. It is 0 if no prompt has a known length.
func prefillTime(streams []*marks, stops []stop) float64 {
	var each, together []float64
	firsts := make([]time.Duration, 0, len(streams))
	for _, m := range streams {
		firsts = append(firsts, m.first)
		if m.fresh > 0 && m.turn == 0 { // a server need not report that it had a conversation in its cache
			each = append(each, float64(m.first-m.sent)/float64(m.fresh))
		}
	}
	slices.Sort(firsts)
	for i := range stops {
		st, tokens := &stops[i], 0
		begin := st.to // of the prefill: after the first tokens before, because a prompt may be processed in several steps
		for _, m := range st.waiting {
			if m.first <= st.tail() {
				tokens, begin = tokens+int(m.fresh), min(begin, m.sent)
			}
		}
		if before, _ := slices.BinarySearch(firsts, st.to); before > 0 {
			begin = max(begin, firsts[before-1])
		}
		if tokens > 0 {
			together = append(together, float64(st.to-begin)/float64(tokens))
		}
	}
	out := stat.New(each).Quantile(prefillQuantile)
	if len(together) > 0 {
		out = min(out, stat.New(together).Quantile(prefillQuantile))
	}
	return out
}

// prefill returns how much of a stop prompts may explain: those whose first tokens end the stop and those that were
// next in the queue, or one that was processed until later.
func (st *stop) prefill(perToken float64, step time.Duration, weight int) time.Duration {
	sum, alone := time.Duration(0), time.Duration(0)
	next := time.Duration(math.MaxInt64) // the first token after the tail of a prompt that was queued before the stop
	for _, m := range st.waiting {
		if m.first > st.tail() && m.sent <= st.from {
			next = min(next, m.first)
		}
	}
	for _, m := range st.waiting {
		needs := time.Duration(perToken * float64(m.fresh))
		if needs == 0 {
			needs = m.first - m.sent // unknown
		}
		if m.first <= st.tail() || m.sent <= st.from && m.first-step <= next {
			sum += min(needs, st.to-m.sent) * time.Duration(weight)
		}
		own := quiet{max(m.sent, m.first-prefillShare*needs), m.first}
		alone = max(alone, own.overlap(st.quiet))
	}
	return min(max(sum, alone), st.length())
}

func (q quiet) overlap(o quiet) time.Duration { return max(min(q.to, o.to)-max(q.from, o.from), 0) }

func (ps *ServerPauses) count(all []Pause) {
	var lengths, begins []float64
	for _, p := range all {
		switch p.Kind {
		case ServerPause, ReplicaPause:
			lengths, begins = append(lengths, p.Millis), append(begins, p.AtS)
			ps.TotalS += p.Millis / 1e3
		case PrefillPause:
			ps.PrefillStops++
			ps.PrefillS += p.Millis / 1e3
			continue
		case ClientPause:
			ps.ClientStops++
		case HeldPause:
			ps.Held++
		}
		ps.List = append(ps.List, p)
	}
	if ps.Pauses = len(lengths); ps.Pauses > 0 {
		of := stat.New(lengths)
		ps.MedianMillis, ps.LongestMillis = of.Median(), of.Max()
		ps.EveryS = rhythm(begins)
	}
	if len(ps.List) > maxPauses {
		lengths := make([]float64, len(ps.List))
		for i := range ps.List {
			lengths[i] = -ps.List[i].Millis
		}
		slices.Sort(lengths)
		ps.List = slices.DeleteFunc(ps.List, func(p Pause) bool { return p.Millis < -lengths[maxPauses-1] })
	}
}

// rhythm returns the median time between regular events, or 0 if they are not regular.
func rhythm(at []float64) float64 {
	if len(at) < rhythmMin {
		return 0
	}
	var gaps []float64
	for i := 1; i < len(at); i++ {
		gaps = append(gaps, at[i]-at[i-1])
	}
	median := stat.New(slices.Clone(gaps)).Median()
	for _, gap := range gaps {
		beats := 1.0
		if len(gaps) >= rhythmMissed {
			beats = min(max(math.Round(gap/median), 1), 3)
		}
		if math.Abs(gap-beats*median) > rhythmSpread*median {
			return 0
		}
	}
	return median
}

// explain counts the slow requests that waited during a pause of a server.
func (ps *ServerPauses) explain(streams []*marks) {
	var all, without []float64
	for _, m := range streams {
		all = append(all, millis(m.first-m.sent))
	}
	of := stat.New(all)
	ps.SlowMillis = of.Median() + ps.MedianMillis/2
	for _, m := range streams {
		took := millis(m.first - m.sent)
		touched := slices.ContainsFunc(ps.List, func(p Pause) bool {
			ofServer := p.Kind == ServerPause || p.Kind == ReplicaPause && p.Endpoint == m.endpoint
			return ofServer && p.quiet().overlap(quiet{m.sent, m.first}) > 0
		})
		if took > ps.SlowMillis {
			ps.Slow++
			if touched {
				ps.SlowInPauses++
			}
		}
		if !touched {
			without = append(without, took)
		}
	}
	if p99 := of.Quantile(0.99); len(of) > 0 {
		ps.P99Millis = &p99
	}
	if left := stat.New(without); len(left) > 0 {
		p99 := left.Quantile(0.99)
		ps.P99Without = &p99
	}
}

// mostTimes is the number of pauses whose times are in a sentence.
const mostTimes = 5

// text describes the pauses of servers: number, length, times and rhythm, and their part in the slow requests.
func (ps *ServerPauses) text() string {
	var own []Pause
	who := "a replica"
	for _, p := range ps.List {
		if p.Kind == ServerPause {
			who = "the server"
		}
		if p.Kind == ServerPause || p.Kind == ReplicaPause {
			own = append(own, p)
		}
	}
	text := fmt.Sprintf("%s stood still %s for %s", who, howOften(ps.Pauses), Duration(ps.MedianMillis))
	if ps.LongestMillis > 1.1*ps.MedianMillis {
		text += fmt.Sprintf(" (longest %s)", Duration(ps.LongestMillis))
	}
	switch {
	case ps.EveryS > 0:
		text += fmt.Sprintf(", about every %s s", Brief(ps.EveryS))
	case len(own) <= mostTimes:
		var at []string
		for _, p := range own {
			at = append(at, Brief(p.AtS))
		}
		text += fmt.Sprintf(", at %s s", list(at))
	}
	return text
}

// howOften returns "once" or "3 times".
func howOften(n int) string {
	if n == 1 {
		return "once"
	}
	return Integer(n) + " times"
}

// explained says which of the slow requests waited in pauses.
func (ps *ServerPauses) explained(percent float64) string {
	share, slow := Brief(percent)+" %", Duration(ps.SlowMillis)
	if ps.P99Millis == nil || ps.P99Without == nil || *ps.P99Millis <= 1.1**ps.P99Without {
		return fmt.Sprintf("%s of requests with TTFT above %s waited in a pause of the server", share, slow)
	}
	return fmt.Sprintf("TTFT p99 is %s, and %s without requests in pauses, in which %s of those above %s waited",
		Duration(*ps.P99Millis), Duration(*ps.P99Without), share, slow)
}

// longestOf returns the length of the longest pause of a kind, in milliseconds.
func (ps *ServerPauses) longestOf(kind PauseKind) (longest float64) {
	for _, p := range ps.List {
		if p.Kind == kind {
			longest = max(longest, p.Millis)
		}
	}
	return longest
}

// slowShare is the share of slow requests, in percent, from which pauses are a cause worth naming.
const slowShare = 10

// pauseCures are the known cures of pauses, by the name of an engine.
var pauseCures = map[string]string{
	"sglang": "call its /freeze_gc after warm-up (Python's garbage collection; --gc-warning-threshold-secs logs it)",
}

// pauseRules name pauses. They never change the verdict, because the measurement is right.
var pauseRules = []Rule{
	{
		Code: "server-pauses", Unit: "pauses", Note: 0, Degraded: never, Invalid: never,
		Doc:       fmt.Sprintf("times of at least %v and %d median ITL in which streams of a server had work and none received a token, without time that prompts may have needed and stops of the client.", minPause, pauseSteps),
		Action:    "read its log",
		actionFor: func(s *Summary) string { return pauseCures[s.Config.Engine] },
		value: func(s *Summary) (float64, bool) {
			if s.Pauses == nil {
				return 0, false
			}
			return float64(s.Pauses.Pauses), true
		},
		text: func(s *Summary, _ float64) string { return s.Pauses.text() },
	},
	{
		Code: "slow-in-pauses", Unit: "%", Note: slowShare, Degraded: never, Invalid: never,
		Doc:    "requests that waited for the first token in a pause of the server, of those whose TTFT is more than half a pause above the median",
		Action: "cure the pauses",
		value: func(s *Summary) (float64, bool) {
			if s.Pauses == nil || s.Pauses.Pauses == 0 {
				return 0, false
			}
			share, ok := ratio(s.Pauses.SlowInPauses, s.Pauses.Slow)
			return 100 * share, ok
		},
		text: func(s *Summary, v float64) string { return s.Pauses.explained(v) },
	},
	{
		Code: "held-tokens", Unit: "pauses", Note: 0, Degraded: never, Invalid: never,
		Doc:    fmt.Sprintf("such times after which most streams received %d tokens or more together: something held them", lumpAfterGap),
		Action: "check the network and the proxies",
		value: func(s *Summary) (float64, bool) {
			if s.Pauses == nil {
				return 0, false
			}
			return float64(s.Pauses.Held), true
		},
		text: func(s *Summary, v float64) string {
			return fmt.Sprintf("tokens of all streams were held on the way (%s, for up to %s) and arrived together", howOften(int(v)), Duration(s.Pauses.longestOf(HeldPause)))
		},
	},
}
