package backend_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
)

func find(t *testing.T, name string) backend.Kind {
	t.Helper()
	return must.Get(backend.Find(name))(t)
}

// A response in one document contains no tokens and no end mark, and has one arrival time.
func TestDocuments(t *testing.T) {
	lines := &tacho.Request{ID: "r1", Input: tacho.Input{Text: "query\ndocument"}}
	for _, kind := range backend.Kinds {
		if !kind.Pools {
			continue
		}
		doc, ok := documents[kind.Name]
		if !ok {
			t.Errorf("%s has no document: add one, and it goes through all trials", kind.Name)
			continue
		}
		for name, tc := range map[string]struct {
			serve http.HandlerFunc
			want  outcome
		}{
			"whole":         {typed("application/json", doc), outcome{}},
			"in pieces":     {pieces(bytewise(doc + "\n")...), outcome{}},
			"cut":           {reset(doc[:len(doc)/2]), outcome{Cause: tacho.Reset, Status: 200}},
			"cut in order":  {typed("application/json", doc[:len(doc)/2]), outcome{Cause: tacho.Malformed, Status: 200, Message: "not a JSON document"}},
			"nothing":       {typed("application/json", ""), outcome{Cause: tacho.Truncated, Status: 200, Message: "end mark"}},
			"no results":    {typed("application/json", `{"object":"list","data":[]}`), outcome{Cause: tacho.Malformed, Status: 200, Message: "contains no results"}},
			"failure in it": {typed("application/json", `{"error":{"message":"out of memory"}}`), outcome{Cause: tacho.InBand, Status: 200, Message: "out of memory"}},
			"login page":    {typed("text/html", "<html><title>Log in</title></html>"), outcome{Cause: tacho.Malformed, Status: 200, Message: "Log in"}},
			"refused":       {status(429, "application/json", `{"error":{"message":"slow down"}}`), outcome{Cause: tacho.Status, Status: 429, Message: "slow down"}},
		} {
			rec := exchange(t, kind, tc.serve, lines)
			got := outcome{}
			if f := rec.Failure; f != nil {
				got = outcome{Cause: f.Cause, Status: f.Status, Message: f.Message}
				if strings.Contains(f.Message, tc.want.Message) {
					got.Message = tc.want.Message
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s, %s (-want +got):\n%s", kind.Name, name, diff)
			}
			if len(rec.Events) != 0 || rec.Output != 0 {
				t.Errorf("%s, %s: %d tokens", kind.Name, name, rec.Output)
			}
			if rec.OK() && (rec.Usage == nil || rec.Usage.Prompt != 7) {
				t.Errorf("%s, %s: usage %+v", kind.Name, name, rec.Usage)
			}
		}
	}
	for want, r := range map[int]*tacho.Request{
		1: lines, 3: {Input: tacho.Input{Text: "a"}, Extra: map[string]any{"input": []any{"a", "b", "c"}}},
	} {
		if rec := exchange(t, find(t, "openai-embeddings"), typed("application/json", documents["openai-embeddings"]), r); rec.Inputs != want {
			t.Errorf("%d texts to embed, want %d", rec.Inputs, want)
		}
	}
	three := []tacho.Message{{Role: "user", Content: "query"}, {Role: "user", Content: "a"}, {Role: "user", Content: "b"}}
	for want, in := range map[int]tacho.Input{1: lines.Input, 2: {Messages: three}} {
		if rec := exchange(t, find(t, "vllm-rerank"), typed("application/json", documents["vllm-rerank"]), &tacho.Request{Input: in}); rec.Inputs != want {
			t.Errorf("%d documents to rank, want %d", rec.Inputs, want)
		}
	}
	b := newBackend(t, "vllm-rerank", "http://127.0.0.1:1", backend.Options{})
	if _, err := b.Prepare(textRequest("a query alone")); err == nil || !strings.Contains(err.Error(), "line") {
		t.Errorf("a prompt without documents: %v", err)
	}
}

// The time of a line is the arrival time of its newline.
func TestLineTimes(t *testing.T) {
	for _, kind := range backend.Kinds {
		d := dialects[kind.Name]
		if !d.lines {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			a, b := d.token("a", 1), d.token("b", 2)
			live := 0
			serve := func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				w.Header().Set("Content-Type", "application/x-ndjson")
				for _, p := range []string{
					a[:len(a)-1], // 1 s
					"\n",         // 2 s: the first token
					b + d.token("c", 3) + strings.TrimSuffix(d.last("abc"), "\n"), // 3 s: two more, and an end without a newline
				} {
					time.Sleep(time.Second)
					_, _ = io.WriteString(w, p)
					_ = http.NewResponseController(w).Flush()
				}
			}
			inBubble(t, kind, serve, backend.Options{OnToken: func(n int, _ bool, _ time.Duration) { live += n }}, func(b tacho.Backend) {
				rec := send(t.Context(), t, b, textRequest("hi"))
				if rec.Failure != nil || len(rec.Events) != 3 {
					t.Fatalf("%v, %d events", rec.Failure, len(rec.Events))
				}
				if first, second := rec.Events[0].At, rec.Events[1].At; first != 2*time.Second || second != 3*time.Second || live != 3 {
					t.Errorf("%s: tokens at %v and %v, %d reported live", kind.Name, first, second, live)
				}
			})
		})
	}
}

// By default, SGLang streams the complete text so far. It skips events if the client is slow, so one event may
// carry several tokens.
func TestSGLangStreams(t *testing.T) {
	event := func(text, ids, meta string) string {
		return `{"text":` + quoted(text) + `,"output_ids":[` + ids + `],"meta_info":{` + meta + `"finish_reason":null}}`
	}
	last := func(text, ids, meta string) string {
		return strings.Replace(event(text, ids, meta), "null}}", `{"type":"length","length":4}}}`, 1)
	}
	for name, tc := range map[string]struct {
		stream string
		tokens []int16
		text   string
		from   tacho.CountSource
	}{
		"cumulative":             {events(event("a", "1", `"completion_tokens":1,`), event("abc", "1,2,3", `"completion_tokens":3,`), last("abcd", "1,2,3,4", `"completion_tokens":4,`), "[DONE]"), []int16{1, 2, 1}, "abcd", tacho.FromUsage},
		"increments":             {events(event("a", "1", `"completion_tokens":1,`), event("bc", "2,3", `"completion_tokens":3,`), last("d", "4", `"completion_tokens":4,`), "[DONE]"), []int16{1, 2, 1}, "abcd", tacho.FromUsage},
		"a token without a text": {events(event("a", "1", `"completion_tokens":1,`), event("a", "1,2", `"completion_tokens":2,`), last("ab", "1,2,3", `"completion_tokens":3,`), "[DONE]"), []int16{1, 1, 1}, "ab", tacho.FromUsage},
		"no counts":              {events(event("a", "1", ""), event("abc", "1,2,3", ""), last("abcd", "1,2,3,4", ""), "[DONE]"), []int16{1, 2, 1}, "abcd", tacho.FromTokens},
		"neither counts nor ids": {events(event("a", "", ""), event("abc", "", ""), last("abc", "", ""), "[DONE]"), []int16{0, 0}, "abc", tacho.FromEvents},
	} {
		rec := exchange(t, find(t, "sglang"), pieces(tc.stream), textRequest("hi"))
		var got []int16
		for _, e := range rec.Events {
			got = append(got, e.Tokens)
		}
		if diff := cmp.Diff(tc.tokens, got); diff != "" || rec.Failure != nil || rec.Text != tc.text || rec.OutputFrom != tc.from {
			t.Errorf("%s: %v, text %q from %q (-want +got):\n%s", name, rec.Failure, rec.Text, rec.OutputFrom, diff)
		}
	}
	// LMDeploy's events are always increments, even if members are missing.
	for name, tc := range map[string]struct {
		stream string
		tokens []int16
	}{
		"counts":                 {events(event("a", "1", `"completion_tokens":1,`), event("bc", "2,3", `"completion_tokens":3,`), last("d", "4", `"completion_tokens":4,`), "[DONE]"), []int16{1, 2, 1}},
		"no counts":              {events(event("a", "1", ""), event("bc", "2,3", ""), last("d", "4", ""), "[DONE]"), []int16{1, 2, 1}},
		"neither counts nor ids": {events(event("a", "", ""), event("bc", "", ""), last("d", "", ""), "[DONE]"), []int16{0, 0, 0}},
	} {
		rec := exchange(t, find(t, "lmdeploy-generate"), pieces(tc.stream), textRequest("hi"))
		var got []int16
		for _, e := range rec.Events {
			got = append(got, e.Tokens)
		}
		if diff := cmp.Diff(tc.tokens, got); diff != "" || rec.Failure != nil || rec.Text != "abcd" {
			t.Errorf("%s: %v, text %q (-want +got):\n%s", name, rec.Failure, rec.Text, diff)
		}
	}
	aborted := `{"text":"a","output_ids":[1],"meta_info":{"completion_tokens":1,"finish_reason":{"type":"abort","message":"too long","status_code":400}}}`
	if rec := exchange(t, find(t, "sglang"), pieces(events(aborted, "[DONE]")), textRequest("hi")); rec.Failure == nil || rec.Failure.Message != "too long" {
		t.Errorf("aborted: %v", rec.Failure)
	}
	nan := `{"text":"a","output_ids":[1],"meta_info":{"completion_tokens":1,"finish_reason":{"type":"stop","matched":"NaN happened"}}}`
	if rec := exchange(t, find(t, "sglang"), pieces(events(nan, "[DONE]")), textRequest("hi")); rec.Failure == nil || rec.Finish != "NaN happened" {
		t.Errorf("a NaN in the logits: %v, finish reason %q", rec.Failure, rec.Finish)
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// The decoders distinguish the token kinds of each protocol.
func TestTokenKinds(t *testing.T) {
	typedDelta := func(kind, field string) string {
		return `{"type":"content_block_delta","delta":{"type":"` + kind + `","` + field + `":"x"}}`
	}
	for name, stream := range map[string]string{
		"anthropic":        events(typedDelta("thinking_delta", "thinking"), typedDelta("signature_delta", "signature"), typedDelta("text_delta", "text"), typedDelta("input_json_delta", "partial_json"), `{"type":"message_stop"}`),
		"openai-responses": events(`{"type":"response.reasoning_text.delta","delta":"x"}`, `{"type":"response.output_text.delta","delta":"x"}`, `{"type":"response.function_call_arguments.delta","delta":"x"}`, `{"type":"response.completed","response":{}}`),
		"ollama-chat":      `{"message":{"content":"","thinking":"x"}}` + "\n" + `{"message":{"content":"x"}}` + "\n" + `{"message":{"content":"","tool_calls":[{}]}}` + "\n" + `{"done":true,"done_reason":"stop"}` + "\n",
		"gemini":           events(`{"candidates":[{"content":{"parts":[{"text":"x","thought":true}]}}]}`, `{"candidates":[{"content":{"parts":[{"text":"x"}]}}]}`, `{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":3,"thoughtsTokenCount":2,"cachedContentTokenCount":4}}`),
	} {
		rec := exchange(t, find(t, name), pieces(stream), textRequest("hi"))
		var got []tacho.TokenKind
		for _, e := range rec.Events {
			got = append(got, e.Kind)
		}
		if diff := cmp.Diff([]tacho.TokenKind{tacho.Reasoning, tacho.Content, tacho.ToolCall}, got); diff != "" || rec.Failure != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, rec.Failure, diff)
		}
		if name == "gemini" {
			if diff := cmp.Diff(&tacho.Usage{Prompt: 7, Completion: 5, Cached: 4, Reasoning: 2, TellsCached: true}, rec.Usage); diff != "" {
				t.Errorf("gemini's usage (-want +got):\n%s", diff)
			}
		}
	}
}

// A null count of cached tokens means the count is unknown, in every protocol.
func TestNullIsUnknown(t *testing.T) {
	for name, stream := range map[string]string{
		"openai":           events(`{"choices":[{"text":"x"}]}`, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":null}}}`, "[DONE]"),
		"openai-responses": events(`{"type":"response.output_text.delta","delta":"x"}`, `{"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":1,"input_tokens_details":{"cached_tokens":null}}}}`),
		"anthropic":        events(`{"type":"message_start","message":{"usage":{"input_tokens":7,"cache_read_input_tokens":null}}}`, `{"type":"content_block_delta","delta":{"type":"text_delta","text":"x"}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}`, `{"type":"message_stop"}`),
		"gemini":           events(`{"candidates":[{"content":{"parts":[{"text":"x"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":1,"cachedContentTokenCount":null}}`),
		"sglang":           events(`{"text":"x","meta_info":{"prompt_tokens":7,"completion_tokens":1,"cached_tokens":null,"finish_reason":{"type":"length"}}}`, "[DONE]"),
		"llamacpp":         events(`{"content":"x","stop":false}`, `{"content":"","stop":true,"tokens_evaluated":7,"tokens_predicted":1,"timings":{"cache_n":null}}`),
	} {
		rec := exchange(t, find(t, name), pieces(stream), textRequest("hi"))
		if rec.Failure != nil || rec.Usage == nil || rec.Usage.TellsCached || rec.Usage.Cached != 0 || rec.Usage.Prompt != 7 {
			t.Errorf("%s: %+v, %v", name, rec.Usage, rec.Failure)
		}
	}
}

// The server's own timings are recorded next to the client's.
func TestServerTimes(t *testing.T) {
	for name, tc := range map[string]struct {
		kind, stream string
		want         tacho.ServerTimes
	}{
		"vllm":          {"vllm", events(`{"choices":[{"text":"a","finish_reason":"stop"}]}`, `{"choices":[],"usage":{"completion_tokens":1},"metrics":{"time_to_first_token_ms":12.5,"generation_time_ms":40,"queue_time_ms":2.5,"mean_itl_ms":1}}`, "[DONE]"), tacho.ServerTimes{Queue: 2500 * time.Microsecond, TTFT: 12500 * time.Microsecond, Decode: 40 * time.Millisecond}},
		"llama's chat":  {"openai-chat", events(`{"choices":[{"delta":{"content":"a"}}]}`, `{"choices":[{"delta":{},"finish_reason":"stop"}],"timings":{"prompt_ms":3,"predicted_ms":4.5}}`, "[DONE]"), tacho.ServerTimes{Prefill: 3 * time.Millisecond, Decode: 4500 * time.Microsecond}},
		"llama":         {"llamacpp", llama.token("a", 1) + llama.last("a"), tacho.ServerTimes{Prefill: 12500 * time.Microsecond, Decode: 30250 * time.Microsecond}},
		"ollama":        {"ollama", dialects["ollama"].token("a", 1) + `{"done":true,"done_reason":"stop","total_duration":5000,"load_duration":1000,"prompt_eval_duration":2000,"eval_duration":1500}` + "\n", tacho.ServerTimes{Queue: 1000, Prefill: 2000, Decode: 1500, Total: 5000}},
		"sglang":        {"sglang", sglang.token("a", 1) + sglang.last("a"), tacho.ServerTimes{Total: 500 * time.Millisecond}},
		"negative time": {"sglang", strings.Replace(sglang.token("a", 1)+sglang.last("a"), "0.5", "1e300", 1), tacho.ServerTimes{}},
	} {
		rec := exchange(t, find(t, tc.kind), pieces(tc.stream), textRequest("hi"))
		if rec.Failure != nil || rec.Server == nil {
			t.Errorf("%s: %v, times %v", name, rec.Failure, rec.Server)
			continue
		}
		if diff := cmp.Diff(tc.want, *rec.Server); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
