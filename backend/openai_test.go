package backend_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport"
)

func events(payloads ...string) string {
	var b strings.Builder
	for _, p := range payloads {
		fmt.Fprintf(&b, "data: %s\n\n", p)
	}
	return b.String()
}

// Streams of servers with different variants of the OpenAI protocol are decoded correctly.
func TestOpenAIStreams(t *testing.T) {
	const (
		role   = `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`
		finish = `{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`
		usage  = `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9}}`
		done   = `[DONE]`
	)
	content := func(s, rest string) string {
		return fmt.Sprintf(`{"choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]%s}`, s, rest)
	}
	used := func(n int) string { return fmt.Sprintf(`,"usage":{"prompt_tokens":7,"completion_tokens":%d}`, n) }
	type event struct {
		Tokens int16
		Kind   tacho.TokenKind
	}
	for _, tc := range []struct {
		name   string
		stream string
		events []event
		text   string
		output int
		from   tacho.CountSource
		usage  *tacho.Usage
		cause  tacho.Cause
	}{
		{
			"an early role is not a token", events(role, content("a", ""), finish, usage, done),
			[]event{{}},
			"a", 9, tacho.FromUsage, &tacho.Usage{Prompt: 7, Completion: 9}, "",
		},
		{
			"usage missing", events(role, content("a", ""), content("b", ""), finish, done),
			[]event{{}, {}},
			"ab", 2, tacho.FromEvents, nil, "",
		},
		{
			"a token without text counts during the answer", events(role, content("a", ""), content("", ""), content("é", ""), `{"choices":[{"delta":{"content":""},"finish_reason":"length"}]}`, done),
			[]event{{}, {Kind: tacho.NoText}, {}},
			"aé", 3, tacho.FromEvents, nil, "",
		},
		{
			"not before it", events(`{"choices":[{"text":"","finish_reason":null}]}`, `{"choices":[{"text":"é"}]}`, `{"choices":[{"text":"","finish_reason":"stop"}]}`, done),
			[]event{{}},
			"é", 1, tacho.FromEvents, nil, "",
		},
		{
			"usage on the finish chunk", events(content("a", ""), content("b", ""), `{"choices":[{"delta":{"content":""},"finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":9}}`, done),
			[]event{{}, {}, {}},
			"ab", 9, tacho.FromUsage, &tacho.Usage{Prompt: 7, Completion: 9}, "",
		},
		{
			"details of usage", events(content("a", ""), finish, `{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":9,"prompt_tokens_details":{"cached_tokens":4},"completion_tokens_details":{"reasoning_tokens":5}}}`, done),
			[]event{{}},
			"a", 9, tacho.FromUsage, &tacho.Usage{Prompt: 7, Completion: 9, Cached: 4, Reasoning: 5, TellsCached: true}, "",
		},
		{
			"continuous usage counts tokens, also those without a text",
			events(`{"choices":[{"delta":{"role":"assistant","content":""}}]`+used(0)+`}`, content("a", used(1)), content("bcd", used(4)), content("", used(5)), `{"choices":[{"delta":{},"finish_reason":"length"}]`+used(5)+`}`, `{"choices":[]`+used(5)+`}`, done),
			[]event{{Tokens: 1}, {Tokens: 3}, {Tokens: 1}},
			"abcd", 5, tacho.FromUsage, &tacho.Usage{Prompt: 7, Completion: 5}, "",
		},
		{
			"continuous usage does not make an event without a text the first token",
			events(`{"choices":[{"text":""}]`+used(1)+`}`, `{"choices":[{"text":"ab"}]`+used(2)+`}`, `{"choices":[{"text":"","finish_reason":"length"}]`+used(2)+`}`, done),
			[]event{{Tokens: 1}},
			"ab", 2, tacho.FromUsage, &tacho.Usage{Prompt: 7, Completion: 2}, "",
		},
		{
			"zeros before the last chunk are not continuous usage",
			events(content("a", used(0)), content("b", used(0)), `{"choices":[{"delta":{"content":""},"finish_reason":"stop"}]`+used(2)+`}`, done),
			[]event{{}, {}},
			"ab", 2, tacho.FromUsage, &tacho.Usage{Prompt: 7, Completion: 2}, "",
		},
		{
			"token ids count, also without a text",
			events(`{"choices":[{"delta":{"content":"abc"},"token_ids":[1,2,3]}]}`, `{"choices":[{"delta":{"content":""},"token_ids":[4]}]}`, finish, done),
			[]event{{Tokens: 3}, {Tokens: 1}},
			"abc", 4, tacho.FromTokens, nil, "",
		},
		{
			"reasoning and tool calls",
			events(role, `{"choices":[{"delta":{"reasoning_content":"hm"}}]}`, `{"choices":[{"delta":{"reasoning":"so"}}]}`, content("a", ""),
				`{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}]}}]}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}}]}`, finish, done),
			[]event{{Kind: tacho.Reasoning}, {Kind: tacho.Reasoning}, {Kind: tacho.Content}, {Kind: tacho.ToolCall}, {Kind: tacho.ToolCall}},
			"hmsoaf{}", 5, tacho.FromEvents, nil, "",
		},
		{
			"a finish reason is end mark enough", events(content("a", ""), finish),
			[]event{{}},
			"a", 1, tacho.FromEvents, nil, "",
		},
		{
			"and so is the end mark alone", events(content("a", ""), done),
			[]event{{}},
			"a", 1, tacho.FromEvents, nil, "",
		},
		{
			"a NaN in the logits, SGLang", events(content("a", ""), `{"choices":[{"delta":{},"finish_reason":"stop","matched_stop":"NaN happened"}]}`, done),
			[]event{{}},
			"a", 1, tacho.FromEvents, nil, tacho.InBand,
		},
		{
			"abort", events(content("a", ""), `{"choices":[{"delta":{},"finish_reason":"abort"}]}`, done),
			[]event{{}},
			"a", 1, tacho.FromEvents, nil, tacho.InBand,
		},
		{
			"failure as a text", events(content("a", ""), `{"error":"gone"}`, done),
			[]event{{}},
			"a", 1, tacho.FromEvents, nil, tacho.InBand,
		},
		{
			"failure beside nothing", events(`{"object":"error","message":"gone","code":500}`),
			nil, "", 0, "", nil, tacho.InBand,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			kind := must.Get(backend.Find("openai-chat"))(t)
			rec := exchange(t, kind, pieces(tc.stream), textRequest("hi"))
			var got []event
			for _, e := range rec.Events {
				got = append(got, event{e.Tokens, e.Kind})
			}
			if diff := cmp.Diff(tc.events, got, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
			if rec.Text != tc.text || rec.Output != tc.output || rec.OutputFrom != tc.from {
				t.Errorf("text %q, output %d from %q, want %q, %d from %q", rec.Text, rec.Output, rec.OutputFrom, tc.text, tc.output, tc.from)
			}
			if diff := cmp.Diff(tc.usage, rec.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
			if f := rec.Failure; (f == nil) != (tc.cause == "") || f != nil && f.Cause != tc.cause {
				t.Errorf("failure %v, want %q", f, tc.cause)
			}
		})
	}
}

// OpenAI's own service rejects extensions of the protocol, and two names for one limit.
func TestOpenAIServiceGetsNoExtensions(t *testing.T) {
	for name, want := range map[string]string{
		"openai-chat":      `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hi"}]}],"max_completion_tokens":5,"stream":true,"stream_options":{"include_usage":true}}`,
		"openai-responses": `{"model":"m","input":"hi","max_output_tokens":5,"stream":true,"store":false}`,
	} {
		var body string
		srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			body = string(b)
		}))
		client := must.Get(transport.New(transport.Options{BaseURL: "http://api.openai.com", Dial: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, srv.Listener.Addr().String())
		}}))(t)
		b := must.Get(find(t, name).New(backend.Options{Client: client, Model: "m"}))(t)
		send(t.Context(), t, b, &tacho.Request{Input: tacho.Input{Text: "hi"}, MaxTokens: 5, IgnoreEOS: true})
		client.Close()
		srv.Close()
		if diff := cmp.Diff(want, body); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
