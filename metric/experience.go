package metric

import (
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
)

// Metrics of the reader's experience.
var (
	ttst = &Metric{
		Name: "ttst", Title: "Time to Second Token", Unit: Millis,
		Doc: "second token event - first token event; successful requests with at least two token events",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() && len(r.Events) > 1 {
				emit(millis(r.Events[1].At - r.Events[0].At))
			}
		},
	}
	LongestGap = &Metric{
		Name: "longest_gap", Title: "Longest Gap", Unit: Millis,
		Doc: "longest gap between successive token events; successful requests with at least two token events",
		Of: func(r *tacho.Record, emit func(float64)) {
			if !r.OK() || len(r.Events) < 2 {
				return
			}
			longest := time.Duration(-1)
			for i := 1; i < len(r.Events); i++ {
				longest = max(longest, r.Events[i].At-r.Events[i-1].At)
			}
			if longest >= 0 {
				emit(millis(longest))
			}
		},
	}
	// Stalls uses the default threshold. WithStalls supports other thresholds.
	Stalls    = stallsOver(DefaultStallMillis)
	userSpeed = &Metric{
		Name: "user_speed", Title: "Output Speed per Request", Unit: TokensPerSec, MoreIsBetter: true,
		Doc: "output tokens / (last token event - sent), including the wait for the first token; successful requests with tokens",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() && r.Output > 0 && r.Sent != tacho.Never && r.Last() > r.Sent {
				emit(float64(r.Output) / (r.Last() - r.Sent).Seconds())
			}
		},
	}
	normalized = &Metric{
		Name: "normalized_latency", Title: "Normalized Latency", Unit: Millis,
		Doc: "E2EL / output tokens; successful requests with tokens",
		Of: func(r *tacho.Record, emit func(float64)) {
			if last := atLast(r); r.OK() && r.Output > 0 && r.Sent != tacho.Never && last != tacho.Never {
				emit(millis(last-r.Sent) / float64(r.Output))
			}
		},
	}
	prefillRate = &Metric{
		Name: "prefill_rate", Title: "Prefill Speed per Request", Unit: TokensPerSec, MoreIsBetter: true,
		Doc: "input tokens / TTFT, including the wait before the prefill and tokens found in the cache; successful requests with input tokens",
		Of: func(r *tacho.Record, emit func(float64)) {
			if n := InputTokens(r); r.OK() && n > 0 && r.Sent != tacho.Never && r.First() != tacho.Never && r.First() > r.Sent {
				emit(1e3 * float64(n) / millis(r.First()-r.Sent))
			}
		},
	}
	cachedShare = &Metric{
		Name: "cached_share", Title: "Prompt from Cache (share)", Unit: Share, MoreIsBetter: true,
		Doc: "prompt tokens from the server's cache / prompt tokens, counted by the server; successful requests, if the server reports it",
		Of: func(r *tacho.Record, emit func(float64)) {
			if u := r.Usage; r.OK() && u != nil && u.Prompt > 0 && (u.TellsCached || u.Cached > 0) {
				emit(float64(u.Cached) / float64(u.Prompt))
			}
		},
	}
)

// DefaultStallMillis is the default length of a gap that readers notice as a stall.
const DefaultStallMillis = 1000

// stallsOver counts the gaps longer than a threshold.
func stallsOver(thresholdMillis float64) *Metric {
	longest := tacho.Nanos(thresholdMillis * 1e6) // longest gap without a stall
	return &Metric{
		Name: "stalls", Title: "Stalls", Unit: Count,
		Doc: "number of gaps between successive token events longer than --stall-threshold (default 1000 ms), per request; successful requests with at least two token events",
		Of: func(r *tacho.Record, emit func(float64)) {
			if !r.OK() || len(r.Events) < 2 {
				return
			}
			n := 0.0
			for i := 1; i < len(r.Events); i++ {
				if r.Events[i].At-r.Events[i-1].At > longest {
					n++
				}
			}
			emit(n)
		},
	}
}

// Indices of metrics in All.
var (
	stallsAt   = slices.Index(All, Stalls)
	tokenGapAt = slices.Index(All, TokenGap)
)

// WithStalls returns all metrics with the given stall threshold. 0 means the default.
func WithStalls(thresholdMillis float64) []*Metric {
	if thresholdMillis == 0 || thresholdMillis == DefaultStallMillis {
		return All
	}
	list := slices.Clone(All)
	list[stallsAt] = stallsOver(thresholdMillis)
	return list
}
