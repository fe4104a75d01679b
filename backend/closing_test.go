package backend

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
)

// The event ending an answer counts as a token only if the server counted one token more than received. The event
// shapes are from vLLM, llama.cpp, SGLang, Ollama and gateways; > marks the expected last token event.
func TestClosingEventIsATokenIfTheServerCountsOne(t *testing.T) {
	const (
		text   = `{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" a","logprobs":null,"finish_reason":null,"stop_reason":null}]}`
		stop   = `{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"stop","stop_reason":7}]}`
		length = `{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"","logprobs":null,"finish_reason":"length","stop_reason":null}]}`
		role   = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
		delta  = `{"choices":[{"index":0,"delta":{"content":" a"},"finish_reason":null}]}`
		blank  = `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop","stop_reason":7}]}`
		apart  = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
		usage3 = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}`
		usage2 = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2,"total_tokens":11}}`
		usage1 = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":1,"total_tokens":10}}`
		usage0 = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":0,"total_tokens":9}}`
		usage7 = `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16}}`
		done   = `[DONE]`

		textDelta = `{"type":"response.output_text.delta","delta":" a"}`
		completed = `{"type":"response.completed","response":{"usage":{"input_tokens":9,"output_tokens":3}}}`
		exactly   = `{"type":"response.completed","response":{"usage":{"input_tokens":9,"output_tokens":2}}}`

		block       = `{"type":"content_block_delta","delta":{"type":"text_delta","text":" a"}}`
		messageEnd  = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`
		messageStop = `{"type":"message_stop"}`

		line     = `{"model":"m","response":" a","done":false}`
		lastLine = `{"model":"m","response":"","done":true,"done_reason":"stop","prompt_eval_count":9,"eval_count":3}`

		candidate = `{"candidates":[{"content":{"parts":[{"text":" a"}]}}]}`
		finished  = `{"candidates":[{"content":{"parts":[{"text":""}]},"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":3}}`
	)
	for name, tc := range map[string]struct {
		kind   Kind
		stream []string
		events int
	}{
		"the stop token":                   {vllm, []string{text, text, ">" + stop, usage3, done}, 3},
		"half a character at the limit":    {vllm, []string{text, text, ">" + length, usage3, done}, 3},
		"no token":                         {vllm, []string{text, ">" + text, stop, usage2, done}, 2},
		"no token count":                   {vllm, []string{text, ">" + text, stop, done}, 2},
		"several tokens an event, and one": {vllm, []string{text, text, ">" + stop, usage7, done}, 3},
		"one token without text":           {vllm, []string{">" + length, usage1, done}, 1},
		"nothing generated":                {vllm, []string{stop, usage0, done}, 0},
		"chat, the stop token":             {openAIChat, []string{role, delta, delta, ">" + blank, usage3, done}, 3},
		"chat, one token without text":     {openAIChat, []string{role, ">" + strings.Replace(blank, "stop", "length", 1), usage1, done}, 1},
		"chat, the end apart and counted":  {openAIChat, []string{role, delta, delta, ">" + apart, usage3, done}, 3},
		"chat, the end apart":              {openAIChat, []string{role, delta, ">" + delta, apart, usage2, done}, 2},
		"chat, several tokens an event":    {openAIChat, []string{role, delta, ">" + delta, apart, usage7, done}, 2},
		"responses, the stop token":        {openAIResponses, []string{textDelta, textDelta, ">" + completed}, 3},
		"responses, tokens without text":   {openAIResponses, []string{">" + completed}, 1},
		"anthropic, tokens without text":   {anthropicMessages, []string{">" + messageEnd, messageStop}, 1},
		"responses, no token":              {openAIResponses, []string{textDelta, ">" + textDelta, exactly}, 2},
		"anthropic, the stop token":        {anthropicMessages, []string{block, block, ">" + messageEnd, messageStop}, 3},
		"ollama, the stop token":           {ollamaGenerate, []string{line, line, ">" + lastLine}, 3},
		"gemini, the stop token":           {geminiStream, []string{candidate, candidate, ">" + finished}, 3},
		"gemini, several tokens an event":  {geminiStream, []string{candidate, ">" + candidate, strings.Replace(finished, ":3", ":9", 1)}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			var stream strings.Builder
			last := -1
			for _, payload := range tc.stream {
				payload, marked := strings.CutPrefix(payload, ">")
				if tc.kind.framing == serverSent {
					payload = "data: " + payload
				}
				stream.WriteString(payload + "\n")
				if marked {
					last = stream.Len() - 1
				}
				if tc.kind.framing == serverSent {
					stream.WriteString("\n")
				}
			}
			rec := read(tc.kind, []byte(stream.String()))
			if len(rec.Events) != tc.events || int(rec.Last()) != last {
				t.Errorf("%d events, the last at byte %d: want %d, and byte %d", len(rec.Events), rec.Last(), tc.events, last)
			}
			if empty := tc.events == 0; rec.OK() == empty || empty && rec.Failure.Cause != tacho.Empty {
				t.Errorf("failure %v", rec.Failure)
			}
		})
	}
}

// LiteLLM sends [DONE] at the end of every stream, as in OpenAI's chat protocol. After the end of the answer,
// [DONE] is ignored. Before, it does not end the answer.
func TestDoneAfterTheEndIsIgnored(t *testing.T) {
	for kind, stream := range map[*Kind]string{
		&openAIResponses:   `data: {"type":"response.output_text.delta","delta":"a"}` + "\n\n" + `data: {"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"},"usage":{"output_tokens":1}}}` + "\n\n",
		&anthropicMessages: `data: {"type":"content_block_delta","delta":{"type":"text_delta","text":"a"}}` + "\n\n" + `data: {"type":"message_delta","usage":{"output_tokens":1}}` + "\n\n" + `data: {"type":"message_stop"}` + "\n\n",
		&geminiStream:      `data: {"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"STOP"}],"usageMetadata":{"candidatesTokenCount":1}}` + "\n\n",
		&textGeneration:    `data:{"token":{"text":"a"},"generated_text":"a","details":{"finish_reason":"length","generated_tokens":1,"input_length":3}}` + "\n\n",
		&llamaCPP:          `data: {"content":"a","tokens":[1],"stop":true,"stop_type":"limit","tokens_predicted":1}` + "\n\n",
	} {
		const done = "data: [DONE]\n\n"
		if rec := read(*kind, []byte(stream+done)); rec.Failure != nil || rec.Output != 1 || len(rec.Events) != 1 {
			t.Errorf("%s: %v, %d tokens in %d events", kind.Name, rec.Failure, rec.Output, len(rec.Events))
		}
		first, _, _ := strings.Cut(stream, "\n\n")
		if rec := read(*kind, []byte(first+"\n\ndata: oops\n\n")); rec.Failure == nil || rec.Failure.Cause != tacho.Malformed {
			t.Errorf("%s, nonsense behind it: %v", kind.Name, rec.Failure)
		}
		if rec := read(*kind, []byte(done)); rec.OK() {
			t.Errorf("%s: the mark alone is a success", kind.Name)
		}
	}
}
