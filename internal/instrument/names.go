package instrument

import (
	"fmt"
	"math"
	"strconv"
)

// A Quantity is a measured value, independent of its name on a page.
type Quantity string

// The quantities. Names with _sum and _count belong to a distribution.
const (
	running         Quantity = "running"
	queued          Quantity = "queued"
	kvShare         Quantity = "kv_share"
	prefixQueries   Quantity = "prefix_queries" // tokens looked up in the prefix cache
	prefixHits      Quantity = "prefix_hits"    // tokens found in the prefix cache
	prefixHitRate   Quantity = "prefix_hit_rate"
	promptTokens    Quantity = "prompt_tokens"
	cachedTokens    Quantity = "cached_tokens" // part of promptTokens
	generatedTokens Quantity = "generation_tokens"
	preemptions     Quantity = "preemptions"
	corrupted       Quantity = "corrupted" // requests whose logits contained NaN
	rejected        Quantity = "rejected"  // requests refused before they were queued
	finished        Quantity = "finished"
	ttftSum         Quantity = "ttft_sum" // seconds, like all sums
	ttftCount       Quantity = "ttft_count"
	tpotSum         Quantity = "tpot_sum"
	tpotCount       Quantity = "tpot_count"
	e2elSum         Quantity = "e2el_sum"
	e2elCount       Quantity = "e2el_count"
	prefillSum      Quantity = "prefill_sum"
	prefillCount    Quantity = "prefill_count"
	decodeSum       Quantity = "decode_sum"
	decodeCount     Quantity = "decode_count"
	inferenceSum    Quantity = "inference_sum" // prefill and decode
	inferenceCount  Quantity = "inference_count"
	queueSum        Quantity = "queue_sum"
	queueCount      Quantity = "queue_count"
	specDrafts      Quantity = "spec_drafts"
	specDraftTokens Quantity = "spec_draft_tokens"
	specAccepted    Quantity = "spec_accepted"
	specAcceptedAt  Quantity = "spec_accepted_at" // followed by the position
	diffusionSteps  Quantity = "diffusion_steps"
	diffusionPlaces Quantity = "diffusion_positions"
	diffusionTokens Quantity = "diffusion_committed"
	gpuShare        Quantity = "gpu_share"
	powerWatts      Quantity = "power_w"
	energyJoules    Quantity = "energy_joules"
)

// The quantities of figures that only a few servers report.
const (
	waitingCapacity Quantity = "waiting_capacity"
	waitingDeferred Quantity = "waiting_deferred"
	waitingGrammar  Quantity = "waiting_grammar"
	kvFetch         Quantity = "kv_fetch"
	paused          Quantity = "paused"
	asleep          Quantity = "asleep"
	cachedDevice    Quantity = "cached_device" // tokens, like the other two
	cachedHost      Quantity = "cached_host"
	cachedStorage   Quantity = "cached_storage"
	externalQueries Quantity = "external_queries" // tokens that the first cache did not have
	externalHits    Quantity = "external_hits"
	mediaQueries    Quantity = "media_queries"
	mediaHits       Quantity = "media_hits"
	evictedTokens   Quantity = "evicted_tokens"
	evictionSum     Quantity = "eviction_sum"
	evictionCount   Quantity = "eviction_count"
	lifetimeSum     Quantity = "block_lifetime_sum"
	lifetimeCount   Quantity = "block_lifetime_count"
	idleSum         Quantity = "block_idle_sum"
	idleCount       Quantity = "block_idle_count"
	reuseSum        Quantity = "block_reuse_sum"
	reuseCount      Quantity = "block_reuse_count"
	processSum      Quantity = "stage_process_sum"
	processCount    Quantity = "stage_process_count"
	forwardSum      Quantity = "stage_prefill_sum"
	forwardCount    Quantity = "stage_prefill_count"
	chunksSum       Quantity = "stage_chunks_sum"
	chunksCount     Quantity = "stage_chunks_count"
	requestTPOTSum  Quantity = "request_tpot_sum"
	requestTPOTs    Quantity = "request_tpot_count"
	draftLength     Quantity = "draft_length"
	draftRate       Quantity = "draft_rate"
)

// A joining combines the readings of one name into one value, because a server has
// a reading for each replica, GPU or reason.
type joining int

const (
	summed joining = iota
	largest
	averaged
)

// A name maps a metric name to a quantity.
type name struct {
	quantity Quantity
	also     Quantity // a second quantity that includes this one, whatever its label
	joined   joining
	scale    float64 // factor from the metric's unit to ours; 0 means 1
	byPlace  bool    // there is one reading for each position of a draft
	label    string  // label whose value selects the quantity from parts
	parts    map[string]Quantity
}

// others is the key of parts for all other values of the label.
const others = "*"

// The parts of names with a label. The source of a cached token has other names in
// other versions of vLLM.
var (
	reasons   = map[string]Quantity{"capacity": waitingCapacity, others: waitingDeferred}
	sources   = map[string]Quantity{"device": cachedDevice, "host": cachedHost, "cpu": cachedHost, others: cachedStorage}
	sleeping  = map[string]Quantity{"weights_offloaded": asleep, "discard_all": asleep}
	stageSum  = map[string]Quantity{"request_process": processSum, "prefill_forward": forwardSum, "chunked_prefill": chunksSum}
	stageSize = map[string]Quantity{"request_process": processCount, "prefill_forward": forwardCount, "chunked_prefill": chunksCount}
)

// maxDraft bounds the positions of a draft, even if a page lists more.
const maxDraft = 256

// at returns the quantity at one position of a draft.
func (q Quantity) at(position int) Quantity { return Quantity(fmt.Sprintf("%s_%d", q, position)) }

// quantityOf returns the quantity of a reading, or false if the reading is invalid.
func (n *name) quantityOf(r *reading) (Quantity, bool) {
	switch {
	case n.label != "":
		value := r.label(n.label)
		q, known := n.parts[value]
		if !known && value != "" {
			q, known = n.parts[others]
		}
		return q, known
	case !n.byPlace:
		return n.quantity, true
	}
	position, err := strconv.Atoi(r.label("position"))
	return n.quantity.at(position), err == nil && position >= 0 && position < maxDraft
}

// names are the metric names of vLLM, SGLang, TGI, llama.cpp, TensorRT-LLM,
// LMDeploy and the DCGM exporter. No two of them share a name, so the server need
// not be known.
var names = map[string]name{
	"vllm:num_requests_running":                          {quantity: running},
	"vllm:num_requests_waiting":                          {quantity: queued},
	"vllm:kv_cache_usage_perc":                           {quantity: kvShare, joined: largest},
	"vllm:gpu_cache_usage_perc":                          {quantity: kvShare, joined: largest},
	"vllm:prefix_cache_queries_total":                    {quantity: prefixQueries},
	"vllm:prefix_cache_hits_total":                       {quantity: prefixHits},
	"vllm:prompt_tokens_total":                           {quantity: promptTokens},
	"vllm:prompt_tokens_cached_total":                    {quantity: cachedTokens},
	"vllm:generation_tokens_total":                       {quantity: generatedTokens},
	"vllm:num_preemptions_total":                         {quantity: preemptions},
	"vllm:corrupted_requests_total":                      {quantity: corrupted},
	"vllm:admission_rejections_total":                    {quantity: rejected},
	"vllm:request_success_total":                         {quantity: finished},
	"vllm:spec_decode_num_drafts_total":                  {quantity: specDrafts},
	"vllm:spec_decode_num_draft_tokens_total":            {quantity: specDraftTokens},
	"vllm:spec_decode_num_accepted_tokens_total":         {quantity: specAccepted},
	"vllm:spec_decode_num_accepted_tokens_per_pos_total": {quantity: specAcceptedAt, byPlace: true},
	"vllm:diffusion_num_denoising_steps_total":           {quantity: diffusionSteps},
	"vllm:diffusion_num_canvas_positions_total":          {quantity: diffusionPlaces},
	"vllm:diffusion_num_committed_tokens_total":          {quantity: diffusionTokens},
	"vllm:time_to_first_token_seconds_sum":               {quantity: ttftSum},
	"vllm:time_to_first_token_seconds_count":             {quantity: ttftCount},
	"vllm:inter_token_latency_seconds_sum":               {quantity: tpotSum},
	"vllm:inter_token_latency_seconds_count":             {quantity: tpotCount},
	"vllm:e2e_request_latency_seconds_sum":               {quantity: e2elSum},
	"vllm:e2e_request_latency_seconds_count":             {quantity: e2elCount},
	"vllm:request_queue_time_seconds_sum":                {quantity: queueSum},
	"vllm:request_queue_time_seconds_count":              {quantity: queueCount},
	"vllm:request_prefill_time_seconds_sum":              {quantity: prefillSum},
	"vllm:request_prefill_time_seconds_count":            {quantity: prefillCount},
	"vllm:request_decode_time_seconds_sum":               {quantity: decodeSum},
	"vllm:request_decode_time_seconds_count":             {quantity: decodeCount},
	"vllm:request_inference_time_seconds_sum":            {quantity: inferenceSum},
	"vllm:request_inference_time_seconds_count":          {quantity: inferenceCount},
	"vllm:num_requests_waiting_by_reason":                {label: "reason", parts: reasons},
	"vllm:num_requests_kv_fetch_by_stage":                {quantity: kvFetch},
	"vllm:engine_sleep_state":                            {label: "sleep_state", parts: sleeping, joined: largest},
	"vllm:prompt_tokens_cached_by_source_total":          {label: "source", parts: sources},
	"vllm:external_prefix_cache_queries_total":           {quantity: externalQueries},
	"vllm:external_prefix_cache_hits_total":              {quantity: externalHits, also: prefixHits},
	"vllm:mm_cache_queries_total":                        {quantity: mediaQueries},
	"vllm:mm_cache_hits_total":                           {quantity: mediaHits},
	"vllm:kv_block_lifetime_seconds_sum":                 {quantity: lifetimeSum},
	"vllm:kv_block_lifetime_seconds_count":               {quantity: lifetimeCount},
	"vllm:kv_block_idle_before_evict_seconds_sum":        {quantity: idleSum},
	"vllm:kv_block_idle_before_evict_seconds_count":      {quantity: idleCount},
	"vllm:kv_block_reuse_gap_seconds_sum":                {quantity: reuseSum},
	"vllm:kv_block_reuse_gap_seconds_count":              {quantity: reuseCount},
	"vllm:request_time_per_output_token_seconds_sum":     {quantity: requestTPOTSum},
	"vllm:request_time_per_output_token_seconds_count":   {quantity: requestTPOTs},
	"sglang:num_grammar_queue_reqs":                      {quantity: waitingGrammar},
	"sglang:num_paused_reqs":                             {quantity: paused},
	"sglang:evicted_tokens_total":                        {quantity: evictedTokens},
	"sglang:eviction_duration_seconds_sum":               {quantity: evictionSum},
	"sglang:eviction_duration_seconds_count":             {quantity: evictionCount},
	"sglang:per_stage_req_latency_seconds_sum":           {label: "stage", parts: stageSum},
	"sglang:per_stage_req_latency_seconds_count":         {label: "stage", parts: stageSize},
	"sglang:spec_accept_length":                          {quantity: draftLength, joined: largest},
	"sglang:spec_accept_rate":                            {quantity: draftRate, joined: largest},
	"sglang:num_running_reqs":                            {quantity: running},
	"sglang:num_queue_reqs":                              {quantity: queued},
	"sglang:token_usage":                                 {quantity: kvShare, joined: largest},
	"sglang:cache_hit_rate":                              {quantity: prefixHitRate, joined: averaged},
	"sglang:cached_tokens_total":                         {also: cachedTokens, label: "cache_source", parts: sources},
	"sglang:prompt_tokens_total":                         {quantity: promptTokens},
	"sglang:generation_tokens_total":                     {quantity: generatedTokens},
	"sglang:num_retracted_requests_total":                {quantity: preemptions},
	"sglang:num_requests_total":                          {quantity: finished},
	"sglang:time_to_first_token_seconds_sum":             {quantity: ttftSum},
	"sglang:time_to_first_token_seconds_count":           {quantity: ttftCount},
	"sglang:inter_token_latency_seconds_sum":             {quantity: tpotSum},
	"sglang:inter_token_latency_seconds_count":           {quantity: tpotCount},
	"sglang:e2e_request_latency_seconds_sum":             {quantity: e2elSum},
	"sglang:e2e_request_latency_seconds_count":           {quantity: e2elCount},
	"sglang:queue_time_seconds_sum":                      {quantity: queueSum},
	"sglang:queue_time_seconds_count":                    {quantity: queueCount},
	"tgi_batch_current_size":                             {quantity: running},
	"tgi_queue_size":                                     {quantity: queued},
	"tgi_request_input_length_sum":                       {quantity: promptTokens},
	"tgi_request_generated_tokens_sum":                   {quantity: generatedTokens},
	"tgi_request_success":                                {quantity: finished},
	"tgi_request_duration_sum":                           {quantity: e2elSum},
	"tgi_request_duration_count":                         {quantity: e2elCount},
	"tgi_request_queue_duration_sum":                     {quantity: queueSum},
	"tgi_request_queue_duration_count":                   {quantity: queueCount},
	"tgi_request_inference_duration_sum":                 {quantity: inferenceSum},
	"tgi_request_inference_duration_count":               {quantity: inferenceCount},
	"tgi_request_mean_time_per_token_duration_sum":       {quantity: tpotSum},
	"tgi_request_mean_time_per_token_duration_count":     {quantity: tpotCount},
	"llamacpp:requests_processing":                       {quantity: running},
	"llamacpp:requests_deferred":                         {quantity: queued},
	// Here prompt tokens do not include cached tokens.
	"llamacpp:prompt_tokens_total":                  {quantity: promptTokens, also: prefixQueries},
	"llamacpp:prompt_tokens_cached_total":           {quantity: prefixHits, also: prefixQueries},
	"llamacpp:tokens_predicted_total":               {quantity: generatedTokens},
	"llamacpp:kv_cache_usage_ratio":                 {quantity: kvShare, joined: largest},
	"trtllm_num_requests_running":                   {quantity: running},
	"trtllm_num_requests_waiting":                   {quantity: queued},
	"trtllm_kv_cache_utilization":                   {quantity: kvShare, joined: largest},
	"trtllm_kv_cache_hit_rate":                      {quantity: prefixHitRate, joined: averaged},
	"trtllm_prompt_tokens_total":                    {quantity: promptTokens},
	"trtllm_prompt_cached_tokens_total":             {quantity: cachedTokens},
	"trtllm_generation_tokens_total":                {quantity: generatedTokens},
	"trtllm_request_success_total":                  {quantity: finished},
	"trtllm_time_to_first_token_seconds_sum":        {quantity: ttftSum},
	"trtllm_time_to_first_token_seconds_count":      {quantity: ttftCount},
	"trtllm_time_per_output_token_seconds_sum":      {quantity: tpotSum},
	"trtllm_time_per_output_token_seconds_count":    {quantity: tpotCount},
	"trtllm_e2e_request_latency_seconds_sum":        {quantity: e2elSum},
	"trtllm_e2e_request_latency_seconds_count":      {quantity: e2elCount},
	"trtllm_request_queue_time_seconds_sum":         {quantity: queueSum},
	"trtllm_request_queue_time_seconds_count":       {quantity: queueCount},
	"lmdeploy:num_requests_running":                 {quantity: running},
	"lmdeploy:num_requests_waiting":                 {quantity: queued},
	"lmdeploy:gpu_cache_usage_perc":                 {quantity: kvShare, joined: largest},
	"lmdeploy:prefix_cache_hit_rate":                {quantity: prefixHitRate, joined: averaged},
	"lmdeploy:prompt_tokens_total":                  {quantity: promptTokens},
	"lmdeploy:cached_tokens_total":                  {quantity: cachedTokens},
	"lmdeploy:generation_tokens_total":              {quantity: generatedTokens},
	"lmdeploy:request_success_total":                {quantity: finished},
	"lmdeploy:time_to_first_token_seconds_sum":      {quantity: ttftSum},
	"lmdeploy:time_to_first_token_seconds_count":    {quantity: ttftCount},
	"lmdeploy:time_per_output_token_seconds_sum":    {quantity: tpotSum},
	"lmdeploy:time_per_output_token_seconds_count":  {quantity: tpotCount},
	"lmdeploy:e2e_request_latency_seconds_sum":      {quantity: e2elSum},
	"lmdeploy:e2e_request_latency_seconds_count":    {quantity: e2elCount},
	"lmdeploy:request_queue_time_seconds_sum":       {quantity: queueSum},
	"lmdeploy:request_queue_time_seconds_count":     {quantity: queueCount},
	"lmdeploy:request_prefill_time_seconds_sum":     {quantity: prefillSum},
	"lmdeploy:request_prefill_time_seconds_count":   {quantity: prefillCount},
	"lmdeploy:request_decode_time_seconds_sum":      {quantity: decodeSum},
	"lmdeploy:request_decode_time_seconds_count":    {quantity: decodeCount},
	"lmdeploy:request_inference_time_seconds_sum":   {quantity: inferenceSum},
	"lmdeploy:request_inference_time_seconds_count": {quantity: inferenceCount},
	"DCGM_FI_DEV_GPU_UTIL":                          {quantity: gpuShare, joined: averaged, scale: 0.01},
	"DCGM_FI_DEV_POWER_USAGE":                       {quantity: powerWatts},
	"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION":          {quantity: energyJoules, scale: 0.001},
}

// read converts a page to values. Unknown names and values that are not finite
// numbers are skipped.
func read(page []byte) (map[Quantity]float64, error) {
	values := map[Quantity]float64{}
	counts := map[Quantity]int{}
	err := parse(page, func(r reading) {
		n, ok := names[r.name]
		if !ok || math.IsNaN(r.value) || math.IsInf(r.value, 0) {
			return
		}
		v := r.value
		if n.scale != 0 {
			v *= n.scale
		}
		if n.also != "" {
			values[n.also] += v
		}
		q, ok := n.quantityOf(&r)
		if !ok {
			return
		}
		counts[q]++
		switch {
		case n.joined == largest && counts[q] > 1:
			values[q] = max(values[q], v)
		case n.joined == averaged:
			values[q] += (v - values[q]) / float64(counts[q])
		default:
			values[q] += v
		}
	})
	return values, err
}
