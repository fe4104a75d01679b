package metric

import (
	"slices"
	"time"

	"tacho"
)

// What the reader of an answer feels.
var (
	ttst = &Metric{
		Name: "ttst", Title: "Time to Second Token", Unit: Millis,
		Doc: "second token event - first token event; successful requests with two",
		Of: func(r *tacho.Record, emit func(float64)) {
			if r.OK() && len(r.Events) > 1 {
				emit(millis(r.Events[1].At - r.Events[0].At))
			}
		},
	}
	LongestGap = &Metric{
		Name: "longest_gap", Title: "Longest Gap", Unit: Millis,
		Doc: "longest gap between successive token events; successful requests with two",
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
	// Stalls has the usual threshold; WithStalls has any other.
	Stalls    = stallsOver(DefaultStallMillis)
	userSpeed = &Metric{
		Name: "user_speed", Title: "Output Speed of a Request", Unit: TokensPerSec, MoreIsBetter: true,
		Doc: "output tokens / (last token event - sent): the wait for the first token counts; successful requests with tokens",
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
		Name: "prefill_rate", Title: "Prefill Speed of a Request", Unit: TokensPerSec, MoreIsBetter: true,
		Doc: "input tokens / TTFT: what waits before the prefill, and what was found in a cache, count as read; successful requests with input tokens",
		Of: func(r *tacho.Record, emit func(float64)) {
			if n := InputTokens(r); r.OK() && n > 0 && r.Sent != tacho.Never && r.First() != tacho.Never && r.First() > r.Sent {
				emit(1e3 * float64(n) / millis(r.First()-r.Sent))
			}
		},
	}
	cachedShare = &Metric{
		Name: "cached_share", Title: "Share of the Prompt from a Cache", Unit: Share, MoreIsBetter: true,
		Doc: "prompt tokens that the server took from a cache / prompt tokens, by its own count; successful requests of servers that tell it",
		Of: func(r *tacho.Record, emit func(float64)) {
			if u := r.Usage; r.OK() && u != nil && u.Prompt > 0 && (u.TellsCached || u.Cached > 0) {
				emit(float64(u.Cached) / float64(u.Prompt))
			}
		},
	}
)

// DefaultStallMillis is how long a gap is that a reader takes for a standstill.
const DefaultStallMillis = 1000

// stallsOver counts the gaps beyond a threshold.
func stallsOver(thresholdMillis float64) *Metric {
	longest := tacho.Nanos(thresholdMillis * 1e6) // that is no stall
	return &Metric{
		Name: "stalls", Title: "Stalls", Unit: Count,
		Doc: "gaps between successive token events that are longer than --stall-threshold (1000 ms unless set), in a request; successful requests with two token events",
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

// Where metrics are in All.
var (
	stallsAt   = slices.Index(All, Stalls)
	tokenGapAt = slices.Index(All, TokenGap)
)

// WithStalls are all metrics, with stalls of a threshold; 0 is the usual one.
func WithStalls(thresholdMillis float64) []*Metric {
	if thresholdMillis == 0 || thresholdMillis == DefaultStallMillis {
		return All
	}
	list := slices.Clone(All)
	list[stallsAt] = stallsOver(thresholdMillis)
	return list
}
