package metric_test

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// healthy returns a summary with the verdict VALID and no reasons.
func healthy() *metric.Summary {
	scheduled, achieved := 10.0, 10.0
	s := &metric.Summary{
		Config: metric.DefaultConfig(),
		Counts: metric.Counts{Requests: 1000, Completed: 1000, DurationS: 100, Events: 100_000},
		Tokens: metric.Tokens{
			InputByServer: 1000, Exact: 1000, Output: 1000,
			Prompt:   metric.PromptCheck{Requests: 1000, Asked: 100_000, Served: 100_000},
			OutputBy: []metric.CountedBy{{Source: tacho.FromUsage, Requests: 1000}},
		},
		Rate:  &metric.Rate{ScheduledPerS: &scheduled, AchievedPerS: &achieved, SpanS: 100},
		Drift: &metric.Drift{FirstTenthMillis: 1, LastTenthMillis: 1},
		Clock: metric.ClockUse{Kernel: 1000, Name: "kernel"},
	}
	for _, m := range metric.All {
		s.Dists = append(s.Dists, metric.Dist{Name: m.Name, Unit: m.Unit, N: 1000, Stats: &metric.Stats{
			Percentiles: []metric.Percentile{{P: 50, Value: 0.1}, {P: 99, Value: 0.5}},
		}})
	}
	return s
}

func setPercentile(s *metric.Summary, m *metric.Metric, p, value float64) {
	for i, v := range s.Dist(m).Stats.Percentiles {
		if v.P == p {
			s.Dist(m).Stats.Percentiles[i].Value = value
		}
	}
}

// coalesce makes half of the token events coalesced. Gaps are off by off, and p99 ITL is itl.
func coalesce(s *metric.Summary, off, itl float64) {
	s.CoalescedEvents, s.ITLSlackMillis = s.Events/2, off
	setPercentile(s, metric.ITL, 99, itl)
}

func setBound(s *metric.Summary, m *metric.Metric, low, high float64) {
	for i, v := range s.Dist(m).Stats.Percentiles {
		if v.P == 99 {
			s.Dist(m).Stats.Percentiles[i].Bound = &metric.Bound{Low: low, High: high}
		}
	}
}

// uncertainTTFT sets p99 TTFT to 200 ms and its error to off.
func uncertainTTFT(s *metric.Summary, off float64) {
	setPercentile(s, metric.TTFT, 99, 200)
	s.TTFTSlackMillis = off
}

func setSamples(s *metric.Summary, m *metric.Metric, n int) {
	for i := range s.Dists {
		if s.Dists[i].Name == m.Name {
			s.Dists[i].N = n
		}
	}
}

func client(s *metric.Summary) *metric.Client {
	s.Config.Client = &metric.Client{}
	return s.Config.Client
}

// standStill pauses a client with read timestamps.
func standStill(s *metric.Summary, seconds float64) {
	s.Rate.ScheduledPerS = nil
	s.Clock = metric.ClockUse{Read: 1000, Name: "read"}
	client(s).Pauses.TotalS = seconds
}

func medianTTFT(s *metric.Summary, ms float64) { s.Dist(metric.TTFT).Stats.Median = ms }

// Each case breaks one thing. want lists all expected reasons.
var verdictCases = []struct {
	name string
	harm func(*metric.Summary)
	want string // "code LEVEL", or empty
}{
	{"healthy", func(*metric.Summary) {}, ""},
	{"no success", func(s *metric.Summary) { s.Completed = 0 }, "no-success INVALID"},
	{"one failure", func(s *metric.Summary) { s.Failed = 1 }, "failures DEGRADED"},
	{"half failed", func(s *metric.Summary) { s.Failed = 1000 }, "failures DEGRADED"},
	{"more than half failed", func(s *metric.Summary) { s.Failed = 1001 }, "failures INVALID"},
	{"the server stands still", func(s *metric.Summary) {
		s.Pauses = &metric.ServerPauses{
			Pauses: 12, MedianMillis: 501, LongestMillis: 832, EveryS: 20.9, SlowMillis: 283, Slow: 8, SlowInPauses: 7,
			P99Millis: new(562.0), P99Without: new(167.0), List: []metric.Pause{{Kind: metric.ServerPause, Millis: 832}},
		}
	}, "server-pauses NOTE, slow-in-pauses NOTE"},
	{"pauses explain little", func(s *metric.Summary) {
		s.Pauses = &metric.ServerPauses{Pauses: 1, MedianMillis: 501, LongestMillis: 501, SlowMillis: 283, Slow: 30, SlowInPauses: 3}
	}, "server-pauses NOTE"},
	{"tokens are held", func(s *metric.Summary) {
		s.Pauses = &metric.ServerPauses{Held: 1, List: []metric.Pause{{Kind: metric.HeldPause, Millis: 312}}}
	}, "held-tokens NOTE"},
	{"latencies rise", func(s *metric.Summary) {
		s.Steady = &metric.SteadyState{Trend: &metric.Trend{FirstMillis: 1000, LastMillis: 1051}}
	}, "latency-trend NOTE"},
	{"latencies rise a little", func(s *metric.Summary) {
		s.Steady = &metric.SteadyState{Trend: &metric.Trend{FirstMillis: 1000, LastMillis: 1049}}
	}, ""},
	{"a slow start", func(s *metric.Summary) {
		s.Steady = &metric.SteadyState{WarmUp: &metric.WarmUp{Metric: "ttft", Requests: 1000, FirstMillis: 1234, RestMillis: 1111, Excess: 0.051}}
	}, "slow-start NOTE"},
	{"a fast start", func(s *metric.Summary) { s.Steady = &metric.SteadyState{WarmUp: &metric.WarmUp{Excess: -0.5}} }, ""},
	{"a NaN in the logits", func(s *metric.Summary) { s.Instruments = []metric.Instruments{{Corrupted: new(3.0)}} }, "corrupted DEGRADED"},
	{"no NaN in the logits", func(s *metric.Summary) { s.Instruments = []metric.Instruments{{Corrupted: new(0.0)}} }, ""},
	{"an engine slept", paged(metric.PageAsleep, 0.1), "asleep DEGRADED"},
	{"requests were paused", paged(metric.PagePaused, 2), "paused DEGRADED"},
	{"a cache was too small for shared prefixes", func(s *metric.Summary) {
		paged(metric.PageEvicted, 512)(s)
		s.Config.SharedShare = new(0.5)
	}, "evicted NOTE"},
	{"a cache without shared prefixes", func(s *metric.Summary) {
		paged(metric.PageEvicted, 512)(s)
		s.Config.SharedShare = new(0.0)
	}, ""},
	{"requests waited for a transfer", paged(metric.PageWaitingDeferred, 3), "deferred NOTE"},
	{"requests waited for a grammar", paged(metric.PageWaitingGrammar, 3), "deferred NOTE"},
	{"requests waited for capacity", paged(metric.PageWaitingCapacity, 3), ""},
	{"tokens from the host's memory", paged(metric.PageCachedHost, 0.38), "cache-tier NOTE"},
	{"images that repeat", paged(metric.PageMediaHits, 0.38), "media-cache NOTE"},
	{"canceled requests are no failures", func(s *metric.Summary) { s.Canceled = 7 }, ""},
	{"ended by the user after the last request", func(s *metric.Summary) { s.Config.EndedEarlyS, s.Config.Planned, s.Begun = 9, 1000, 1000 }, "ended-early NOTE"},
	{"ended by the user", func(s *metric.Summary) { s.Config.EndedEarlyS, s.Config.Planned, s.Begun = 9, 2000, 1000 }, "ended-early DEGRADED"},
	{"a turn never sent", func(s *metric.Summary) {
		s.Begun, s.Sessions = 500, &metric.Sessions{Begun: 500, Unsent: 1, Refused: 1}
	}, "turns DEGRADED"},
	{"one of 2000 not received", func(s *metric.Summary) { s.Config.Agents = []metric.Agent{{NotReceived: 1}} }, "not-received DEGRADED"},
	{"more than 5 % not received", func(s *metric.Summary) { s.Requests, s.Config.Agents = 1900, []metric.Agent{{NotReceived: 101}} }, "not-received INVALID"},
	{"one of 2000 never sent", func(s *metric.Summary) { s.Config.Unsent = 1 }, "unsent DEGRADED"},
	{"5 % never sent", func(s *metric.Summary) { s.Requests, s.Config.Unsent = 1900, 100 }, "unsent DEGRADED"},
	{"more than 5 % never sent", func(s *metric.Summary) { s.Requests, s.Config.Unsent = 1900, 101 }, "unsent INVALID"},
	{"interrupted", func(s *metric.Summary) { s.Config.Interrupted = true }, "interrupted DEGRADED"},
	{"median lag 5 ms", func(s *metric.Summary) { setPercentile(s, metric.Lag, 50, 5) }, ""},
	{"median lag 6 ms", func(s *metric.Summary) { setPercentile(s, metric.Lag, 50, 6) }, "lag-median DEGRADED"},
	{"median lag 500 ms", func(s *metric.Summary) { setPercentile(s, metric.Lag, 50, 500) }, "lag-median DEGRADED"},
	{"median lag 501 ms", func(s *metric.Summary) { setPercentile(s, metric.Lag, 50, 501) }, "lag-median INVALID"},
	{"p99 lag 51 ms", func(s *metric.Summary) { setPercentile(s, metric.Lag, 99, 51) }, "lag-p99 DEGRADED"},
	{"p99 lag 5 s", func(s *metric.Summary) { setPercentile(s, metric.Lag, 99, 5000) }, "lag-p99 DEGRADED"},
	{"waiting for the limit is no lag", func(s *metric.Summary) {
		s.LimitBound = true
		setPercentile(s, metric.Lag, 50, 1000)
	}, ""},
	{"sending late once the limit allows is", func(s *metric.Summary) {
		s.LimitBound = true
		setPercentile(s, metric.SendLag, 50, 6)
	}, "lag-median DEGRADED"},
	{"nothing is late when all is due at once", func(s *metric.Summary) {
		s.Rate.ScheduledPerS = nil
		setPercentile(s, metric.Lag, 50, 1000)
		s.Drift.LastTenthMillis = 1000
	}, ""},
	{"drift", func(s *metric.Summary) { s.Drift.LastTenthMillis = 60 }, "drift DEGRADED"},
	{"strong drift", func(s *metric.Summary) { s.Drift.LastTenthMillis = 600 }, "drift DEGRADED"},
	{"catching up is no drift", func(s *metric.Summary) { s.Drift.FirstTenthMillis = 600 }, ""},
	{"rate 1 % off", func(s *metric.Summary) { *s.Rate.AchievedPerS = 9.9 }, ""},
	{"rate 3 % off", func(s *metric.Summary) { *s.Rate.AchievedPerS = 9.7 }, "rate DEGRADED"},
	{"rate 11 % too high", func(s *metric.Summary) { *s.Rate.AchievedPerS = 11.1 }, "rate INVALID"},
	{"rate off where the limit bound", func(s *metric.Summary) { *s.Rate.AchievedPerS, s.LimitBound = 5, true }, ""},
	{"rate of a short run", func(s *metric.Summary) { *s.Rate.AchievedPerS, s.Rate.SpanS = 9, 0.5 }, ""},
	{"a rate held back", func(s *metric.Summary) { s.Config.RequestRate, s.LimitBound = 10, true }, "limit-bound NOTE"},
	{"few events coalesced", func(s *metric.Summary) { s.CoalescedEvents = 900 }, ""},
	{"events coalesced by a prompt reader", func(s *metric.Summary) { coalesce(s, 1, 75) }, "coalesced NOTE"},
	{"events coalesced by a slow reader", func(s *metric.Summary) { coalesce(s, 2, 75) }, "coalesced DEGRADED"},
	{"events coalesced by a late reader", func(s *metric.Summary) { coalesce(s, 40, 75) }, "coalesced DEGRADED"},
	{"gaps by the bound of their p99", func(s *metric.Summary) {
		coalesce(s, 1, 75)
		setBound(s, metric.ITL, 73, 75)
	}, "coalesced DEGRADED"},
	{"a reader that was late by a gap", func(s *metric.Summary) {
		coalesce(s, 70, 75)
		setBound(s, metric.ITL, 5, 75)
		exact := 36.0
		s.ExactGapMillis = &exact
	}, "late-reads DEGRADED"},
	{"a reader that was late by several gaps", func(s *metric.Summary) {
		coalesce(s, 150, 200)
		setBound(s, metric.ITL, 50, 200)
		exact := 52.0
		s.ExactGapMillis = &exact
	}, "late-reads unusable"},
	{"first tokens within half a percent", func(s *metric.Summary) { uncertainTTFT(s, 1) }, ""},
	{"first tokens within 1 %", func(s *metric.Summary) { uncertainTTFT(s, 2) }, "ttft-bound NOTE"},
	{"first tokens within 3 %", func(s *metric.Summary) { uncertainTTFT(s, 6) }, "ttft-bound DEGRADED"},
	{"whole answers at once", func(s *metric.Summary) { coalesce(s, 1, 0) }, "coalesced DEGRADED"},
	{"the clock was moved once", func(s *metric.Summary) { s.Clock.Steps = 1 }, "clock-step DEGRADED"},
	{"the clock was moved much", func(s *metric.Summary) { s.Clock.Steps = 101 }, "clock-step INVALID"},
	{"read clock", func(s *metric.Summary) { s.Clock = metric.ClockUse{Read: 1000, Name: "read"} }, "read-clock NOTE"},
	{"a request that the kernel sent again", func(s *metric.Summary) { s.Network.Retransmitted = 1 }, "retransmits NOTE"},
	{"an answer out of order", func(s *metric.Summary) { s.Network.OutOfOrder = 1 }, "out-of-order NOTE"},
	{"a few delays as long as a delayed acknowledgement", func(s *metric.Summary) { s.Requests, s.Network.Stalls = 10, 4 }, ""},
	{"delayed acknowledgements", func(s *metric.Summary) { s.Network.Stalls, s.Network.Short = 101, 25 }, "nagle NOTE"},
	{"a few waits as if", func(s *metric.Summary) { s.Network.Stalls = 50 }, ""},
	{"steps as long as the delay", func(s *metric.Summary) { s.Network.Stalls, s.Network.Short = 500, 125 }, ""},
	{"wire clock", func(s *metric.Summary) { s.Clock = metric.ClockUse{Wire: 1000, WireTimes: 101_000, Name: "wire"} }, ""},
	{"wire clock that missed one", func(s *metric.Summary) {
		s.Clock = metric.ClockUse{Wire: 1000, WireTimes: 101_000, FellBack: 1, Name: "wire"}
	}, "wire-missed NOTE"},
	{"a second connection", func(s *metric.Summary) { s.RetriedConns = 1 }, "retried NOTE"},
	{"sent again", func(s *metric.Summary) { s.Resent = 1 }, "resent DEGRADED"},
	{"many second connections", func(s *metric.Summary) { s.RetriedConns = 51 }, "retried DEGRADED"},
	{"prompts off by 1 %", func(s *metric.Summary) { s.Tokens.Prompt.Off = 1000 }, "prompt-count NOTE"},
	{"prompts off by 3 %", func(s *metric.Summary) { s.Tokens.Prompt.Off = 3000 }, "prompt-count DEGRADED"},
	{"input estimated, but the server counted", func(s *metric.Summary) { s.Config.InputEstimated = true }, ""},
	{"input estimated", func(s *metric.Summary) { s.Config.InputEstimated, s.Tokens.InputByWorkload = true, 1 }, "input-estimated DEGRADED"},
	{"an output too short", func(s *metric.Summary) { s.Tokens.Short = 1 }, "output-count NOTE"},
	{"outputs too short and too long", func(s *metric.Summary) { s.Tokens.Short, s.Tokens.Long = 6, 6 }, "output-count DEGRADED"},
	{"more events than tokens, once", func(s *metric.Summary) { s.Tokens.MoreEvents, s.Tokens.SurplusEvents = 1, 1 }, "more-events NOTE"},
	{"more events than tokens", func(s *metric.Summary) { s.Tokens.MoreEvents, s.Tokens.SurplusEvents = 1, 11 }, "more-events DEGRADED"},
	{"several tokens an event", func(s *metric.Summary) { s.Dist(metric.TokensPerEvent).Stats.Mean = 1.63 }, "tokens-per-event NOTE"},
	{"hardly ever several tokens an event", func(s *metric.Summary) { s.Dist(metric.TokensPerEvent).Stats.Mean = 1.01 }, ""},
	{"sums beyond all reason", func(s *metric.Summary) { s.Tokens.Saturated = true }, "token-sums INVALID"},
	{"output counted by events", func(s *metric.Summary) {
		s.Tokens.OutputBy = append(s.Tokens.OutputBy, metric.CountedBy{Source: tacho.FromEvents, Requests: 11})
	}, "output-by-events DEGRADED"},
	{"broken answers", func(s *metric.Summary) {
		s.Config.Answers = &metric.Answers{Checked: 400, Flagged: 38, Findings: []metric.AnswerFinding{{Kind: "in a loop", Count: 38}}}
	}, "answers-broken NOTE"},
	{"worse answers", func(s *metric.Summary) {
		s.Config.Answers = &metric.Answers{Checked: 400, Paired: &metric.PairedAnswers{
			Prompts: 400, Changed: 40, Floor: 4, Verdict: metric.WorseAnswer, Score: &metric.PairedScore{Loss: 0.04, Range: metric.Limits{Low: 0.02, High: 0.06}},
		}}
	}, "answers-worse NOTE"},
	{"too few samples for p99", func(s *metric.Summary) { setSamples(s, metric.TTFT, 367) }, "few-samples NOTE"},
	{"enough samples for p99", func(s *metric.Summary) { setSamples(s, metric.TTFT, 368) }, ""},
	{"too few samples of what nobody asked for", func(s *metric.Summary) { setSamples(s, metric.E2EL, 1) }, ""},
	{"a client that stood still", func(s *metric.Summary) { client(s).Pauses.LongestMillis = 251 }, "client-stall DEGRADED"},
	{"a client that stood still for long", func(s *metric.Summary) {
		client(s).Pauses = metric.Pauses{LongestMillis: 1001, TotalS: 1.001}
	}, "client-stall INVALID"},
	{"a client that stood still for long in a longer run", func(s *metric.Summary) {
		s.DurationS = 200
		client(s).Pauses = metric.Pauses{LongestMillis: 1001, TotalS: 1.001}
	}, "client-stall DEGRADED"},
	{"a client that stood still when all was sent", func(s *metric.Summary) {
		s.Rate.ScheduledPerS = nil
		client(s).Pauses = metric.Pauses{LongestMillis: 1001, TotalS: 10.1}
	}, "client-stall DEGRADED"},
	{"a client that stood still between turns", func(s *metric.Summary) {
		s.Rate.ScheduledPerS, s.Sessions = nil, &metric.Sessions{}
		client(s).Pauses = metric.Pauses{LongestMillis: 1001, TotalS: 1.001}
	}, "client-stall INVALID"},
	{"a client that often stood still", func(s *metric.Summary) { client(s).Pauses.TotalS = 2.1 }, "client-stalled DEGRADED"},
	{"a client that stood still for half of the run", func(s *metric.Summary) { client(s).Pauses.TotalS = 50 }, "client-stalled DEGRADED"},
	{"a client that mostly stood still", func(s *metric.Summary) { client(s).Pauses.TotalS = 50.1 }, "client-stalled INVALID"},
	{"a client that stood still before it read", func(s *metric.Summary) { standStill(s, 2.1) }, "read-clock NOTE, stalled-reads DEGRADED"},
	{"a client that often stood still before it read", func(s *metric.Summary) { standStill(s, 10.1) }, "read-clock NOTE, stalled-reads INVALID"},
	{"a busy client", func(s *metric.Summary) { client(s).BusyShare = 0.9 }, "client-cpu DEGRADED"},
	{"some time stolen", func(s *metric.Summary) { client(s).StolenShare = 0.05 }, "client-steal NOTE"},
	{"much time stolen", func(s *metric.Summary) { client(s).StolenShare = 0.2 }, "client-steal DEGRADED"},
	{"waiting for a processor", func(s *metric.Summary) { client(s).WakeMillis = 30 }, "client-scheduling NOTE"},
	{"waiting long for a processor", func(s *metric.Summary) { client(s).WakeMillis = 300 }, "client-scheduling DEGRADED"},
	{"collecting garbage", func(s *metric.Summary) { client(s).GCMillis = 20 }, "client-gc NOTE"},
	{"collecting garbage for long", func(s *metric.Summary) { client(s).GCMillis = 200 }, "client-gc DEGRADED"},
	{"a burst over 11 % of the first token", func(s *metric.Summary) { s.SpreadMillis = new(float64(11)); medianTTFT(s, 100) }, "burst-spread DEGRADED"},
	{"a burst until the first token", func(s *metric.Summary) { s.SpreadMillis = new(float64(100)); medianTTFT(s, 100) }, "burst-spread DEGRADED"},
	{"a burst beyond the first token", func(s *metric.Summary) { s.SpreadMillis = new(float64(101)); medianTTFT(s, 100) }, "burst-spread INVALID"},
	{"2 % found in a cache", func(s *metric.Summary) {
		s.Config.SharedShare, s.Cache = new(float64(0)), metric.CacheUse{Prompt: 100, Cached: 2}
	}, "cache NOTE"},
	{"30 % found in a cache", func(s *metric.Summary) {
		s.Config.SharedShare, s.Cache = new(float64(0)), metric.CacheUse{Prompt: 100, Cached: 30}
	}, "cache DEGRADED"},
	{"the chat template found in a cache", func(s *metric.Summary) {
		s.Config.SharedShare, s.Cache, s.Tokens.Prompt.Served = new(float64(0)), metric.CacheUse{Prompt: 150, Cached: 50}, 150_000
	}, ""},
	{"a queue that grows", func(s *metric.Summary) {
		s.Backlog = &metric.Backlog{Early: 10, Mid: 60, Late: 110, Due: 1000, ToS: 10}
	}, "queue-growth DEGRADED"},
	{"a queue that grows by chance", func(s *metric.Summary) { s.Backlog = &metric.Backlog{Early: 10, Mid: 45, Late: 85, Due: 1000} }, ""},
	{"a queue that grew once", func(s *metric.Summary) { s.Backlog = &metric.Backlog{Early: 10, Mid: 110, Late: 110, Due: 1000} }, ""},
	{"long requests at a short rate", func(s *metric.Summary) { s.Backlog = &metric.Backlog{SettledS: 11, ToS: 10} }, "unsettled NOTE"},
	{"overloaded from the start", func(s *metric.Summary) { s.Backlog = &metric.Backlog{SettledS: 16, ToS: 10} }, "unsettled DEGRADED"},
	{"tokens held back by the server's front end", func(s *metric.Summary) {
		s.Dist(metric.TPOT).Stats.Mean = 21.8
		s.Instruments = []metric.Instruments{{TPOTMillis: new(float64(20))}, {TPOTMillis: new(float64(11.4))}}
	}, "front-end NOTE"},
	{"tokens on their way", func(s *metric.Summary) {
		s.Dist(metric.TPOT).Stats.Mean = 14
		s.Instruments = []metric.Instruments{{TPOTMillis: new(float64(11.4))}}
	}, ""},
	{"a few answers begin with half a character", func(s *metric.Summary) { s.Opening = &metric.Opening{Answers: 1, OffMillis: 12, OffShare: 0.01} }, "first-token NOTE"},
	{"answers that are announced", func(s *metric.Summary) {
		s.Opening = &metric.Opening{Answers: 98, OffMillis: 50.2, OffShare: 0.99}
	}, "first-token DEGRADED"},
	{"half characters, all counted", func(s *metric.Summary) {
		s.Tokens.NoText = metric.NoText{Events: 10_000, Answers: 1000, Unequal: 10}
	}, ""},
	{"half characters or heartbeats", func(s *metric.Summary) {
		s.Tokens.NoText = metric.NoText{Events: 2001, Answers: 1000, Unequal: 11}
	}, "no-text DEGRADED"},
	{"few half characters or heartbeats", func(s *metric.Summary) {
		s.Tokens.NoText = metric.NoText{Events: 2000, Answers: 1000, Unequal: 1000}
	}, ""},
	{"some answers came whole", func(s *metric.Summary) { s.Buffering = held(6) }, "buffered DEGRADED"},
	{"a proxy that buffers", func(s *metric.Summary) {
		s.Buffering = held(100)
		coalesce(s, 200, 5) // not the client's fault
		s.Dist(metric.TPOT).Stats.Mean = 100
		s.Instruments = []metric.Instruments{{TPOTMillis: new(float64(10))}} // not the fault of the server's front end
	}, "buffered INVALID"},
	{"a server that sends bursts", func(s *metric.Summary) {
		s.Buffering = held(100)
		s.Dist(metric.TTFT).Stats.Mean = 700
		s.Instruments = []metric.Instruments{{TTFTMillis: new(float64(690))}}
	}, ""},
	{"a proxy that sends bursts", func(s *metric.Summary) {
		s.Buffering = held(100)
		s.Dist(metric.TTFT).Stats.Mean = 1700
		s.Instruments = []metric.Instruments{{TTFTMillis: new(float64(690))}}
	}, "buffered INVALID"},
	{"a proxy that sends some of the bursts", func(s *metric.Summary) {
		s.Buffering = held(10)
		s.Dist(metric.TTFT).Stats.Mean = 790
		s.Instruments = []metric.Instruments{{TTFTMillis: new(float64(690))}}
	}, "buffered DEGRADED"},
	{"a proxy that sends some of the lumps", func(s *metric.Summary) {
		s.Buffering = small(10)
		s.Dist(metric.TTFT).Stats.Mean = 116
		s.Instruments = []metric.Instruments{{TTFTMillis: new(float64(100))}}
	}, "held-back DEGRADED"},
	{"one event with each answer", func(s *metric.Summary) {
		s.Buffering = metric.Buffering{Answers: 100, Held: metric.Lumps{Answers: 100, Events: 100, Lumps: 100}}
	}, "buffered INVALID"},
	{"a late client with the read clock", func(s *metric.Summary) {
		s.Buffering, s.Clock.Read = held(100), s.Completed
		client(s).Pauses.TotalS = 0.06 * s.DurationS
	}, "read-clock NOTE, client-stalled DEGRADED, stalled-reads DEGRADED"},
	{"a few answers in lumps", func(s *metric.Summary) { s.Buffering = small(5) }, ""},
	{"answers in lumps", func(s *metric.Summary) { s.Buffering = small(100) }, "unexplained-lumps DEGRADED"},
	{"a server that sends lumps", func(s *metric.Summary) {
		s.Buffering = small(100)
		s.Instruments = []metric.Instruments{{TTFTMillis: new(s.Dist(metric.TTFT).Stats.Mean - 70)}}
	}, "lumps NOTE"},
	{"a proxy that sends lumps", func(s *metric.Summary) {
		s.Buffering = small(100)
		s.Instruments = []metric.Instruments{{TTFTMillis: new(s.Dist(metric.TTFT).Stats.Mean - 90)}}
	}, "held-back DEGRADED"},
	{"a client that fills slots late", func(s *metric.Summary) {
		s.Throughput, s.Idle = &metric.Throughput{RequestsPerS: 10}, &metric.Idle{Share: 0.1, Excess: 0.08, Millis: 3}
	}, "idle-slots DEGRADED"},
	{"a client that hardly fills slots", func(s *metric.Summary) {
		s.Throughput, s.Idle = &metric.Throughput{RequestsPerS: 10}, &metric.Idle{Share: 0.4, Excess: 0.38, Millis: 30}
	}, "idle-slots INVALID"},
	{"short requests", func(s *metric.Summary) { s.Idle = &metric.Idle{Share: 0.05, Excess: 0.01, Millis: 0.3} }, "turnaround NOTE"},
	{"a quota that is hardly felt", func(s *metric.Summary) { s.Config.Client = &metric.Client{QuotaCores: 2, ThrottledS: 1} }, "client-throttled NOTE"},
	{"a quota", func(s *metric.Summary) { s.Config.Client = &metric.Client{QuotaCores: 0.5, ThrottledS: 30} }, "client-throttled DEGRADED"},
	{"what the caller knows", func(s *metric.Summary) {
		s.Config.Known = []metric.Reason{{Code: "cpu", Severity: metric.Degraded, Text: "client CPU at 100 %"}}
	}, "cpu DEGRADED"},
}

// held returns n of 100 answers in bursts of 64 events.
func held(n int) metric.Buffering {
	return metric.Buffering{Answers: 100, Held: metric.Lumps{Answers: n, Events: 128 * n, Lumps: 2 * n, Span: time.Duration(n) * time.Second}}
}

// small returns n of 100 answers in lumps of 9 events, 180 ms apart. A buffer keeps the first event for 160 ms.
func small(n int) metric.Buffering {
	return metric.Buffering{Answers: 100, Small: metric.Lumps{Answers: n, Events: 63 * n, Lumps: 7 * n, Span: time.Duration(n) * 6 * 180 * time.Millisecond}}
}

// unusable is the level of a reason that makes some figures INVALID.
const unusable = "unusable"

func TestVerdict(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range verdictCases {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			c.harm(s)
			v := metric.Judge(s)
			var got []string
			for _, r := range v.Reasons {
				word := string(r.Severity)
				if r.Unusable {
					word = unusable
				}
				got = append(got, r.Code+" "+word)
				seen[r.Code+" "+word] = true
				if r.Text == "" || strings.Contains(r.Text, "%!") {
					t.Errorf("%s says %q", r.Code, r.Text)
				}
			}
			if diff := cmp.Diff(c.want, strings.Join(got, ", ")); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			wantLevel := metric.Valid
			switch word := c.want[strings.LastIndex(c.want, " ")+1:]; word {
			case string(metric.Degraded), string(metric.Invalid):
				wantLevel = metric.Severity(word)
			case unusable:
				wantLevel = metric.Degraded
			}
			if v.Severity != wantLevel {
				t.Errorf("the run is %s, want %s", v.Severity, wantLevel)
			}
		})
	}
	for _, r := range metric.Rules {
		for level, threshold := range map[metric.Severity]float64{metric.Note: r.Note, metric.Degraded: r.Degraded, metric.Invalid: r.Invalid} {
			if level == metric.Invalid && len(r.Figures) > 0 {
				level = unusable
			}
			if what := r.Code + " " + string(level); !math.IsInf(threshold, 1) && !seen[what] {
				t.Errorf("no case for %s", what)
			}
		}
		if r.Doc == "" || r.Unit == "" || r.Action == "" {
			t.Errorf("rule %s has no doc, no unit or no action", r.Code)
		}
	}
}

// maxReasonWords keeps a reason readable in one line.
const maxReasonWords = 25

// Every rule gives a short reason: what happened and how large it was, one colon, and an action.
func TestReasonsAreShort(t *testing.T) {
	seen := map[string]bool{}
	variants := []func(*metric.Summary){
		func(s *metric.Summary) { s.Failed, s.Config.Predicted = 12, true },
		func(s *metric.Summary) { s.Canceled, s.Config.Interrupted = 12, true },
		func(s *metric.Summary) {
			setPercentile(s, metric.Lag, 50, 812.5)
			setPercentile(s, metric.Lag, 99, 1812.5)
			setPercentile(s, metric.Named("connect"), 50, 800)
			setPercentile(s, metric.Named("connect"), 99, 1800)
		},
		func(s *metric.Summary) {
			s.Buffering = held(100)
			s.Dist(metric.TTFT).Stats.Mean = 1050
			s.Instruments = []metric.Instruments{{TTFTMillis: new(51.2), TPOTMillis: new(11.4)}}
		},
		func(s *metric.Summary) {
			client(s).Pauses = metric.Pauses{LongestMillis: 12_345, AtS: 123.4, TotalS: 20, AsleepS: 12.3}
		},
		func(s *metric.Summary) {
			s.Config.Metrics = metric.SectionKeys()
			s.Config.Percentiles = []float64{90, 99, 99.9}
			setSamples(s, metric.E2EL, 10)
		},
		func(s *metric.Summary) {
			s.Config.Metrics = []string{"ttft", "tpot", "itl", "e2el"}
			s.Config.Percentiles = []float64{99.9}
		},
	}
	for _, c := range verdictCases {
		variants = append(variants, c.harm)
	}
	for _, harm := range variants {
		s := healthy()
		harm(s)
		for _, r := range metric.Judge(s).Reasons {
			if !slices.ContainsFunc(metric.Rules, func(rule metric.Rule) bool { return rule.Code == r.Code }) {
				continue // given by the caller
			}
			seen[r.Code] = true
			checkReason(t, r)
		}
	}
	for _, r := range metric.Rules {
		if !seen[r.Code] {
			t.Errorf("no case gives a reason of %s", r.Code)
		}
	}
}

func checkReason(t *testing.T, r metric.Reason) {
	t.Helper()
	if n := len(strings.Fields(r.Text)); n > maxReasonWords {
		t.Errorf("%s has %d words, want %d at most: %s", r.Code, n, maxReasonWords, r.Text)
	}
	what, action, _ := strings.Cut(r.Text, ": ")
	if what == "" || len(strings.Fields(action)) < 2 || strings.Contains(action, ":") {
		t.Errorf("%s needs one colon and an action after it: %s", r.Code, r.Text)
	}
}

// The worst reason determines the verdict, whatever its position.
func TestWorstReasonWins(t *testing.T) {
	s := healthy()
	s.Failed, s.Clock.Steps, s.RetriedConns, s.Tokens.SurplusEvents = 1, 500, 1, 11
	v := metric.Judge(s)
	if v.Severity != metric.Invalid || len(v.Reasons) != 4 {
		t.Errorf("got %s for %d reasons, want INVALID for 4: %+v", v.Severity, len(v.Reasons), v.Reasons)
	}
}

func TestFewSamplesNamesThem(t *testing.T) {
	s := healthy()
	s.Config.Percentiles = []float64{50, 99.9}
	setSamples(s, metric.TPOT, 0) // a metric without values has no percentile
	v := metric.Judge(s)
	want := "p99.9 needs an effective sample size of 3688 (TTFT 1000, ITL 1000): run longer or read it as a maximum"
	if len(v.Reasons) != 1 || v.Reasons[0].Text != want {
		t.Errorf("got %+v, want %q", v.Reasons, want)
	}
}

// 400 samples may be too few if 368 are needed, because correlated samples count as fewer.
func TestFewSamplesThatLookEnough(t *testing.T) {
	s := healthy()
	s.Config.Percentiles = []float64{99}
	setSamples(s, metric.TTFT, 400)
	for i := range s.Dists {
		if d := &s.Dists[i]; d.Name == metric.TTFT.Name {
			d.Stats.Percentiles = []metric.Percentile{{P: 99, Value: 1, Interval: &metric.Interval{Effective: 20}}}
		}
	}
	want := "p99 needs an effective sample size of 368 (TTFT 20): run longer or read it as a maximum"
	if v := metric.Judge(s); len(v.Reasons) != 1 || v.Reasons[0].Text != want {
		t.Errorf("got %+v, want %q", v.Reasons, want)
	}
}

func TestRuleCodesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range metric.Rules {
		if seen[r.Code] {
			t.Errorf("two rules called %s", r.Code)
		}
		seen[r.Code] = true
		if !(r.Note <= r.Degraded || math.IsInf(r.Note, 1)) || r.Degraded > r.Invalid && !math.IsInf(r.Degraded, 1) {
			t.Errorf("%s: thresholds out of order: %s", r.Code, fmt.Sprint(r.Note, r.Degraded, r.Invalid))
		}
	}
}

// A reason states the largest error, from the slack of requests or from the bound of their p99,
// and never "0.00 ms".
func TestOffWordsAreTheValue(t *testing.T) {
	for name, c := range map[string]struct {
		harm func(*metric.Summary)
		code string
		want string
	}{
		"bound of TTFT": {func(s *metric.Summary) {
			setPercentile(s, metric.TTFT, 99, 5)
			setBound(s, metric.TTFT, 4.8, 5)
		}, "ttft-bound", "may be off by 0.2 ms"},
		"slack of TTFT": {func(s *metric.Summary) { uncertainTTFT(s, 6) }, "ttft-bound", "may be off by 6 ms"},
		"bound of ITL": {func(s *metric.Summary) {
			coalesce(s, 0, 75)
			setBound(s, metric.ITL, 73, 75)
		}, "coalesced", "may be off by 2 ms"},
		"little slack of ITL": {func(s *metric.Summary) { coalesce(s, 0.004, 75) }, "coalesced", "may be off by 0.004 ms"},
	} {
		t.Run(name, func(t *testing.T) {
			s := healthy()
			c.harm(s)
			v := metric.JudgeBy(s, []string{c.code})
			if len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0].Text, c.want) {
				t.Errorf("%+v, want %q", v.Reasons, c.want)
			}
		})
	}
}

// If requests are late because the server accepted their connections late, the reason names
// the connections and not the client's CPU.
func TestLateConnectionsAreNotTheClient(t *testing.T) {
	for _, c := range []struct {
		name          string
		connect, late time.Duration
		want, not     string
	}{
		{"connections accepted late", 1800 * time.Millisecond, 0, "because connecting took 1.8 s: check the server's listen backlog", "CPU"},
		{"a late client", 0, 1800 * time.Millisecond, "s late: give the client more CPU", "connecting"},
		{"both, mostly the client", 300 * time.Millisecond, 1500 * time.Millisecond, "s late: give the client more CPU", "connecting"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var sum metric.Accumulator
			for i := range 200 {
				due := time.Duration(i) * 50 * time.Millisecond
				r := &tacho.Record{Timeline: tacho.Timeline{Due: due, Slot: due, Start: due, Conn: due, Sent: due + 1}}
				if i%10 == 0 || i >= 180 {
					r.Start = due + c.late
					r.Conn = r.Start + c.connect
					r.Sent = r.Conn + 1
				}
				r.Wrote, r.Head, r.End = r.Sent+1, r.Sent+2, r.Sent+time.Millisecond
				r.Events = []tacho.Event{{At: r.Sent + 3, Tokens: 1}}
				if err := sum.Add(r); err != nil {
					t.Fatal(err)
				}
			}
			config := metric.DefaultConfig()
			config.RequestRate = 20
			s := sum.Summary(config)
			v := metric.JudgeBy(&s, []string{"lag-p99"})
			if len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0].Text, c.want) || strings.Contains(v.Reasons[0].Text, c.not) {
				t.Errorf("%+v, want %q and not %q", v.Reasons, c.want, c.not)
			}
			advice := map[bool]string{true: "give the client more CPU", false: "check the server's listen backlog"}[c.late > 0]
			if v = metric.JudgeBy(&s, []string{"drift"}); len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0].Text, advice) {
				t.Errorf("%+v, want %q", v.Reasons, advice)
			}
		})
	}
}

// A reason about some figures makes these figures unusable, and no others. A reason about all figures
// makes the level INVALID.
func TestVerdictByFigure(t *testing.T) {
	gaps := metric.Reason{Code: "late-reads", Severity: metric.Degraded, Figures: []string{"itl", "request_goodput"}, Unusable: true}
	first := metric.Reason{Code: "ttft-bound", Severity: metric.Degraded, Figures: []string{"ttft"}}
	all := metric.Reason{Code: "rate", Severity: metric.Invalid}
	note := metric.Reason{Code: "read-clock", Severity: metric.Note}
	for _, c := range []struct {
		reasons                []metric.Reason
		level, itl, ttft, e2el metric.Severity
	}{
		{nil, metric.Valid, metric.Valid, metric.Valid, metric.Valid},
		{[]metric.Reason{note}, metric.Valid, metric.Valid, metric.Valid, metric.Valid},
		{[]metric.Reason{gaps, note}, metric.Degraded, metric.Invalid, metric.Valid, metric.Valid},
		{[]metric.Reason{first, gaps}, metric.Degraded, metric.Invalid, metric.Degraded, metric.Valid},
		{[]metric.Reason{gaps, all}, metric.Invalid, metric.Invalid, metric.Invalid, metric.Invalid},
		{[]metric.Reason{all, first}, metric.Invalid, metric.Invalid, metric.Invalid, metric.Invalid},
	} {
		v := metric.JudgeBy(&metric.Summary{Config: metric.Config{Known: c.reasons}}, []string{})
		got := []metric.Severity{v.Severity, v.Of("itl"), v.Of("ttft"), v.Of("e2el")}
		if want := []metric.Severity{c.level, c.itl, c.ttft, c.e2el}; !slices.Equal(got, want) {
			t.Errorf("%v: level, ITL, TTFT and E2EL are %v, want %v", c.reasons, got, want)
		}
	}
}

// A doubt about gaps leaves all other figures, and says so, with the goodput of a limit on gaps.
func TestLateReadsNameUsableFigures(t *testing.T) {
	for limit, want := range map[string]string{
		"ttft": "the client read tokens of several steps together; ITL is not usable, TTFT, TPOT, E2EL and throughput are: add client CPU, or use --clock wire",
		"itl":  "the client read tokens of several steps together; ITL and goodput are not usable, TTFT, TPOT, E2EL and throughput are: add client CPU, or use --clock wire",
	} {
		s := healthy()
		s.Config.Goodput = []metric.SLO{{Metric: limit, LimitMillis: 50}}
		coalesce(s, 150, 200)
		setBound(s, metric.ITL, 50, 200)
		exact := 52.0
		s.ExactGapMillis = &exact
		v := metric.Judge(s)
		if v.Severity != metric.Degraded || len(v.Reasons) != 1 || v.Reasons[0].Text != want {
			t.Errorf("a limit on %s: %+v, want DEGRADED, %q", limit, v, want)
		}
		for _, m := range []*metric.Metric{metric.TTFT, metric.TPOT, metric.E2EL} {
			if got := v.Of(m.Name); got != metric.Valid {
				t.Errorf("%s is %s", m.Name, got)
			}
		}
	}
}

// paged sets a figure of the metrics page.
func paged(name string, v float64) func(*metric.Summary) {
	return func(s *metric.Summary) { s.Instruments = []metric.Instruments{{More: map[string]float64{name: v}}} }
}
