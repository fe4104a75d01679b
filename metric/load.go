package metric

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// A Backlog counts unfinished requests (due and not finished) at three times of a run with a fixed
// rate: when their number should be steady, at the last due time, and midway. If the server keeps up,
// the three numbers are about equal. Latencies do not show this, because the last requests are faster
// again: nothing comes after them.
type Backlog struct {
	SettledS float64 `json:"settled_s"` // when nearly all of the first tenth of the requests had finished
	FromS    float64 `json:"from_s"`
	ToS      float64 `json:"to_s"`
	Early    int     `json:"early"`
	Mid      int     `json:"mid"`
	Late     int     `json:"late"`
	Due      int     `json:"due"` // requests due between FromS and ToS
}

const (
	backlogMin   = 30  // requests; with fewer, growth is indistinguishable from random variation
	backlogSigma = 2.5 // growth above which the server fell behind, in standard deviations of a Poisson count
)

// backlog returns nil if there is no fixed rate or too few requests.
func (a *Accumulator) backlog(c Config) *Backlog {
	all, dues := a.marks, a.dues
	if c.RequestRate <= 0 || dues.n < backlogMin {
		return nil
	}
	settled := settleTime(all, dues)
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
		*n *= a.sampling.weight()
	}
	return b
}

// settleTime returns when the number of requests in flight should be steady if the server keeps up:
// when nearly all of the first tenth have finished.
func settleTime(all []marks, dues span) time.Duration {
	var ends []float64
	for i := range all {
		if m := &all[i]; m.due <= dues.first+dues.length()/10 {
			ends = append(ends, float64(m.end))
		}
	}
	return time.Duration(stat.New(ends).Quantile(0.9))
}

// growth returns the growth of the backlog as a share of the requests. It returns false if random
// variation can explain the growth.
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

// QueueGrowth is the code of the rule that checks if a server kept up.
const QueueGrowth = "queue-growth"

// SlowStart is the code of the rule about first requests that are slower than the others.
const SlowStart = "slow-start"

// CacheUse holds the server's cache counts for the first prompts of sessions. Later turns repeat the
// conversation and are in the cache by design.
type CacheUse struct {
	Prompt int  `json:"prompt"` // tokens counted by the server
	Cached int  `json:"cached"` // part of Prompt
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

// foundShare returns the share of prompt tokens found in the server's cache, as reported in the
// answers. If the answers report nothing, foundShare uses the metrics page, which does not distinguish
// turns and counts a preempted request twice.
func foundShare(s *Summary) (float64, bool) {
	if s.Cache.Cached > 0 {
		return ratio(s.Cache.Cached, s.Cache.Prompt)
	}
	share, known := 0.0, false
	for _, in := range s.Instruments {
		if in.PrefixHitShare != nil && !s.Cache.Turns && (in.Preemptions == nil || *in.Preemptions == 0) {
			share, known = max(share, *in.PrefixHitShare), true
		}
	}
	return share, known
}

// surplusFound returns the share found in the cache beyond the prefixes that prompts share with each
// other and the chat template.
func surplusFound(s *Summary) (float64, bool) {
	found, known := foundShare(s)
	if !known || s.Config.SharedShare == nil {
		return 0, false
	}
	frame, _ := ratio(max(s.Tokens.Prompt.Served-s.Tokens.Prompt.Asked, 0), s.Tokens.Prompt.Served)
	return max(found-*s.Config.SharedShare-frame, 0), true
}

// spread returns the time in which a burst was sent, in milliseconds, up to the 99th percentile, so
// that one late request does not count. It is nil for any other load.
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

// frontEnd returns the time per token on the server's metrics page and our own mean TPOT, for the
// server with the largest ratio.
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

// loadRules check if the server was under the planned load.
var loadRules = []Rule{
	{
		Code: "corrupted", Unit: "requests", Note: never, Degraded: 0, Invalid: never,
		Doc:    "requests whose logits contained NaN, by the server's metrics page (vLLM with VLLM_COMPUTE_NANS_IN_LOGITS=1). Their answers are wrong",
		Action: "check model, quantization and driver, and measure again",
		value: func(s *Summary) (float64, bool) {
			sum, known := 0.0, false
			for i := range s.Instruments {
				if n := s.Instruments[i].Corrupted; n != nil {
					sum, known = sum+*n, true
				}
			}
			return sum, known
		},
		text: func(_ *Summary, v float64) string {
			return Brief(v) + " requests had NaN in their logits, so their answers are wrong"
		},
	},
	{
		Code: "burst-spread", Unit: "share", Note: never, Degraded: 0.10, Invalid: 1,
		Doc:    "for a burst: time to send 99 % of the requests / median TTFT. The server received a stream of requests instead of a burst and batched them differently",
		Action: "give the client more CPU or send fewer requests",
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
		text: func(s *Summary, v float64) string {
			m := TTFT
			if s.Dist(m).Stats == nil {
				m = E2EL
			}
			return fmt.Sprintf("sending the burst took %s, %s of the median %s", Duration(*s.SpreadMillis), Percent(v), strings.ToUpper(m.Name))
		},
	},
	{
		Code: "cache", Unit: "share", Note: 0.01, Degraded: 0.05, Invalid: never,
		Doc:    "prompt tokens found in the server's cache, beyond the prefixes shared by prompts of this level / prompt tokens. New prompts take longer",
		Action: "use another --seed or --flush-cache",
		value:  surplusFound,
		text: func(s *Summary, _ float64) string {
			found, _ := foundShare(s)
			return fmt.Sprintf("the server found %s of the prompt tokens in its cache, but the prompts share only %s", Percent(found), Percent(*s.Config.SharedShare))
		},
	},
	{
		Code: QueueGrowth, Unit: "share", Note: never, Degraded: 0.05, Invalid: never,
		Doc:    fmt.Sprintf("at a fixed rate: growth of the number of unfinished requests (due and not finished) / requests due in the meantime, from a third of the schedule (and the end of nearly all of the first tenth) to the last due time. The growth counts if it occurs in both halves and exceeds %g standard deviations of a Poisson count. Latencies then grow with the length of the run", backlogSigma),
		Action: "lower --request-rate, or read the throughput alone",
		value:  func(s *Summary) (float64, bool) { return s.Backlog.growth() },
		text: func(s *Summary, _ float64) string {
			b := s.Backlog
			return fmt.Sprintf("the server did not keep up (%d unfinished requests at %s s, %d at %s s)", b.Early, Brief(b.FromS), b.Late, Brief(b.ToS))
		},
	},
	{
		Code: "unsettled", Unit: "times", Note: 1, Degraded: 1.5, Invalid: never, atEnd: true,
		Doc:    "at a fixed rate: time until nearly all of the first tenth of the requests have finished / last due time. Above 1, the number in flight was still growing: requests are long, or the server cannot keep up",
		Action: "send for longer (--num-prompts, --max-seconds)",
		value: func(s *Summary) (float64, bool) {
			if s.Backlog == nil || s.Backlog.ToS <= 0 {
				return 0, false
			}
			return s.Backlog.SettledS / s.Backlog.ToS, true
		},
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("requests take %s s but the run only sent for %s s, so latencies depend on its length", Brief(s.Backlog.SettledS), Brief(s.Backlog.ToS))
		},
	},
	{
		Code: "latency-trend", Unit: "share", Note: trendShare, Degraded: never, Invalid: never, atEnd: true,
		Doc:    "significant change of mean E2EL from the first to the last third of the steady part",
		Action: "run longer, or find the cause",
		value: func(s *Summary) (float64, bool) {
			if s.Steady == nil || s.Steady.Trend == nil {
				return 0, false
			}
			return s.Steady.Trend.share(), true
		},
		text: func(s *Summary, v float64) string {
			t, word := s.Steady.Trend, "rose"
			if t.LastMillis < t.FirstMillis {
				word = "fell"
			}
			return fmt.Sprintf("latencies %s by %s during the run (mean E2EL %s, then %s)", word, Percent(v), Duration(t.FirstMillis), Duration(t.LastMillis))
		},
	},
	{
		Code: SlowStart, Unit: "share", Note: 0.05, Degraded: never, Invalid: never, atEnd: true,
		Doc:    "excess of the first requests over the mean of the others / sum of all, in TTFT or E2EL",
		Action: "leave them out with --num-warmups",
		value: func(s *Summary) (float64, bool) {
			if s.Steady == nil || s.Steady.WarmUp == nil {
				return 0, false
			}
			return s.Steady.WarmUp.Excess, true
		},
		text: func(s *Summary, _ float64) string {
			return s.Steady.WarmUp.Text()
		},
	},
	unbuffered(Rule{
		Code: "front-end", Unit: "times", Note: 1.5, Degraded: never, Invalid: never,
		Doc:    "our mean TPOT / mean time per token on the server's metrics page. Tokens leave the server later than its engine produces them",
		Action: "give its front end more processes or cores (vLLM --api-server-count)",
		value: func(s *Summary) (float64, bool) {
			theirs, ours := frontEnd(s)
			return ours / max(theirs, math.SmallestNonzeroFloat64), theirs > 0
		},
		text: func(s *Summary, _ float64) string {
			theirs, ours := frontEnd(s)
			return fmt.Sprintf("the server reports %s per token, but tokens arrive every %s", Duration(theirs), Duration(ours))
		},
	}),
}
