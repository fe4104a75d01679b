package backend_test

import "fmt"

// A dialect produces the events of one Kind of server for the conformance tests. A new Kind needs one entry in
// dialects.
type dialect struct {
	token   func(text string, n int) string // event with token n, starting at 1
	last    func(text string) string        // events that end a stream; text is the complete text
	empty   string                          // complete stream without a token
	failure string                          // event with the error "out of memory"
	done    string                          // sent even after a failure
	whole   string                          // complete response in one document
	counted bool                            // last carries the server's token counts, prompt 7 and output 3
	finish  string                          // finish reason in last

	lines      bool               // JSON lines instead of server-sent events
	unmarked   bool               // the stream has no end mark
	closes     bool               // a stream without events may be complete
	lastEvents func(seen int) int // number of token events in last, given the number before
}

// event frames a payload.
func (d *dialect) event(payload string) string {
	if d.lines {
		return payload + "\n"
	}
	return "data: " + payload + "\n\n"
}

// Documents shared by several kinds.
const (
	embeddingDocument = `{"id":"embd-1","object":"list","created":1,"model":"m","data":[{"index":0,"object":"embedding","embedding":[0.5,-1e-3]}],"usage":{"prompt_tokens":7,"total_tokens":7,"completion_tokens":0,"prompt_tokens_details":null}}`
	infinityDocument  = `{"object":"embedding","data":[{"object":"embedding","embedding":[0.5,-1e-3],"index":0}],"model":"m","usage":{"prompt_tokens":7,"total_tokens":7},"id":"infinity-1","created":1}`
)

// documents are the responses of kinds without text output.
var documents = map[string]string{
	"openai-embeddings":         `{"object":"list","data":[{"object":"embedding","index":0,"embedding":"AAAA"}],"model":"m","usage":{"prompt_tokens":7,"total_tokens":7}}`,
	"openai-embeddings-chat":    embeddingDocument,
	"openai-embeddings-clip":    embeddingDocument,
	"openai-embeddings-vlm2vec": embeddingDocument,
	"infinity-embeddings":       infinityDocument,
	"infinity-embeddings-clip":  infinityDocument,
	"vllm-pooling":              `{"id":"pool-1","object":"list","data":[{"index":0,"object":"pooling","data":[[0.5,1]]}],"usage":{"prompt_tokens":7,"total_tokens":7}}`,
	"vllm-rerank":               `{"id":"r","results":[{"index":0,"relevance_score":0.9}],"usage":{"total_tokens":7}}`,
}

var dialects = map[string]dialect{
	"vllm":              completions,
	"openai":            completions,
	"trtllm":            completions,
	"lmdeploy":          completions,
	"deepspeed-mii":     completions,
	"transformers":      completions,
	"lmdeploy-generate": lmdeployGenerate,
	"deepspeed-mii-generate": {
		token:   func(text string, _ int) string { return fmt.Sprintf("data: {\"text\": [%q]}\n\n", text) },
		last:    func(string) string { return completions.done },
		empty:   completions.done,
		failure: "data: {\"error\":\"out of memory\"}\n\n",
		whole:   `{"text":["abc"]}`,
	},
	"openai-chat":      chat,
	"openai-responses": responses,
	"openai-audio":     transcription,
	"sglang":           sglang,
	"triton":           triton,
	"triton-vllm":      tritonVLLM,
	"llamacpp":         llama,
	"ollama":           ollama(func(text string) string { return fmt.Sprintf(`"response":%q`, text) }),
	"ollama-chat":      ollama(func(text string) string { return fmt.Sprintf(`"message":{"role":"assistant","content":%q}`, text) }),
	"anthropic":        anthropic,
	"gemini":           gemini,
	"tgi": {
		token: func(text string, _ int) string {
			return fmt.Sprintf("data:{\"index\":1,\"token\":{\"id\":34,\"text\":%q,\"logprob\":-0.1,\"special\":false},\"generated_text\":null,\"details\":null}\n\n", text)
		},
		last: func(text string) string {
			// The last token of the trials is this special token.
			return fmt.Sprintf("data:{\"index\":3,\"token\":{\"id\":2,\"text\":\"</s>\",\"special\":true},\"generated_text\":%q,\"details\":{\"finish_reason\":\"eos_token\",\"generated_tokens\":3,\"seed\":null,\"input_length\":7}}\n\n", text)
		},
		lastEvents: func(int) int { return 1 },
		empty:      "data:{\"token\":null,\"generated_text\":\"\",\"details\":null}\n\n",
		failure:    "data:{\"error\":\"out of memory\",\"error_type\":\"generation\"}\n\n",
		whole:      `{"generated_text":"abc","details":{"finish_reason":"length","generated_tokens":3}}`,
		counted:    true, finish: "eos_token",
	},
}

var completions = dialect{
	token: func(text string, _ int) string {
		return fmt.Sprintf("data: {\"id\":\"cmpl-1\",\"object\":\"text_completion\",\"choices\":[{\"index\":0,\"text\":%q,\"logprobs\":null,\"finish_reason\":null}]}\n\n", text)
	},
	last:    openAILast(`"text":""`),
	empty:   "data: {\"choices\":[{\"index\":0,\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
	failure: "data: {\"error\":{\"message\":\"out of memory\",\"type\":\"InternalServerError\",\"param\":null,\"code\":500}}\n\n",
	done:    "data: [DONE]\n\n",
	whole:   `{"id":"cmpl-1","object":"text_completion","choices":[{"index":0,"text":"abc","finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`,
	counted: true, finish: "length",
}

var chat = dialect{
	token: func(text string, _ int) string {
		return fmt.Sprintf("data: {\"id\":\"chatcmpl-1\",\"object\":\"chat.completion.chunk\",\"choices\":[{\"index\":0,\"delta\":{\"content\":%q},\"finish_reason\":null}]}\n\n", text)
	},
	last:    openAILast(`"delta":{}`),
	empty:   "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\ndata: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
	failure: completions.failure,
	done:    completions.done,
	whole:   `{"id":"c","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"abc"},"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":3}}`,
	counted: true, finish: "length",
}

var transcription = dialect{
	token: func(text string, _ int) string {
		return fmt.Sprintf("data: {\"id\":\"trsc-1\",\"object\":\"transcription.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"delta\":{\"content\":%q}}]}\n\n", text)
	},
	last:    openAILast(`"delta":{"content":""}`),
	empty:   "data: {\"choices\":[{\"delta\":{\"content\":\"\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
	failure: completions.failure,
	done:    completions.done,
	whole:   `{"text":"abc","usage":{"type":"duration","seconds":1}}`,
	counted: true, finish: "length",
}

func openAILast(nothing string) func(string) string {
	return func(string) string {
		return "data: {\"choices\":[{\"index\":0," + nothing + ",\"finish_reason\":\"length\"}]}\n\n" +
			"data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"total_tokens\":10,\"completion_tokens\":3}}\n\n" +
			"data: [DONE]\n\n"
	}
}

var responses = dialect{
	token: func(text string, n int) string {
		begin := ""
		if n == 1 {
			begin = "event: response.created\ndata: {\"type\":\"response.created\",\"response\":{\"id\":\"r\",\"status\":\"in_progress\",\"error\":null,\"usage\":null}}\n\n" +
				"event: response.output_item.added\ndata: {\"type\":\"response.output_item.added\",\"item\":{\"type\":\"message\"}}\n\n"
		}
		return begin + fmt.Sprintf("event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":4,\"delta\":%q}\n\n", text)
	},
	last: func(text string) string {
		return fmt.Sprintf("event: response.output_text.done\ndata: {\"type\":\"response.output_text.done\",\"text\":%q}\n\n", text) +
			"event: response.incomplete\ndata: {\"type\":\"response.incomplete\",\"response\":{\"status\":\"incomplete\",\"error\":null,\"incomplete_details\":{\"reason\":\"max_output_tokens\"},\"usage\":{\"input_tokens\":7,\"output_tokens\":3,\"total_tokens\":10}}}\n\n"
	},
	empty:   "event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"status\":\"completed\",\"usage\":{\"input_tokens\":7,\"output_tokens\":0}}}\n\n",
	failure: "event: response.failed\ndata: {\"type\":\"response.failed\",\"response\":{\"status\":\"failed\",\"error\":{\"code\":\"server_error\",\"message\":\"out of memory\"}}}\n\n",
	whole:   `{"id":"r","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"abc"}]}]}`,
	counted: true, finish: "max_output_tokens",
}

// sglang streams increments here; TestSGLang covers the default format.
var sglang = dialect{
	token: func(text string, n int) string {
		return fmt.Sprintf("data: {\"text\":%q,\"output_ids\":[9],\"meta_info\":{\"id\":\"1\",\"finish_reason\":null,\"prompt_tokens\":7,\"completion_tokens\":%d,\"cached_tokens\":0}}\n\n", text, n)
	},
	last: func(string) string {
		return "data: {\"text\":\"\",\"output_ids\":[],\"meta_info\":{\"id\":\"1\",\"finish_reason\":{\"type\":\"length\",\"length\":3},\"prompt_tokens\":7,\"completion_tokens\":3,\"e2e_latency\":0.5}}\n\ndata: [DONE]\n\n"
	},
	lastEvents: func(seen int) int { return min(3-seen, 1) },
	empty:      "data: {\"text\":\"\",\"output_ids\":[],\"meta_info\":{\"finish_reason\":{\"type\":\"stop\"},\"completion_tokens\":0}}\n\ndata: [DONE]\n\n",
	failure:    "data: {\"error\":{\"message\":\"out of memory\",\"type\":\"internal_error\",\"code\":500}}\n\n",
	done:       completions.done,
	whole:      `{"text":"abc","output_ids":[1,2,3],"meta_info":{"finish_reason":{"type":"length"},"prompt_tokens":7,"completion_tokens":3}}`,
	counted:    true, finish: "length",
}

var lmdeployGenerate = dialect{
	token: func(text string, n int) string {
		return fmt.Sprintf("data: {\"text\":%q,\"output_ids\":[9],\"meta_info\":{\"prompt_tokens\":7,\"completion_tokens\":%d,\"finish_reason\":null}}\n\n", text, n)
	},
	last: func(string) string {
		return "data: {\"text\":\"\",\"output_ids\":[],\"meta_info\":{\"prompt_tokens\":7,\"completion_tokens\":3,\"finish_reason\":{\"type\":\"length\"}}}\n\ndata: [DONE]\n\n"
	},
	lastEvents: func(seen int) int { return min(3-seen, 1) },
	empty:      sglang.empty,
	failure:    completions.failure,
	done:       completions.done,
	whole:      sglang.whole,
	counted:    true, finish: "length",
}

var triton = dialect{
	token: func(text string, _ int) string {
		return fmt.Sprintf("data: {\"model_name\":\"ensemble\",\"model_version\":\"1\",\"sequence_end\":false,\"text_output\":%q}\n\n", text)
	},
	last:    func(string) string { return "" },
	empty:   "data: {\"model_name\":\"ensemble\",\"text_output\":\"\"}\n\n",
	failure: "data: {\"error\":\"out of memory\"}\n\n",
	whole:   `{"model_name":"ensemble","text_output":"abc"}`,

	unmarked: true, closes: true,
}

var tritonVLLM = dialect{
	token: func(text string, _ int) string {
		return fmt.Sprintf("data: {\"model_name\":\"m\",\"text_output\":%q,\"num_input_tokens\":7,\"num_output_tokens\":1,\"finish_reason\":null}\n\n", text)
	},
	last: func(text string) string {
		return fmt.Sprintf("data: {\"model_name\":\"m\",\"text_output\":\"\",\"num_input_tokens\":7,\"num_output_tokens\":%d,\"finish_reason\":\"length\"}\n\n", 3-len([]rune(text)))
	},
	lastEvents: func(seen int) int { return min(3-seen, 1) },
	empty:      "data: {\"text_output\":\"\",\"num_output_tokens\":0,\"finish_reason\":\"stop\"}\n\n",
	failure:    triton.failure,
	whole:      triton.whole,
	counted:    true, finish: "length",
	closes: true,
}

var llama = dialect{
	token: func(text string, n int) string {
		return fmt.Sprintf("data: {\"index\":0,\"content\":%q,\"tokens\":[278],\"stop\":false,\"id_slot\":0,\"tokens_predicted\":%d,\"tokens_evaluated\":7}\n\n", text, n)
	},
	last: func(string) string {
		return "data: {\"index\":0,\"content\":\"\",\"tokens\":[],\"stop\":true,\"stop_type\":\"limit\",\"tokens_predicted\":3,\"tokens_evaluated\":7,\"timings\":{\"cache_n\":0,\"prompt_ms\":12.5,\"predicted_ms\":30.25},\"prompt\":\"\\\"tokens\\\"\"}\n\n"
	},
	lastEvents: func(seen int) int { return min(3-seen, 1) },
	empty:      "data: {\"content\":\"\",\"tokens\":[],\"stop\":true,\"stop_type\":\"eos\"}\n\n",
	failure:    "data: {\"error\":{\"code\":500,\"message\":\"out of memory\",\"type\":\"server_error\"}}\n\n",
	whole:      `{"content":"abc","stop":true,"tokens_predicted":3,"tokens_evaluated":7}`,
	counted:    true, finish: "limit",
}

func ollama(member func(text string) string) dialect {
	return dialect{
		token: func(text string, _ int) string {
			return fmt.Sprintf("{\"model\":\"m\",\"created_at\":\"2026-01-01T00:00:00Z\",%s,\"done\":false}\n", member(text))
		},
		last: func(string) string {
			return fmt.Sprintf("{\"model\":\"m\",%s,\"done\":true,\"done_reason\":\"length\",\"total_duration\":5000000,\"prompt_eval_count\":7,\"eval_count\":3,\"eval_duration\":2000000}\n", member(""))
		},
		empty:   "{\"done\":true,\"done_reason\":\"stop\"}\n",
		failure: "{\"error\":\"out of memory\"}\n",
		whole:   `{"model":"m",` + member("abc") + `,"done":true,"done_reason":"length"}`,
		counted: true, finish: "length",
		lines: true,
	}
}

var anthropic = dialect{
	token: func(text string, n int) string {
		begin := ""
		if n == 1 {
			begin = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":4,\"cache_creation_input_tokens\":3,\"cache_read_input_tokens\":0,\"output_tokens\":1}}}\n\n" +
				"event: ping\ndata: {\"type\":\"ping\"}\n\n" +
				"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n"
		}
		return begin + fmt.Sprintf("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":%q}}\n\n", text)
	},
	last: func(string) string {
		return "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\n" +
			"event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"max_tokens\",\"stop_sequence\":null},\"usage\":{\"output_tokens\":3}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n"
	},
	empty:   "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	failure: "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"out of memory\"}}\n\n",
	whole:   `{"id":"m","type":"message","content":[{"type":"text","text":"abc"}],"stop_reason":"max_tokens","usage":{"input_tokens":7,"output_tokens":3}}`,
	counted: true, finish: "max_tokens",
}

var gemini = dialect{
	token: func(text string, n int) string {
		return fmt.Sprintf("data: {\"candidates\":[{\"content\":{\"parts\":[{\"text\":%q}],\"role\":\"model\"},\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":%d}}\n\n", text, n)
	},
	last: func(string) string {
		return "data: {\"candidates\":[{\"content\":{\"role\":\"model\"},\"finishReason\":\"MAX_TOKENS\",\"index\":0}],\"usageMetadata\":{\"promptTokenCount\":7,\"candidatesTokenCount\":3,\"totalTokenCount\":10}}\n\n"
	},
	empty:   "data: {\"candidates\":[{\"finishReason\":\"SAFETY\",\"index\":0}]}\n\n",
	failure: "data: {\"error\":{\"code\":503,\"message\":\"out of memory\",\"status\":\"UNAVAILABLE\"}}\n\n",
	whole:   `[{"candidates":[{"content":{"parts":[{"text":"abc"}]},"finishReason":"STOP"}]}]`,
	counted: true, finish: "MAX_TOKENS",
}
