package sim

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// A metric is one family of a metrics page, with the server's name for it.
type metric struct {
	name   string
	kind   string // gauge, counter or histogram
	help   string
	labels string                    // in addition to the model name
	value  func(x *snapshot) float64 // of a gauge or a counter
	values func(x *snapshot) *histogram
}

// A snapshot is the state of the server at one time.
type snapshot struct {
	*counters
	load
	up time.Duration
}

func gauge(name, help string, value func(x *snapshot) float64) metric {
	return metric{name: name, kind: "gauge", help: help, value: value}
}

func counter(name, help string, value func(x *snapshot) float64) metric {
	return metric{name: name, kind: "counter", help: help, value: value}
}

func distribution(name, help string, values func(x *snapshot) *histogram) metric {
	return metric{name: name, kind: "histogram", help: help, values: values}
}

func (m metric) with(labels string) metric {
	m.labels = labels
	return m
}

func running(x *snapshot) float64       { return float64(x.running) }
func waiting(x *snapshot) float64       { return float64(x.waiting) }
func kvShare(x *snapshot) float64       { return x.kvShare() }
func prefixQueries(x *snapshot) float64 { return float64(x.prefixQueries) }
func prefixHits(x *snapshot) float64    { return float64(x.prefixHits) }
func promptTokens(x *snapshot) float64  { return float64(x.prompt.Load()) }
func cachedTokens(x *snapshot) float64  { return float64(x.cached.Load()) }
func generated(x *snapshot) float64     { return float64(x.generated.Load()) }
func preempted(x *snapshot) float64     { return float64(x.preemptions) }
func stopped(x *snapshot) float64       { return float64(x.stopped.Load()) }
func limited(x *snapshot) float64       { return float64(x.limited.Load()) }
func succeeded(x *snapshot) float64     { return stopped(x) + limited(x) }
func aborted(x *snapshot) float64       { return float64(x.aborted.Load()) }
func refused(x *snapshot) float64       { return float64(x.refused.Load()) }
func requests(x *snapshot) float64      { return float64(x.requests.Load()) }
func hitRate(x *snapshot) float64       { return prefixHits(x) / max(1, prefixQueries(x)) }
func kvTokens(x *snapshot) float64      { return float64(x.kvUsed) * float64(max(1, x.blockTokens)) }
func kvTokensMax(x *snapshot) float64   { return float64(x.kvBlocks) * float64(max(1, x.blockTokens)) }
func throughput(x *snapshot) float64    { return perSecond(x.generated.Load(), x.up) }

func ttft(x *snapshot) *histogram           { return x.ttft }
func itl(x *snapshot) *histogram            { return x.itl }
func gaps(x *snapshot) *histogram           { return x.gaps }
func tpot(x *snapshot) *histogram           { return x.tpot }
func e2e(x *snapshot) *histogram            { return x.e2e }
func queue(x *snapshot) *histogram          { return x.queue }
func prefill(x *snapshot) *histogram        { return x.prefill }
func decoded(x *snapshot) *histogram        { return x.decode }
func served(x *snapshot) *histogram         { return x.inference }
func inferenceTimes(x *snapshot) *histogram { return x.computed }
func inputs(x *snapshot) *histogram         { return x.inputs }
func outputs(x *snapshot) *histogram        { return x.outputs }

var vllmMetrics = []metric{
	gauge("vllm:num_requests_running", "Number of requests in model execution batches.", running),
	gauge("vllm:num_requests_waiting", "Number of requests waiting to be processed.", waiting),
	gauge("vllm:kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", kvShare),
	counter("vllm:prefix_cache_queries_total", "Prefix cache queries, in terms of number of queried tokens.", prefixQueries),
	counter("vllm:prefix_cache_hits_total", "Prefix cache hits, in terms of number of cached tokens.", prefixHits),
	counter("vllm:num_preemptions_total", "Cumulative number of preemption from the engine.", preempted),
	counter("vllm:prompt_tokens_total", "Number of prefill tokens processed.", promptTokens),
	counter("vllm:prompt_tokens_cached_total", "Number of prompt tokens found in the cache.", cachedTokens),
	counter("vllm:generation_tokens_total", "Number of generation tokens processed.", generated),
	counter("vllm:request_success_total", "Count of successfully processed requests.", stopped).with(`finished_reason="stop"`),
	counter("vllm:request_success_total", "", limited).with(`finished_reason="length"`),
	counter("vllm:request_success_total", "", aborted).with(`finished_reason="abort"`),
	distribution("vllm:request_prompt_tokens", "Number of prefill tokens processed.", inputs),
	distribution("vllm:request_generation_tokens", "Number of generation tokens processed.", outputs),
	distribution("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", ttft),
	distribution("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", itl),
	distribution("vllm:request_time_per_output_token_seconds", "Histogram of time per output token in seconds.", tpot),
	distribution("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", e2e),
	distribution("vllm:request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", queue),
	distribution("vllm:request_inference_time_seconds", "Histogram of time spent in RUNNING phase for request.", inferenceTimes),
	distribution("vllm:request_prefill_time_seconds", "Histogram of time spent in PREFILL phase for request.", prefill),
	distribution("vllm:request_decode_time_seconds", "Histogram of time spent in DECODE phase for request.", decoded),
}

var sglangMetrics = []metric{
	gauge("sglang:num_running_reqs", "The number of running requests.", running),
	gauge("sglang:num_queue_reqs", "The number of requests in the waiting queue.", waiting),
	gauge("sglang:token_usage", "The token usage.", kvShare),
	gauge("sglang:num_used_tokens", "The number of used tokens.", kvTokens),
	gauge("sglang:max_total_num_tokens", "Maximum number of tokens in the KV cache.", kvTokensMax),
	gauge("sglang:gen_throughput", "The generation throughput (token/s).", throughput),
	gauge("sglang:cache_hit_rate", "The prefix cache hit rate.", hitRate),
	counter("sglang:prompt_tokens_total", "Number of prefill tokens processed.", promptTokens),
	counter("sglang:generation_tokens_total", "Number of generation tokens processed.", generated),
	counter("sglang:cached_tokens_total", "Number of cached prompt tokens.", cachedTokens).with(`cache_source="device"`),
	counter("sglang:num_requests_total", "Number of requests processed.", requests),
	counter("sglang:num_aborted_requests_total", "Number of requests aborted.", aborted),
	counter("sglang:num_retracted_requests_total", "Number of requests retracted.", preempted),
	distribution("sglang:time_to_first_token_seconds", "Histogram of time to first token in seconds.", ttft),
	distribution("sglang:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", gaps),
	distribution("sglang:e2e_request_latency_seconds", "Histogram of End-to-end request latency in seconds", e2e),
	distribution("sglang:queue_time_seconds", "Histogram of queueing time in seconds.", queue),
}

var tgiMetrics = []metric{
	gauge("tgi_batch_current_size", "Current batch size", running),
	gauge("tgi_queue_size", "Current queue size", waiting),
	counter("tgi_request_count", "Total number of requests", requests),
	counter("tgi_request_success", "Number of successful requests", succeeded),
	counter("tgi_request_failure", "Number of failed requests", refused).with(`err="overloaded"`),
	counter("tgi_request_failure", "", aborted).with(`err="generation"`),
	distribution("tgi_request_input_length", "Input token length per request", inputs),
	distribution("tgi_request_generated_tokens", "Number of generated tokens per request", outputs),
	distribution("tgi_request_queue_duration", "Request queue duration", queue),
	distribution("tgi_request_inference_duration", "Request inference duration", served),
	distribution("tgi_request_mean_time_per_token_duration", "Mean time per token per request", tpot),
	distribution("tgi_request_duration", "Total time to process the request", e2e),
}

var llamaMetrics = []metric{
	gauge("llamacpp:requests_processing", "Number of requests processing.", running),
	gauge("llamacpp:requests_deferred", "Number of requests deferred.", waiting),
	counter("llamacpp:prompt_tokens_total", "Number of prompt tokens processed.", promptTokens),
	counter("llamacpp:tokens_predicted_total", "Number of generation tokens processed.", generated),
	counter("llamacpp:prompt_seconds_total", "Prompt process time", func(x *snapshot) float64 { return x.prefill.total() }),
	counter("llamacpp:tokens_predicted_seconds_total", "Predict process time", func(x *snapshot) float64 { return x.decode.total() }),
	gauge("llamacpp:predicted_tokens_seconds", "Average generation throughput in tokens/s.", throughput),
}

var trtllmMetrics = []metric{
	gauge("trtllm_num_requests_running", "Number of running requests.", running),
	gauge("trtllm_num_requests_waiting", "Number of waiting requests.", waiting),
	gauge("trtllm_kv_cache_utilization", "KV cache utilization.", kvShare),
	gauge("trtllm_kv_cache_hit_rate", "KV cache hit rate.", hitRate),
	counter("trtllm_prompt_tokens_total", "Prompt tokens.", promptTokens),
	counter("trtllm_prompt_cached_tokens_total", "Prompt tokens found in the cache.", cachedTokens),
	counter("trtllm_generation_tokens_total", "Generated tokens.", generated),
	counter("trtllm_request_success_total", "Count of successfully processed requests.", stopped).with(`finished_reason="stop"`),
	counter("trtllm_request_success_total", "", limited).with(`finished_reason="length"`),
	counter("trtllm_request_error_total", "Count of failed requests.", func(x *snapshot) float64 { return refused(x) + aborted(x) }),
	distribution("trtllm_time_to_first_token_seconds", "Histogram of time to first token in seconds.", ttft),
	distribution("trtllm_time_per_output_token_seconds", "Histogram of time per output token in seconds.", tpot),
	distribution("trtllm_e2e_request_latency_seconds", "Histogram of end to end request latency in seconds.", e2e),
	distribution("trtllm_request_queue_time_seconds", "Histogram of time spent in WAITING phase for request.", queue),
}

// metricsPage answers in the Prometheus text format.
func (s *Server) metricsPage(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path != s.emulated.metricsPath {
		http.NotFound(w, r)
		return
	}
	x := &snapshot{counters: s.counters, load: s.model.load(), up: s.sinceStart(time.Now())}
	var page bytes.Buffer
	model := `model_name=` + strconv.Quote(s.opt.Model)
	for i := range s.emulated.metrics {
		m := &s.emulated.metrics[i]
		if i == 0 || s.emulated.metrics[i-1].name != m.name {
			fmt.Fprintf(&page, "# HELP %s %s\n# TYPE %s %s\n", m.name, m.help, m.name, m.kind)
		}
		labels := model
		if m.labels != "" {
			labels += "," + m.labels
		}
		if m.values != nil {
			m.values(x).print(&page, m.name, labels)
			continue
		}
		fmt.Fprintf(&page, "%s{%s} %v\n", m.name, labels, m.value(x))
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write(page.Bytes()) // it fails only if the client disconnected
}

func (h *histogram) print(page *bytes.Buffer, name, labels string) {
	n := int64(0)
	for i, bound := range h.bounds {
		n += h.counts[i].Load()
		fmt.Fprintf(page, "%s_bucket{%s,le=\"%v\"} %d\n", name, labels, bound, n)
	}
	n += h.counts[len(h.bounds)].Load()
	fmt.Fprintf(page, "%s_bucket{%s,le=\"+Inf\"} %d\n", name, labels, n)
	fmt.Fprintf(page, "%s_sum{%s} %v\n%s_count{%s} %d\n", name, labels, h.total(), name, labels, n)
}
