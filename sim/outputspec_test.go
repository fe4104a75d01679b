package sim

import (
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/words"
)

// said is the simulator's answer to "a b c" with the given number of tokens.
func said(tokens int) string {
	var p prompt
	p.AddText("a b c")
	return string((&generation{prompt: p}).text(nil, 0, tokens))
}

// streamed returns the text, the number of token events, the last choice and the
// usage of a streamed answer.
func streamed(t *testing.T, opt Options, path, body string) (text string, tokens int, last map[string]any, usage int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, opt)
		res := post(t, c, path, body)
		for _, e := range events(t, res.Body, time.Now()) {
			var chunk struct {
				Choices []map[string]any `json:"choices"`
				Usage   *openaiUsage     `json:"usage"`
			}
			if e.data == "[DONE]" {
				continue
			}
			if err := json.Unmarshal([]byte(e.data), &chunk); err != nil {
				t.Fatalf("%s: %v", e.data, err)
			}
			if chunk.Usage != nil {
				usage = chunk.Usage.CompletionTokens
			}
			if len(chunk.Choices) == 0 {
				continue
			}
			last = chunk.Choices[0]
			delta, _ := last["delta"].(map[string]any)
			if delta["role"] != nil {
				continue
			}
			tokens++
			var v any
			_ = json.Unmarshal([]byte(e.data), &v) // it was decoded before
			text += textOf(v)
			if calls, ok := delta["tool_calls"].([]any); ok {
				text += calls[0].(map[string]any)["function"].(map[string]any)["arguments"].(string)
			}
		}
	})
	return text, tokens, last, usage
}

// An answer ends at a stop string or a stop token and reports the reason as vLLM
// does. A possible beginning of a stop string is held back until then.
func TestStops(t *testing.T) {
	spoken := strings.Fields(said(8))
	var p prompt
	p.AddText("a b c")
	fourth := words.Output(p.Seed, 3)
	for _, tt := range []struct {
		name, more string
		text       string
		tokens     int
		reason     any
	}{
		{"a word", `"stop":"` + spoken[3] + `"`, said(3) + " ", 4, spoken[3]},
		{"the first word", `"stop":["nowhere","` + " " + spoken[0] + `"]`, "", 1, " " + spoken[0]},
		{"across words", `"stop":"` + spoken[2][2:] + " " + spoken[3][:2] + `"`, said(3)[:13], 4, spoken[2][2:] + " " + spoken[3][:2]},
		{"kept", `"stop":"` + spoken[3] + `","include_stop_str_in_output":true`, said(4), 4, spoken[3]},
		{"one letter", `"stop":"` + spoken[0][:1] + `"`, " ", 1, spoken[0][:1]},
		{"nowhere", `"stop":"nowhere"`, said(8), 8, nil},
		{"a token", `"stop_token_ids":[` + string(appendJSON(nil, fourth)) + `]`, said(3), 4, float64(fourth)},
		{"not before", `"stop":"` + spoken[1] + `","min_tokens":8`, said(8), 8, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			body := `{"prompt":"a b c","max_tokens":8,"stream":true,"stream_options":{"include_usage":true},` + tt.more + `}`
			text, tokens, last, usage := streamed(t, Options{}, "/v1/completions", body)
			finish := finishLength
			if tt.reason != nil {
				finish = finishStop
			}
			if text != tt.text || tokens != tt.tokens || usage != tt.tokens || last["finish_reason"] != finish || last["stop_reason"] != tt.reason {
				t.Errorf("%q in %d events, usage %d, last %v;\nwant %q, %d, %s, %v", text, tokens, usage, last, tt.text, tt.tokens, finish, tt.reason)
			}
		})
	}
}

// Every dialect with stop strings ends there and reports the stop in its format.
// Some servers keep the string in the answer. They find it only at the end of a
// token, because they check after sending the token.
func TestStopsInEveryDialect(t *testing.T) {
	word := strings.Fields(said(8))[3]
	across := said(4)[13:18] // from within the third token into the fourth
	for _, tt := range []struct {
		conversation
		kept   bool   // the string is part of the answer
		finish string // with STOP for the string
	}{
		{conversation{engine: "anthropic", path: "/v1/messages", body: `{"max_tokens":8,"stream":true,"messages":[{"role":"user","content":"a b c"}],"stop_sequences":["nowhere","STOP"]}`}, false, `"stop_reason":"stop_sequence","stop_sequence":"STOP"`},
		{conversation{engine: "anthropic", path: "/v1/messages", whole: true, body: `{"max_tokens":8,"messages":[{"role":"user","content":"a b c"}],"stop_sequences":["STOP"]}`}, false, `"stop_reason":"stop_sequence","stop_sequence":"STOP"`},
		{conversation{engine: "tgi", path: "/generate_stream", body: `{"inputs":"a b c","parameters":{"max_new_tokens":8,"details":true,"stop":["nowhere","STOP"]}}`}, true, `"finish_reason":"stop_sequence","generated_tokens":4`},
		{conversation{engine: "tgi", path: "/generate", whole: true, body: `{"inputs":"a b c","parameters":{"max_new_tokens":8,"details":true,"stop":["STOP"]}}`}, true, `"finish_reason":"stop_sequence","generated_tokens":4`},
		{conversation{engine: "tgi", path: "/v1/completions", body: `{"prompt":"a b c","max_tokens":8,"stream":true,"stop":"STOP"}`}, false, `"finish_reason":"stop_sequence"`},
		{conversation{engine: "sglang", path: "/generate", cumulative: true, body: `{"text":"a b c","sampling_params":{"max_new_tokens":8,"stop":["nowhere","STOP"]},"stream":true}`}, false, `"finish_reason":{"type":"stop","matched":"STOP"}`},
		{conversation{engine: "sglang", path: "/generate", whole: true, body: `{"text":"a b c","sampling_params":{"max_new_tokens":8,"stop":"STOP"}}`}, false, `"finish_reason":{"type":"stop","matched":"STOP"}`},
		{conversation{engine: "llamacpp", path: "/completion", body: `{"prompt":"a b c","n_predict":8,"stream":true,"stop":["nowhere","STOP"]}`}, false, `"stop_type":"word","stopping_word":"STOP"`},
		{conversation{engine: "llamacpp", path: "/completion", whole: true, body: `{"prompt":"a b c","n_predict":8,"stop":["STOP"]}`}, false, `"stop_type":"word","stopping_word":"STOP"`},
		{conversation{engine: "ollama", path: "/api/generate", body: `{"prompt":"a b c","options":{"num_predict":8,"stop":["nowhere","STOP"]}}`}, false, `"done_reason":"stop"`},
		{conversation{engine: "ollama", path: "/api/chat", whole: true, body: `{"stream":false,"messages":[{"role":"user","content":"a b c"}],"options":{"num_predict":8,"stop":["STOP"]}}`}, false, `"done_reason":"stop"`},
	} {
		for _, stop := range []string{word, across} {
			t.Run(tt.engine+" "+tt.path+" "+stop, func(t *testing.T) {
				want, tokens, finish := strings.TrimSuffix(said(4), stop), 4, finishStop
				switch {
				case stop == across && tt.kept:
					want, tokens, finish = said(8), 8, finishLength
				case stop == across:
					want = said(4)[:13]
				case tt.kept:
					want = said(4)
				}
				synctest.Test(t, func(t *testing.T) {
					s, client := start(t, Options{Engine: tt.engine})
					body := must.Get(io.ReadAll(post(t, client, tt.path, strings.ReplaceAll(tt.body, "STOP", stop)).Body))(t)
					if text, _ := readText(t, &tt.conversation, body); text != want {
						t.Errorf("%q, want %q, in\n%s", text, want, body)
					}
					words := strings.ReplaceAll(tt.finish, "STOP", stop)
					if finish == finishStop && !strings.Contains(string(body), words) {
						t.Errorf("no %s in\n%s", words, body)
					}
					truth := s.Truth()
					if len(truth) != 1 || truth[0].Output != tokens || truth[0].Finish != finish {
						t.Errorf("truth %+v, want %d tokens and %s", truth, tokens, finish)
					}
				})
			})
		}
	}
}

// A natural stop is a token without text. It counts, and its event contains the
// finish reason.
func TestStopTokenHasAnEvent(t *testing.T) {
	for _, path := range []string{"/v1/completions", "/v1/chat/completions"} {
		text, tokens, last, usage := streamed(t, Options{Profile: testProfile()}, path,
			`{"prompt":"a b c","messages":[{"role":"user","content":"a b c"}],"max_tokens":9,"stream":true,"stream_options":{"include_usage":true}}`)
		if text != said(2) || tokens != 3 || usage != 3 || last["finish_reason"] != finishStop || textOf(map[string]any{"choices": []any{last}}) != "" {
			t.Errorf("%s: %q in %d events, usage %d, last %v; want 2 words and a stop without text", path, text, tokens, usage, last)
		}
	}
}

// Constrained answers are valid JSON of the requested schema.
func TestForms(t *testing.T) {
	const object = `"parameters":{"type":"object","properties":{"city":{"type":"string"},"days":{"type":"integer"},"units":{"enum":["C","F"]}}}`
	const schema = `{"type":"object","properties":{"list":{"type":"array","minItems":2,"items":{"type":["boolean","null"]}},"ä\"":{"anyOf":[{"const":null}]}}}`
	const tools = `"tools":[{"type":"function","function":{"name":"other"}},{"type":"function","function":{"name":"weather",` + object + `}}]`
	for _, tt := range []struct {
		name, more string
		finish     string
		keys       string
	}{
		{"json_object", `"response_format":{"type":"json_object"}`, finishStop, "answer"},
		{"json_schema", `"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":` + schema + `}}`, finishStop, `list ä"`},
		{"structured_outputs", `"structured_outputs":{"json":` + schema + `}`, finishStop, `list ä"`},
		{"to the end", `"response_format":{"type":"json_object"},"ignore_eos":true`, finishLength, "answer"},
		{"a tool", `"tool_choice":{"type":"function","function":{"name":"weather"}},` + tools, finishStop, "city days units"},
		{"any tool", `"tool_choice":"required",` + tools, "tool_calls", "answer"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			text, tokens, last, usage := streamed(t, Options{Profile: testProfile(), ToolParser: true}, "/v1/chat/completions",
				`{"messages":[{"role":"user","content":"a b c"}],"max_tokens":64,"stream":true,"stream_options":{"include_usage":true},`+tt.more+`}`)
			var got map[string]any
			if err := json.Unmarshal([]byte(text), &got); err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			for key := range strings.FieldsSeq(tt.keys) {
				if _, ok := got[key]; !ok {
					t.Errorf("no %s in %s", key, text)
				}
			}
			if tokens != usage || last["finish_reason"] != tt.finish {
				t.Errorf("%d events, usage %d, last %v; want %s", tokens, usage, last, tt.finish)
			}
			if whole := wholeOf(t, "/v1/chat/completions", `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":64,`+tt.more+`}`); !strings.Contains(whole, string(quoted(nil, text))) {
				t.Errorf("whole: %s, want %s in it", whole, text)
			}
		})
	}
}

func wholeOf(t *testing.T, path, body string) (answer string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, Options{Profile: testProfile(), ToolParser: true})
		b, err := io.ReadAll(post(t, c, path, body).Body)
		if err != nil || !json.Valid(b) {
			t.Fatalf("%v: %s", err, b)
		}
		answer = string(b)
	})
	return answer
}

// Each choice is sent with its log probabilities, and counts.
func TestChoices(t *testing.T) {
	for path, want := range map[string]string{
		"/v1/completions":      `{"text_offset":[0,5,10],"token_logprobs":[-0.125,-0.125,-0.125],"tokens":[`,
		"/v1/chat/completions": `{"content":[{"token":`,
	} {
		body := `{"prompt":"a b c","messages":[{"role":"user","content":"a b c"}],"max_tokens":3,"n":2,"logprobs":` +
			map[string]string{"/v1/completions": "1", "/v1/chat/completions": `true,"top_logprobs":1`}[path]
		whole := wholeOf(t, path, body+`,"ignore_eos":true}`)
		if strings.Count(whole, want) != 2 || !strings.Contains(whole, `"index":1`) || !strings.Contains(whole, `"completion_tokens":6`) {
			t.Errorf("%s: %s\nwant twice %s and 6 tokens", path, whole, want)
		}
		_, events, last, usage := streamed(t, Options{}, path, body+`,"stream":true,"stream_options":{"include_usage":true}}`)
		if events != 6 || usage != 6 || last["index"] != 1.0 || last["logprobs"] == nil {
			t.Errorf("%s: %d events, usage %d, last %v; want 3 for each of 2", path, events, usage, last)
		}
	}
}

func TestEcho(t *testing.T) {
	for body, want := range map[string]string{
		`{"prompt":"a b c","max_tokens":2,"echo":true,"stream":true}`:  "a b c" + said(2),
		`{"prompt":"a b c","max_tokens":0,"echo":true,"stream":true}`:  "a b c",
		`{"prompt":"a \"b","max_tokens":0,"echo":true,"stream":true}`:  `a "b`,
		`{"prompt":[0,1],"max_tokens":0,"echo":true,"stream":true}`:    words.Decode([]int32{0, 1}),
		`{"prompt":"a b c","max_tokens":2,"echo":false,"stream":true}`: said(2),
	} {
		if text, _, _, _ := streamed(t, Options{}, "/v1/completions", body); text != want {
			t.Errorf("%s: %q, want %q", body, text, want)
		}
	}
}
