package instrument

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// vllmMore are lines in the form of vLLM 0.33: the same name with several labels,
// the external cache before the cache of the GPU.
const vllmMore = `vllm:external_prefix_cache_queries_total{engine="0",model_name="m"} 600
vllm:external_prefix_cache_hits_total{engine="0",model_name="m"} 300
vllm:prefix_cache_queries_total{engine="0",model_name="m"} 1000
vllm:prefix_cache_hits_total{engine="0",model_name="m"} 400
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="capacity"} 9
vllm:num_requests_waiting_by_reason{engine="1",model_name="m",reason="capacity"} 2
vllm:num_requests_waiting_by_reason{engine="0",model_name="m",reason="deferred"} 3
vllm:num_requests_kv_fetch_by_stage{engine="0",model_name="m",stage="in_progress"} 1
vllm:num_requests_kv_fetch_by_stage{engine="0",model_name="m",stage="waiting_to_start"} 4
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="awake"} 0
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="weights_offloaded"} 1
vllm:engine_sleep_state{engine="0",model_name="m",sleep_state="discard_all"} 0
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="device"} 400
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="host"} 200
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="disk"} 60
vllm:prompt_tokens_cached_by_source_total{engine="0",model_name="m",source="external_unspecified"} 40
vllm:mm_cache_queries_total{engine="0",model_name="m"} 8
vllm:mm_cache_hits_total{engine="0",model_name="m"} 2
vllm:kv_block_lifetime_seconds_sum{engine="0",model_name="m"} 30
vllm:kv_block_lifetime_seconds_count{engine="0",model_name="m"} 3
vllm:kv_block_idle_before_evict_seconds_sum{engine="0",model_name="m"} 12
vllm:kv_block_idle_before_evict_seconds_count{engine="0",model_name="m"} 3
vllm:kv_block_reuse_gap_seconds_sum{engine="0",model_name="m"} 3
vllm:kv_block_reuse_gap_seconds_count{engine="0",model_name="m"} 2
vllm:request_time_per_output_token_seconds_sum{engine="0",model_name="m"} 0.08
vllm:request_time_per_output_token_seconds_count{engine="0",model_name="m"} 4
`

// sglangMore are lines of a page of SGLang 0.5.16 on an H200, with values for what
// that run did not use.
const sglangMore = `sglang:prompt_tokens_total{engine_type="unified",model_name="llama"} 399580.0
sglang:cached_tokens_total{cache_source="device",engine_type="unified",model_name="llama"} 99895.0
sglang:num_grammar_queue_reqs{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 2.0
sglang:num_paused_reqs{engine_type="unified",model_name="llama",moe_ep_rank="0",pid="655",pp_rank="0",tp_rank="0"} 5.0
sglang:evicted_tokens_total{cache_type="RadixCache"} 4.684773e+06
sglang:eviction_duration_seconds_sum{cache_type="RadixCache"} 1.868
sglang:eviction_duration_seconds_count{cache_type="RadixCache"} 3736.0
sglang:spec_accept_length{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 2.5
sglang:spec_accept_rate{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",tp_rank="0"} 0.5
sglang:per_stage_req_latency_seconds_sum{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",stage="request_process",tp_rank="0"} 0.08048
sglang:per_stage_req_latency_seconds_count{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",stage="request_process",tp_rank="0"} 8048.0
sglang:per_stage_req_latency_seconds_sum{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",stage="prefill_forward",tp_rank="0"} 1609.6
sglang:per_stage_req_latency_seconds_count{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",stage="prefill_forward",tp_rank="0"} 8048.0
sglang:per_stage_req_latency_seconds_sum{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",stage="chunked_prefill",tp_rank="0"} 22.0
sglang:per_stage_req_latency_seconds_count{engine_type="unified",model_name="llama",moe_ep_rank="0",pp_rank="0",stage="chunked_prefill",tp_rank="0"} 55.0
`

// Figures that only a few servers report reach the summary.
func TestSummarizeMore(t *testing.T) {
	for name, c := range map[string]struct {
		page string
		want map[string]float64
		hits float64
	}{
		"vllm": {vllmMore, map[string]float64{
			metric.PageExternalHits: 0.5, metric.PageWaitingCapacity: 11, metric.PageWaitingDeferred: 3, metric.PageKVFetch: 5,
			metric.PageAsleep: 2.0 / 3, metric.PageCachedHost: 200.0 / 700, metric.PageCachedStorage: 100.0 / 700, metric.PageMediaHits: 0.25,
			metric.PageBlockLifetime: 10000, metric.PageBlockIdle: 4000, metric.PageBlockReuse: 1500, metric.PageRequestTPOT: 20,
		}, 0.7},
		"sglang": {sglangMore, map[string]float64{
			metric.PageWaitingGrammar: 2, metric.PagePaused: 5, metric.PageEvicted: 4.684773e6, metric.PageEviction: 0.5,
			metric.PageDraftLength: 2.5, metric.PageDraftRate: 0.5,
			metric.PageStageProcess: 0.01, metric.PageStagePrefill: 200, metric.PageStageChunk: 400,
		}, 0.25},
	} {
		values := must.Get(read([]byte(c.page)))(t)
		zero := map[Quantity]float64{}
		for q := range values {
			zero[q] = 0
		}
		got := Summarize([]Sample{
			{At: 0, Values: zero}, {At: time.Second, Values: zero}, {At: 2 * time.Second, Values: values}, {At: 3 * time.Second, Values: values},
		}, 3)[0]
		if diff := cmp.Diff(c.want, got.More, cmpopts.EquateApprox(1e-12, 0)); diff != "" || got.PrefixHitShare == nil || *got.PrefixHitShare != c.hits {
			t.Errorf("%s: prefix hits %v (-want +got):\n%s", name, *got.PrefixHitShare, diff)
		}
	}
	calm := []Sample{{Values: map[Quantity]float64{asleep: 0, mediaHits: 0, mediaQueries: 0, paused: 0}}}
	if got := Summarize(append(calm, calm...), 1)[0]; got.More != nil {
		t.Errorf("figures of a server that did nothing: %v", got.More)
	}
}
