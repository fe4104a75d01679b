package metric

import (
	"fmt"
	"math"
	"time"

	"tacho"
	"tacho/stat"
)

// A Backlog is how many requests were due and not over, at three moments of a
// fixed rate: when those in flight should have come to a balance, at the last
// due time, and midway. A server that keeps up has about as many at all of them.
// Latencies do not tell: those of the last requests shrink again, for nothing
// comes after them.
type Backlog struct {
	SettledS float64 `json:"settled_s"` // when nearly all of the first tenth of the requests were over
	FromS    float64 `json:"from_s"`
	ToS      float64 `json:"to_s"`
	Early    int     `json:"early"`
	Mid      int     `json:"mid"`
	Late     int     `json:"late"`
	Due      int     `json:"due"` // requests that became due between the first moment and the last
}

const (
	backlogMin   = 30  // requests, below which no growth is more than chance
	backlogSigma = 2.5 // how far the server must be behind, in standard deviations of a Poisson count
)

// backlog is nil where there is no fixed rate, or too little of it to say.
func (a *Accumulator) backlog(c Config) *Backlog {
	all, dues := a.marks, a.dues
	if c.RequestRate <= 0 || dues.n < backlogMin {
		return nil
	}
	settled := balance(all, dues)
	from, to := max(dues.first+dues.length()/3, settled), dues.last
	mid := from + (to-from)/2
	b := &Backlog{SettledS: settled.Seconds(), FromS: from.Seconds(), ToS: to.Seconds()}
	for i := range all {
		m := &all[i]
		for _, at := range []struct {
			moment time.Duration
			count  *int
		}{{from, &b.Early}, {mid, &b.Mid}, {to, &b.Late}} {
			if m.due <= at.moment && m.end > at.moment {
				*at.count++
			}
		}
		if m.due > from && m.due <= to {
			b.Due++
		}
	}
	for _, n := range []*int{&b.Early, &b.Mid, &b.Late, &b.Due} {
		*n *= a.thinned.of()
	}
	return b
}

// balance is when a server that keeps up has as many requests in flight as it
// will have: when nearly all of the first tenth are over.
func balance(all []marks, dues span) time.Duration {
	var ends []float64
	for i := range all {
		if m := &all[i]; m.due <= dues.first+dues.length()/10 {
			ends = append(ends, float64(m.end))
		}
	}
	return time.Duration(stat.New(ends).Quantile(0.9))
}

// growth is the part of the requests by which the server fell behind; false
// where that may be chance.
func (b *Backlog) growth() (float64, bool) {
	if b == nil || b.Due < backlogMin {
		return 0, false
	}
	sigma := math.Sqrt(float64(b.Due))
	steady := float64(min(b.Mid-b.Early, b.Late-b.Mid)) > sigma/2 // in both halves
	if !steady || float64(b.Late-b.Early) < backlogSigma*sigma {
		return 0, false
	}
	return ratio(b.Late-b.Early, b.Due)
}

// QueueGrowth is the code of the rule that asks whether a server kept up.
const QueueGrowth = "queue-growth"

// A CacheUse is what the server says of the prompts that begin a session: later
// turns repeat what was said, and are found in its cache by design.
type CacheUse struct {
	Prompt int  `json:"prompt"` // tokens, as the server counts
	Cached int  `json:"cached"` // of Prompt
	Turns  bool `json:"turns,omitempty"`
}

func (c *CacheUse) add(r *tacho.Record) {
	c.Turns = c.Turns || r.Turn > 0
	if r.Turn == 0 && r.OK() && r.Usage != nil {
		c.Prompt += r.Usage.Prompt
		c.Cached += r.Usage.Cached
	}
}

func (c *CacheUse) merge(o *CacheUse) {
	c.Prompt, c.Cached, c.Turns = c.Prompt+o.Prompt, c.Cached+o.Cached, c.Turns || o.Turns
}

// foundShare is the part of the prompt tokens that the server found in a cache:
// by its answers, or else by its metrics page, which cannot tell turns apart
// and counts a preempted request twice.
func foundShare(s *Summary) (float64, bool) {
	if s.Cache.Cached > 0 {
		return ratio(s.Cache.Cached, s.Cache.Prompt)
	}
	share, told := 0.0, false
	for _, in := range s.Instruments {
		if in.PrefixHitShare != nil && !s.Cache.Turns && (in.Preemptions == nil || *in.Preemptions == 0) {
			share, told = max(share, *in.PrefixHitShare), true
		}
	}
	return share, told
}

// surplusFound is what was found beyond what the prompts share among themselves
// and what a chat template puts before each.
func surplusFound(s *Summary) (float64, bool) {
	found, told := foundShare(s)
	if !told || s.Config.SharedShare == nil {
		return 0, false
	}
	frame, _ := ratio(max(s.Tokens.Prompt.Served-s.Tokens.Prompt.Asked, 0), s.Tokens.Prompt.Served)
	return max(found-*s.Config.SharedShare-frame, 0), true
}

// spread is the time over which a burst left, in milliseconds: up to the 99th
// percentile, for a straggler is no stream. It is nil of any other load.
func spread(c Config, all []marks, requests int) *float64 {
	if c.RequestRate > 0 || c.MaxConcurrency > 0 && requests > c.MaxConcurrency {
		return nil
	}
	var sents []float64
	for i := range all {
		m := &all[i]
		together := m.due == all[0].due || c.MaxConcurrency > 0 && m.due == m.slot // due when its slot is free
		if m.turn > 0 || !together {
			return nil
		}
		if m.sent != tacho.Never {
			sents = append(sents, millis(m.sent))
		}
	}
	if len(sents) < 2 {
		return nil
	}
	sample := stat.New(sents)
	ms := sample.Quantile(0.99) - sample.Min()
	return &ms
}

// frontEnd is how many times the mean time per token that the server's engine
// has is in ours.
func frontEnd(s *Summary) (theirs, ours float64) {
	for i := range s.Instruments {
		in := &s.Instruments[i]
		stats := s.At(in.Target, TPOT).Stats
		if in.TPOTMillis == nil || stats == nil || *in.TPOTMillis <= 0 {
			continue
		}
		if theirs == 0 || stats.Mean / *in.TPOTMillis > ours/theirs {
			theirs, ours = *in.TPOTMillis, stats.Mean
		}
	}
	return theirs, ours
}

// loadRules ask whether the server was under the load that the plan says.
var loadRules = []Rule{
	{
		Code: "burst-spread", Unit: "share", Note: never, Degraded: 0.10, Invalid: 1,
		Doc: "for a load that is due all at once: time in which 99 % of the requests left / median TTFT: the server got a stream of requests, not a burst, and batched it otherwise. Above 1 it had answered before the last left",
		Do:  "give the client more CPU, or send fewer at once",
		value: func(s *Summary) (float64, bool) {
			first := s.Dist(TTFT).Stats
			if first == nil {
				first = s.Dist(E2EL).Stats
			}
			if s.SpreadMillis == nil || first == nil || first.Median <= 0 {
				return 0, false
			}
			return *s.SpreadMillis / first.Median, true
		},
		inWords: func(s *Summary, v float64) string {
			return fmt.Sprintf("requests that were due at once left over %.1f ms, %s of the median time to the first token", *s.SpreadMillis, percent(v))
		},
	},
	{
		Code: "cache", Unit: "share", Note: 0.01, Degraded: 0.05, Invalid: never,
		Doc:   "prompt tokens that the server found in a cache, less those that prompts of this level share with each other / prompt tokens: it had seen these prompts before, and new ones take longer",
		Do:    "use another --seed or other data, or empty the cache before each level (--flush-cache, or restart the server)",
		value: surplusFound,
		inWords: func(s *Summary, _ float64) string {
			found, _ := foundShare(s)
			return fmt.Sprintf("the server found %s of the prompt tokens in a cache where prompts of this load share %s", percent(found), percent(*s.Config.SharedShare))
		},
	},
	{
		Code: QueueGrowth, Unit: "share", Note: never, Degraded: 0.05, Invalid: never,
		Doc:   fmt.Sprintf("at a fixed rate: growth of the number of requests that are due and not over / requests that became due meanwhile. It is counted from when that number should be steady (after a third of the schedule, when nearly all of the first tenth are over) to the last due time, if it grew in both halves and by more than %g standard deviations of a Poisson count", backlogSigma),
		Do:    "lower --request-rate until the number in flight holds, or read the throughput alone",
		value: func(s *Summary) (float64, bool) { return s.Backlog.growth() },
		inWords: func(s *Summary, _ float64) string {
			b := s.Backlog
			return fmt.Sprintf("the server did not keep up, and these latencies grow with the length of the run: %d requests waited for their end at %.1f s and %d at %.1f s", b.Early, b.FromS, b.Late, b.ToS)
		},
	},
	{
		Code: "unsettled", Unit: "times", Note: 1, Degraded: 1.5, Invalid: never,
		Doc: "at a fixed rate: time until nearly all of the first tenth of the requests were over / last due time. Above 1, the number in flight was still growing when the last request was due: requests are long, or the server cannot keep up",
		Do:  "keep this rate up for several times as long (--num-prompts, --max-seconds), or lower it",
		value: func(s *Summary) (float64, bool) {
			if s.Backlog == nil || s.Backlog.ToS <= 0 {
				return 0, false
			}
			return s.Backlog.SettledS / s.Backlog.ToS, true
		},
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the first requests were over at %.1f s and the last was due at %.1f s, so latencies depend on the length of the run", s.Backlog.SettledS, s.Backlog.ToS)
		},
	},
	unbuffered(Rule{
		Code: "front-end", Unit: "times", Note: 1.5, Degraded: never, Invalid: never,
		Doc: "our mean TPOT / mean time per token on the server's metrics page: tokens that its engine had ready left the server later",
		Do:  "give the server more front-end processes or cores (vLLM: --api-server-count), and see that nothing between holds tokens back",
		value: func(s *Summary) (float64, bool) {
			theirs, ours := frontEnd(s)
			return ours / max(theirs, math.SmallestNonzeroFloat64), theirs > 0
		},
		inWords: func(s *Summary, _ float64) string {
			theirs, ours := frontEnd(s)
			return fmt.Sprintf("the server says %.1f ms a token where %.1f ms arrive, so its front end, not its engine, is the limit", theirs, ours)
		},
	}),
}
