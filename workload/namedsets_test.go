package workload_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/workload"
)

// TestNamedSets checks the prompts made from rows of the datasets vLLM's benchmark knows
// by name.
func TestNamedSets(t *testing.T) {
	long := words(1100, "w")
	for _, c := range []struct {
		hub, rows string
		o         workload.Options
		want      []string // text or messages, then output tokens
		note      string
	}{
		{hub: "philschmid/mt-bench", rows: `{"turns":["first","second"]}`, want: []string{"user:first 256"}},
		{hub: "openai/openai_humaneval", rows: `{"task_id":"1","prompt":"def f():","canonical_solution":"x"}`, want: []string{"def f(): 256"}},
		{hub: "openai/gsm8k", rows: `{"question":"how many?","answer":"5"}`, want: []string{"how many? 256"}},
		{
			hub: "Aeala/ShareGPT_Vicuna_unfiltered", rows: share(10, 20) + "\n" + share(3, 20) + "\n" + share(1025, 20),
			want: []string{words(9, "q10") + " 20"},
		},
		{
			hub: "Aeala/ShareGPT_Vicuna_unfiltered", rows: share(3, 20), o: workload.Options{Output: workload.Fixed(7)},
			want: []string{words(2, "q3") + " 7"}, // the bounds apply to lengths from the data
		},
		{ // the first two turns regardless of role; shorter conversations are skipped
			hub: "Aeala/ShareGPT_Vicuna_unfiltered", want: []string{"it is a b c 5"},
			rows: `{"conversations":[{"from":"human","value":"alone a b c"}]}` + "\n" + `{"conversations":[{"from":"gpt","value":"it is a b c"},{"from":"human","value":"oh is it so"}]}`,
		},
		{hub: "AI-MO/NuminaMath-1.5", rows: `{"problem":"a b c d","answer":"5","solution":"a b c d e f"}`, want: []string{"a b c d 7"}},
		{hub: "Lin-Chen/MMStar", rows: `{"question":"which colour?\nOptions: A: red, B: blue"}`, want: []string{"which colour? 128"}},
		{
			hub: "AI-MO/NuminaMath-CoT", rows: `{"problem":"` + long + `","solution":"a b c d"}` + "\n" + `{"problem":"short","solution":"a b c d"}`,
			want: []string{long + " 5"},
		},
		{
			hub: "mgoin/mlperf-inference-llama2-data", rows: `{"system_prompt":"be brief","question":"who are you?","output":"a b c d e"}`,
			want: []string{"system:be brief user:who are you? 6"},
		},
		{
			hub: "zed-industries/zeta", rows: `{"events":"edit","input":"code","output":"before <|editable_region_start|> a b"}`,
			want: []string{"edit\n\ncode 4"},
		},
		{
			hub: "vdaita/edit_5k_char", rows: `{"code":"c1","change_request":"r1","norm_distance":0.2}` + "\n" + `{"code":"c2","change_request":"r2","norm_distance":0.9}`,
			o: workload.Options{Distance: workload.Range{High: 0.5}}, want: []string{"Change this file:\n\nc1\n\nas follows, and write all of it:\n\nr1 4000"},
		},
		{
			hub: "yale-nlp/MMVU", rows: `{"question":"which?","choices":{"B":"two","A":"one","C":""},"video":"http://127.0.0.1/v.mp4"}`,
			want: []string{"which? A.one B.two C. 128"}, note: "the column video of 1 rows was not sent",
		},
		{
			hub: "lmarena-ai/VisionArena-Chat", rows: `{"conversation":[[{"role":"user","content":"what is it?"}],[{"role":"assistant","content":"x"}]],"images":[{"bytes":"iVBORw0KGgo=","path":"a"}]}`,
			want: []string{"user:what is it? 128"},
		},
	} {
		c.o.Hub, c.o.Path, c.o.Messages, c.o.Media = c.hub, write(t, "rows.jsonl", c.rows+"\n"), true, true
		w := make1(t, "hf", c.o)
		var got []string
		for i := uint64(0); ; i++ {
			s, err := w.Session(i)
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			q := s.Turns[0].Request
			parts := []string{q.Input.Text}
			for _, m := range q.Input.Messages {
				parts = append(parts, m.Role+":"+strings.TrimSpace(m.Content))
			}
			got = append(got, fmt.Sprint(strings.TrimSpace(strings.Join(parts, " ")), " ", q.MaxTokens))
			if strings.Contains(c.rows, "bytes") && !strings.Contains(string(q.Input.Messages[0].Raw), `"url":"data:image/png;base64,iVBORw0KGgo="`) {
				t.Errorf("%s: the picture is not sent: %s", c.hub, q.Input.Messages[0].Raw)
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.hub, diff)
		}
		if notes := strings.Join(w.Notes(), "\n"); !strings.Contains(notes, c.note) || c.note == "" && notes != "" {
			t.Errorf("%s: notes %q, want %q", c.hub, notes, c.note)
		}
	}
}

// TestOTelMessages checks that messages of OpenTelemetry's semantic conventions, in OTLP
// JSON or in one attribute each, become OpenAI messages. Answers come from the server.
func TestOTelMessages(t *testing.T) {
	text := func(s string) string { return fmt.Sprintf(`{"stringValue":%q}`, s) }
	pair := func(key, value string) string { return fmt.Sprintf(`{"key":%q,"value":%s}`, key, value) }
	span := func(trace string, start int, attributes ...string) string {
		tokens := []string{pair("gen_ai.usage.input_tokens", `{"intValue":"30"}`), pair("gen_ai.usage.output_tokens", `{"intValue":"7"}`), pair("other", `{"boolValue":true}`)}
		return fmt.Sprintf(`{"traceId":%q,"startTimeUnixNano":"%d000000000","endTimeUnixNano":"%d500000000","attributes":[%s]}`, trace, start, start, strings.Join(append(tokens, attributes...), ","))
	}
	part := func(s string) string {
		return `{"kvlistValue":{"values":[` + pair("role", text("user")) + `,` + pair("parts", `{"arrayValue":{"values":[{"kvlistValue":{"values":[`+pair("type", text("text"))+`,`+pair("content", text(s))+`]}}]}}`) + `]}}`
	}
	spans := []string{
		span("a", 1, pair("gen_ai.system_instructions", text(`[{"type":"text","content":"be good"}]`)), pair("gen_ai.input.messages", `{"arrayValue":{"values":[`+part("weather?")+`]}}`),
			pair("gen_ai.output.messages", text(`[{"role":"assistant","parts":[{"type":"reasoning","content":"hm"},{"type":"text","content":"sunny"}],"finish_reason":"stop"}]`))),
		span("a", 2, pair("gen_ai.input.messages", text(`[{"role":"user","parts":[{"type":"text","content":"weather?"}]},{"role":"assistant","parts":[{"type":"text","content":"sunny"}]},`+
			`{"role":"assistant","parts":[{"type":"tool_call","id":"c1","name":"look","arguments":{"at":"home"}}]},{"role":"tool","parts":[{"type":"tool_call_response","id":"c1","response":"rain"}]}]`))),
		span("b", 3, pair("gen_ai.prompt.0.role", text("user")), pair("gen_ai.prompt.0.content", text("old style")), pair("gen_ai.completion.0.content", text("yes"))),
	}
	w := make1(t, "otel", workload.Options{Path: write(t, "s.jsonl", `{"resourceSpans":[{"scopeSpans":[{"spans":[`+strings.Join(spans, ",")+`]}]}]}`+"\n"), Messages: true})
	var got []string
	for i := range uint64(2) {
		s := must.Get(w.Session(i))(t)
		for _, turn := range s.Turns {
			var line []string
			for _, m := range turn.Request.Input.Messages {
				line = append(line, fmt.Sprintf("%s:%s%s", m.Role, m.Content, m.Raw))
				if m.Answer > 0 {
					line = append(line, fmt.Sprint("answer ", m.Answer))
				}
			}
			got = append(got, fmt.Sprint(strings.Join(line, " "), " ", turn.Request.InputTokens))
		}
	}
	want := []string{
		"system:be good user:weather? 30",
		`user:weather? assistant: answer 1 assistant:{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":\"home\"}"}}]} tool:rain{"role":"tool","tool_call_id":"c1","content":"rain"} 23`,
		"user:old style 30",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
