package backend_test

import "testing"

// The next turn of a conversation quotes only the content of an answer, even if a chunk carries content and
// reasoning.
func TestQuotedContent(t *testing.T) {
	t.Parallel()
	for kind, stream := range map[string]string{
		"openai-chat": events(`{"choices":[{"delta":{"reasoning_content":"hm "}}]}`, `{"choices":[{"delta":{"reasoning_content":"so. ","content":"The "}}]}`,
			`{"choices":[{"delta":{"content":"answer"}}]}`, `{"choices":[{"delta":{"tool_calls":[{"function":{"name":"look","arguments":"{}"}}]},"finish_reason":"stop"}]}`, "[DONE]"),
		"openai-responses": events(`{"type":"response.reasoning_text.delta","delta":"hm "}`, `{"type":"response.output_text.delta","delta":"The "}`,
			`{"type":"response.output_text.delta","delta":"answer"}`, `{"type":"response.completed","response":{}}`),
		"anthropic": events(`{"type":"content_block_delta","delta":{"type":"thinking_delta","thinking":"hm "}}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"The "}}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"answer"}}`, `{"type":"message_stop"}`),
		"gemini": events(`{"candidates":[{"content":{"parts":[{"text":"hm ","thought":true},{"text":"The "}]}}]}`,
			`{"candidates":[{"content":{"parts":[{"text":"answer"}]},"finishReason":"STOP"}]}`),
		"ollama-chat": `{"message":{"thinking":"hm "}}` + "\n" + `{"message":{"thinking":"so. ","content":"The "}}` + "\n" + `{"message":{"content":"answer"},"done":true,"done_reason":"stop"}` + "\n",
	} {
		rec := exchange(t, find(t, kind), pieces(stream), textRequest("hi"))
		if rec.Failure != nil || rec.Answer != "The answer" || len(rec.Text) <= len(rec.Answer) {
			t.Errorf("%s: quoted %q of %q, %v", kind, rec.Answer, rec.Text, rec.Failure)
		}
	}
}
