package metric

import "fmt"

// Names of figures in Instruments.More.
const (
	PageWaitingCapacity = "waiting_capacity"
	PageWaitingDeferred = "waiting_deferred"
	PageWaitingGrammar  = "waiting_grammar"
	PageKVFetch         = "kv_fetch"
	PagePaused          = "paused"
	PageAsleep          = "asleep_share"
	PageCachedHost      = "cached_host_share"
	PageCachedStorage   = "cached_storage_share"
	PageExternalHits    = "external_hit_share"
	PageMediaHits       = "media_hit_share"
	PageEvicted         = "evicted_tokens"
	PageEviction        = "eviction"
	PageBlockLifetime   = "block_lifetime"
	PageBlockIdle       = "block_idle"
	PageBlockReuse      = "block_reuse"
	PageStageProcess    = "stage_process"
	PageStagePrefill    = "stage_prefill"
	PageStageChunk      = "stage_chunk"
	PageRequestTPOT     = "request_tpot"
	PageDraftLength     = "draft_length"
	PageDraftRate       = "draft_acceptance" // if the page has no counters of drafts
)

// pageFigures are figures that a metrics page reports.
var pageFigures = []*Figure{
	pageFigure(PageWaitingCapacity, "Peak Waiting for Capacity", Count, "most requests waiting for capacity (vLLM)"),
	pageFigure(PageWaitingDeferred, "Peak Waiting, Deferred", Count, "most requests waiting for another reason, as a KV transfer (vLLM)"),
	pageFigure(PageWaitingGrammar, "Peak Waiting for a Grammar", Count, "most requests waiting for the grammar of their output (SGLang)"),
	pageFigure(PageKVFetch, "Peak Fetching KV Cache", Count, "most requests in a remote KV fetch (vLLM)"),
	pageFigure(PagePaused, "Peak Paused Requests", Count, "most requests paused by an update of weights (SGLang)"),
	pageFigure(PageAsleep, "Engine Asleep (share)", Share, "readings with a sleeping engine / readings (vLLM)"),
	pageFigure(PageCachedHost, "Cached Tokens from Host (share)", Share, "cached prompt tokens from the host's memory / cached prompt tokens"),
	pageFigure(PageCachedStorage, "Cached Tokens from Storage (share)", Share, "the same, from disk or another machine"),
	pageFigure(PageExternalHits, "External Cache Hits (share)", Share, "tokens found / looked up in the external prefix cache (vLLM)"),
	pageFigure(PageMediaHits, "Media Cache Hits (share)", Share, "images and other media found / looked up in the multimodal cache (vLLM)"),
	pageFigure(PageEvicted, "Evicted Tokens", TokenCount, "tokens evicted from the KV cache on the GPU (SGLang)"),
	pageFigure(PageEviction, "Mean Eviction", Millis, "time of one eviction (SGLang)"),
	pageFigure(PageBlockLifetime, "KV Block Lifetime", Millis, "mean, allocation to eviction (vLLM with --kv-cache-metrics, like the next two)"),
	pageFigure(PageBlockIdle, "KV Block Idle before Eviction", Millis, "mean, last use to eviction"),
	pageFigure(PageBlockReuse, "KV Block Reuse Gap", Millis, "mean, between two uses"),
	pageFigure(PageStageProcess, "Stage: Request Processing", Millis, "mean per request (SGLang, like the next two)"),
	pageFigure(PageStagePrefill, "Stage: Prefill", Millis, "mean per request"),
	pageFigure(PageStageChunk, "Stage: Chunk of a Prefill", Millis, "mean per chunk"),
	pageFigure(PageRequestTPOT, "Server's TPOT per Request", Millis, "mean over requests (vLLM)"),
	pageFigure(PageDraftLength, "Tokens per Draft", TokenCount, "mean tokens per step of speculative decoding, without readings of 0 (SGLang)"),
}

func pageFigure(name, title string, unit Unit, doc string) *Figure {
	return &Figure{name, title, unit, doc, func(s *Summary) *float64 { return s.page(name) }}
}

// page returns a figure of the metrics pages: the highest of all servers, or nil.
func (s *Summary) page(name string) (out *float64) {
	for i := range s.Instruments {
		if v, known := s.Instruments[i].More[name]; known && (out == nil || v > *out) {
			out = &v
		}
	}
	return out
}

// pageValue returns the value of a rule about a figure of the metrics pages.
func pageValue(name string) func(*Summary) (float64, bool) {
	return func(s *Summary) (float64, bool) {
		v := s.page(name)
		if v == nil {
			return 0, false
		}
		return *v, true
	}
}

// pageRules report what the server did during the level.
var pageRules = []Rule{
	{
		Code: "asleep", Unit: "share", Note: never, Degraded: 0, Invalid: never,
		Doc:    "readings of the metrics page with a sleeping engine (vLLM) / readings. Latencies include the time to wake",
		Action: "keep the engine awake, and measure again",
		value:  pageValue(PageAsleep),
		text:   func(_ *Summary, v float64) string { return "the engine slept in " + Percent(v) + " of the readings" },
	},
	{
		Code: "paused", Unit: "requests", Note: never, Degraded: 0, Invalid: never,
		Doc:    "most requests paused at a time by an update of weights (SGLang). Latencies include the pause",
		Action: "update no weights, and measure again",
		value:  pageValue(PagePaused),
		text:   func(_ *Summary, v float64) string { return "the server paused up to " + Brief(v) + " requests" },
	},
	{
		Code: "evicted", Unit: "tokens", Note: 0, Degraded: never, Invalid: never,
		Doc:    "tokens evicted from the KV cache, if prompts share prefixes. A prefix may have been computed again",
		Action: "expect a higher TTFT than with a larger cache",
		value: func(s *Summary) (float64, bool) {
			v := s.page(PageEvicted)
			if v == nil || !s.Cache.Turns && (s.Config.SharedShare == nil || *s.Config.SharedShare == 0) {
				return 0, false
			}
			return *v, true
		},
		text: func(_ *Summary, v float64) string { return "the server evicted " + Brief(v) + " tokens from its cache" },
	},
	{
		Code: "deferred", Unit: "requests", Note: 0, Degraded: never, Invalid: never,
		Doc:    "most requests waiting for something else than capacity, as a grammar or a KV transfer",
		Action: "read the server's log for the cause",
		value: func(s *Summary) (float64, bool) {
			return max(s.pageOr0(PageWaitingDeferred), s.pageOr0(PageWaitingGrammar)), true
		},
		text: func(s *Summary, v float64) string {
			if v == s.pageOr0(PageWaitingGrammar) {
				return "up to " + Brief(v) + " requests waited for their grammar, not for capacity"
			}
			return "the server deferred up to " + Brief(v) + " requests for another reason than capacity"
		},
	},
	{
		Code: "cache-tier", Unit: "share", Note: 0.01, Degraded: never, Invalid: never,
		Doc:    "cached prompt tokens from the host's memory or storage / cached prompt tokens. They arrive later than from the GPU",
		Action: "compare runs with the same share only",
		value: func(s *Summary) (float64, bool) {
			return s.pageOr0(PageCachedHost) + s.pageOr0(PageCachedStorage), true
		},
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("%s of the cached prompt tokens came from the host's memory, %s from storage", Percent(s.pageOr0(PageCachedHost)), Percent(s.pageOr0(PageCachedStorage)))
		},
	},
	{
		Code: "media-cache", Unit: "share", Note: 0.01, Degraded: never, Invalid: never,
		Doc:    "media found in the server's multimodal cache / media looked up. New media take longer",
		Action: "use another --seed, unless media should repeat",
		value:  pageValue(PageMediaHits),
		text: func(_ *Summary, v float64) string {
			return "the server found " + Percent(v) + " of the media in its cache"
		},
	},
}

func (s *Summary) pageOr0(name string) float64 {
	if v := s.page(name); v != nil {
		return *v
	}
	return 0
}
