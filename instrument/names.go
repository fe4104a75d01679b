package instrument

import (
	"fmt"
	"strconv"
)

// A Quantity is something that servers measure, whatever they call it.
type Quantity string

// The quantities. Those that end in _sum and _count are of a distribution.
const (
	Running         Quantity = "running"
	Queued          Quantity = "queued"
	KVShare         Quantity = "kv_share"
	PrefixQueries   Quantity = "prefix_queries" // tokens looked for in the prefix cache
	PrefixHits      Quantity = "prefix_hits"    // tokens found there
	PrefixHitRate   Quantity = "prefix_hit_rate"
	PromptTokens    Quantity = "prompt_tokens"
	CachedTokens    Quantity = "cached_tokens" // of PromptTokens
	GeneratedTokens Quantity = "generation_tokens"
	Preemptions     Quantity = "preemptions"
	Finished        Quantity = "finished"
	TTFTSum         Quantity = "ttft_sum" // seconds, as all sums
	TTFTCount       Quantity = "ttft_count"
	TPOTSum         Quantity = "tpot_sum"
	TPOTCount       Quantity = "tpot_count"
	E2ELSum         Quantity = "e2el_sum"
	E2ELCount       Quantity = "e2el_count"
	QueueSum        Quantity = "queue_sum"
	QueueCount      Quantity = "queue_count"
	SpecDrafts      Quantity = "spec_drafts"
	SpecDraftTokens Quantity = "spec_draft_tokens"
	SpecAccepted    Quantity = "spec_accepted"
	SpecAcceptedAt  Quantity = "spec_accepted_at" // with the position behind it
	DiffusionSteps  Quantity = "diffusion_steps"
	DiffusionPlaces Quantity = "diffusion_positions"
	DiffusionTokens Quantity = "diffusion_committed"
	GPUShare        Quantity = "gpu_share"
	PowerWatts      Quantity = "power_w"
	EnergyJoules    Quantity = "energy_joules"
)

// How the readings of one name make one value: a server has one for each
// replica, each GPU, each reason.
type joining int

const (
	summed joining = iota
	largest
	averaged
)

// A name is what a server calls a quantity.
type name struct {
	quantity Quantity
	also     Quantity // a second one that it is part of
	joined   joining
	scale    float64 // of its unit, in ours; 0 is 1
	byPlace  bool    // there is one for each position of a draft
}

// maxDraft bounds the positions of a draft, whatever a page says.
const maxDraft = 256

// at is the quantity at one position of a draft.
func (q Quantity) at(position int) Quantity { return Quantity(fmt.Sprintf("%s_%d", q, position)) }

// quantityOf is what a reading tells of; false if it makes no sense.
func (n *name) quantityOf(r *reading) (Quantity, bool) {
	if !n.byPlace {
		return n.quantity, true
	}
	position, err := strconv.Atoi(r.label("position"))
	return n.quantity.at(position), err == nil && position >= 0 && position < maxDraft
}

// names are what vLLM, SGLang, TGI, llama.cpp, TensorRT-LLM, LMDeploy and the
// DCGM exporter call things. No two of them use the same name, so a page need
// not say whose it is.
var names = map[string]name{
	"vllm:num_requests_running":                          {quantity: Running},
	"vllm:num_requests_waiting":                          {quantity: Queued},
	"vllm:kv_cache_usage_perc":                           {quantity: KVShare, joined: largest},
	"vllm:gpu_cache_usage_perc":                          {quantity: KVShare, joined: largest},
	"vllm:prefix_cache_queries_total":                    {quantity: PrefixQueries},
	"vllm:prefix_cache_hits_total":                       {quantity: PrefixHits},
	"vllm:prompt_tokens_total":                           {quantity: PromptTokens},
	"vllm:prompt_tokens_cached_total":                    {quantity: CachedTokens},
	"vllm:generation_tokens_total":                       {quantity: GeneratedTokens},
	"vllm:num_preemptions_total":                         {quantity: Preemptions},
	"vllm:request_success_total":                         {quantity: Finished},
	"vllm:spec_decode_num_drafts_total":                  {quantity: SpecDrafts},
	"vllm:spec_decode_num_draft_tokens_total":            {quantity: SpecDraftTokens},
	"vllm:spec_decode_num_accepted_tokens_total":         {quantity: SpecAccepted},
	"vllm:spec_decode_num_accepted_tokens_per_pos_total": {quantity: SpecAcceptedAt, byPlace: true},
	"vllm:diffusion_num_denoising_steps_total":           {quantity: DiffusionSteps},
	"vllm:diffusion_num_canvas_positions_total":          {quantity: DiffusionPlaces},
	"vllm:diffusion_num_committed_tokens_total":          {quantity: DiffusionTokens},
	"vllm:time_to_first_token_seconds_sum":               {quantity: TTFTSum},
	"vllm:time_to_first_token_seconds_count":             {quantity: TTFTCount},
	"vllm:inter_token_latency_seconds_sum":               {quantity: TPOTSum},
	"vllm:inter_token_latency_seconds_count":             {quantity: TPOTCount},
	"vllm:e2e_request_latency_seconds_sum":               {quantity: E2ELSum},
	"vllm:e2e_request_latency_seconds_count":             {quantity: E2ELCount},
	"vllm:request_queue_time_seconds_sum":                {quantity: QueueSum},
	"vllm:request_queue_time_seconds_count":              {quantity: QueueCount},
	"sglang:num_running_reqs":                            {quantity: Running},
	"sglang:num_queue_reqs":                              {quantity: Queued},
	"sglang:token_usage":                                 {quantity: KVShare, joined: largest},
	"sglang:cache_hit_rate":                              {quantity: PrefixHitRate, joined: averaged},
	"sglang:cached_tokens_total":                         {quantity: CachedTokens},
	"sglang:prompt_tokens_total":                         {quantity: PromptTokens},
	"sglang:generation_tokens_total":                     {quantity: GeneratedTokens},
	"sglang:num_retracted_requests_total":                {quantity: Preemptions},
	"sglang:num_requests_total":                          {quantity: Finished},
	"sglang:time_to_first_token_seconds_sum":             {quantity: TTFTSum},
	"sglang:time_to_first_token_seconds_count":           {quantity: TTFTCount},
	"sglang:inter_token_latency_seconds_sum":             {quantity: TPOTSum},
	"sglang:inter_token_latency_seconds_count":           {quantity: TPOTCount},
	"sglang:e2e_request_latency_seconds_sum":             {quantity: E2ELSum},
	"sglang:e2e_request_latency_seconds_count":           {quantity: E2ELCount},
	"sglang:queue_time_seconds_sum":                      {quantity: QueueSum},
	"sglang:queue_time_seconds_count":                    {quantity: QueueCount},
	"tgi_batch_current_size":                             {quantity: Running},
	"tgi_queue_size":                                     {quantity: Queued},
	"tgi_request_input_length_sum":                       {quantity: PromptTokens},
	"tgi_request_generated_tokens_sum":                   {quantity: GeneratedTokens},
	"tgi_request_success":                                {quantity: Finished},
	"tgi_request_duration_sum":                           {quantity: E2ELSum},
	"tgi_request_duration_count":                         {quantity: E2ELCount},
	"tgi_request_queue_duration_sum":                     {quantity: QueueSum},
	"tgi_request_queue_duration_count":                   {quantity: QueueCount},
	"tgi_request_mean_time_per_token_duration_sum":       {quantity: TPOTSum},
	"tgi_request_mean_time_per_token_duration_count":     {quantity: TPOTCount},
	"llamacpp:requests_processing":                       {quantity: Running},
	"llamacpp:requests_deferred":                         {quantity: Queued},
	// Those from the cache are not among the prompt tokens here.
	"llamacpp:prompt_tokens_total":                 {quantity: PromptTokens, also: PrefixQueries},
	"llamacpp:prompt_tokens_cached_total":          {quantity: PrefixHits, also: PrefixQueries},
	"llamacpp:tokens_predicted_total":              {quantity: GeneratedTokens},
	"llamacpp:kv_cache_usage_ratio":                {quantity: KVShare, joined: largest},
	"trtllm_num_requests_running":                  {quantity: Running},
	"trtllm_num_requests_waiting":                  {quantity: Queued},
	"trtllm_kv_cache_utilization":                  {quantity: KVShare, joined: largest},
	"trtllm_kv_cache_hit_rate":                     {quantity: PrefixHitRate, joined: averaged},
	"trtllm_prompt_tokens_total":                   {quantity: PromptTokens},
	"trtllm_prompt_cached_tokens_total":            {quantity: CachedTokens},
	"trtllm_generation_tokens_total":               {quantity: GeneratedTokens},
	"trtllm_request_success_total":                 {quantity: Finished},
	"trtllm_time_to_first_token_seconds_sum":       {quantity: TTFTSum},
	"trtllm_time_to_first_token_seconds_count":     {quantity: TTFTCount},
	"trtllm_time_per_output_token_seconds_sum":     {quantity: TPOTSum},
	"trtllm_time_per_output_token_seconds_count":   {quantity: TPOTCount},
	"trtllm_e2e_request_latency_seconds_sum":       {quantity: E2ELSum},
	"trtllm_e2e_request_latency_seconds_count":     {quantity: E2ELCount},
	"trtllm_request_queue_time_seconds_sum":        {quantity: QueueSum},
	"trtllm_request_queue_time_seconds_count":      {quantity: QueueCount},
	"lmdeploy:num_requests_running":                {quantity: Running},
	"lmdeploy:num_requests_waiting":                {quantity: Queued},
	"lmdeploy:gpu_cache_usage_perc":                {quantity: KVShare, joined: largest},
	"lmdeploy:prefix_cache_hit_rate":               {quantity: PrefixHitRate, joined: averaged},
	"lmdeploy:prompt_tokens_total":                 {quantity: PromptTokens},
	"lmdeploy:cached_tokens_total":                 {quantity: CachedTokens},
	"lmdeploy:generation_tokens_total":             {quantity: GeneratedTokens},
	"lmdeploy:request_success_total":               {quantity: Finished},
	"lmdeploy:time_to_first_token_seconds_sum":     {quantity: TTFTSum},
	"lmdeploy:time_to_first_token_seconds_count":   {quantity: TTFTCount},
	"lmdeploy:time_per_output_token_seconds_sum":   {quantity: TPOTSum},
	"lmdeploy:time_per_output_token_seconds_count": {quantity: TPOTCount},
	"lmdeploy:e2e_request_latency_seconds_sum":     {quantity: E2ELSum},
	"lmdeploy:e2e_request_latency_seconds_count":   {quantity: E2ELCount},
	"lmdeploy:request_queue_time_seconds_sum":      {quantity: QueueSum},
	"lmdeploy:request_queue_time_seconds_count":    {quantity: QueueCount},
	"DCGM_FI_DEV_GPU_UTIL":                         {quantity: GPUShare, joined: averaged, scale: 0.01},
	"DCGM_FI_DEV_POWER_USAGE":                      {quantity: PowerWatts},
	"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION":         {quantity: EnergyJoules, scale: 0.001},
}

// read makes values of a page. A name that carries no value we know of is
// passed over, and so is what is no number.
func read(page []byte) (map[Quantity]float64, error) {
	values := map[Quantity]float64{}
	counts := map[Quantity]int{}
	err := parse(page, func(r reading) {
		n, ok := names[r.name]
		if !ok || !isFinite(r.value) {
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
		case counts[q] == 1:
			values[q] = v
		case n.joined == largest:
			values[q] = max(values[q], v)
		case n.joined == averaged:
			values[q] += (v - values[q]) / float64(counts[q])
		default:
			values[q] += v
		}
	})
	return values, err
}

func isFinite(f float64) bool { return f-f == 0 }
