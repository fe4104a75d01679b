package backend_test

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
)

func raw(text string) tacho.Message {
	var m tacho.Message
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		panic(err) // the test is wrong
	}
	return m
}

var picture = raw(`{"role":"user","content":[{"type":"text","text":"what is <it>?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}`)

// toolTalk is a conversation with a tool call, in OpenAI's format.
var toolTalk = []tacho.Message{
	{Role: "system", Content: "be"},
	{Role: "user", Content: "hi"},
	raw(`{"role":"assistant","content":"","tool_calls":[{"id":"c1","type":"function","function":{"name":"look","arguments":"{\"at\":1}"}},{"id":"c2","type":"function","function":{"name":"hear","arguments":""}}]}`),
	raw(`{"role":"tool","tool_call_id":"c1","content":"42"}`), raw(`{"role":"tool","tool_call_id":"c2","content":"43"}`),
}

var tools = map[string]any{
	"tools":       json.RawMessage(`[{"type":"function","function":{"name":"look","description":"d","parameters":{"type":"object"}}},{"type":"function","function":{"name":"hear"}}]`),
	"tool_choice": map[string]any{"type": "function", "function": map[string]any{"name": "look"}},
}

// Every protocol encodes media and tools given in OpenAI's format.
func TestMediaAndTools(t *testing.T) {
	const (
		sound = `{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"BBBB","format":"wav"}}]}`
		film  = `{"role":"user","content":[{"type":"video_url","video_url":{"url":"data:video/mp4;base64,CCCC"}}]}`
		away  = `{"role":"user","content":[{"type":"image_url","image_url":"http://127.0.0.1/x.png"}]}`
		local = `{"role":"user","content":[{"type":"image_url","image_url":{"url":"file:///x.png"}}]}`
	)
	one := func(text string) []tacho.Message { return []tacho.Message{raw(text)} }
	for _, tc := range []struct {
		name, kind string
		messages   []tacho.Message
		extra      map[string]any
		want       string // the checked members of the body, or a part of the error
	}{
		{"picture", "openai-chat", []tacho.Message{picture}, nil, `{"messages":[{"role":"user","content":[{"type":"text","text":"what is <it>?"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`},
		{"sound", "openai-chat", one(sound), nil, `{"messages":[` + sound + `]}`},
		{"film", "openai-chat", one(film), nil, `{"messages":[` + film + `]}`},
		{"local", "openai-chat", one(local), nil, `{"messages":[` + local + `]}`},
		{"picture", "anthropic", []tacho.Message{picture}, nil, `{"messages":[{"role":"user","content":[{"type":"text","text":"what is <it>?"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]}]}`},
		{"picture away", "anthropic", one(away), nil, `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"http://127.0.0.1/x.png"}}]}]}`},
		{"local", "anthropic", one(local), nil, "--custom-ensure-client-side-data"},
		{"sound", "anthropic", one(sound), nil, "does not support audio"},
		{"film", "anthropic", one(film), nil, "does not support video"},
		{"picture", "gemini", []tacho.Message{picture}, nil, `{"contents":[{"role":"user","parts":[{"text":"what is <it>?"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}]}`},
		{"sound", "gemini", one(sound), nil, `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"audio/wav","data":"BBBB"}}]}]}`},
		{"film", "gemini", one(film), nil, `{"contents":[{"role":"user","parts":[{"inlineData":{"mimeType":"video/mp4","data":"CCCC"}}]}]}`},
		{"picture away", "gemini", one(away), nil, `{"contents":[{"role":"user","parts":[{"fileData":{"fileUri":"http://127.0.0.1/x.png"}}]}]}`},
		{"picture", "openai-responses", []tacho.Message{picture}, nil, `{"input":[{"role":"user","content":[{"type":"input_text","text":"what is <it>?"},{"type":"input_image","image_url":"data:image/png;base64,AAAA"}]}]}`},
		{"sound", "openai-responses", one(sound), nil, `{"input":[{"role":"user","content":[{"type":"input_audio","input_audio":{"data":"BBBB","format":"wav"}}]}]}`},
		{"film", "openai-responses", one(film), nil, "does not support video"},
		{"picture", "ollama-chat", []tacho.Message{picture}, nil, `{"messages":[{"role":"user","content":"what is <it>?","images":["AAAA"]}]}`},
		{"sound", "ollama-chat", one(sound), nil, "does not support audio"},
		{"picture away", "ollama-chat", one(away), nil, "only as data"},
		{"picture", "ollama", []tacho.Message{picture}, nil, `{"prompt":"what is <it>?","images":["AAAA"],"raw":false}`},
		{"talk", "ollama", []tacho.Message{picture, {Role: "user", Content: "b"}}, nil, "cannot send messages"},
		{"picture", "vllm-rerank", []tacho.Message{picture, picture}, nil, "cannot send images"},
		{"picture", "vllm", []tacho.Message{picture}, nil, "openai-chat"},
		{"two pictures", "infinity-embeddings-clip", one(strings.Replace(string(picture.Raw), `{"type":"text","text":"what is <it>?"}`, `{"type":"image_url","image_url":{"url":"http://127.0.0.1/x.png"}}`, 1)), nil, "accepts one image"},
		{"picture away", "infinity-embeddings-clip", one(away), nil, `{"input":"http://127.0.0.1/x.png","modality":"image"}`},
		{"film", "infinity-embeddings-clip", one(`{"role":"user","content":[{"type":"video_url","video_url":{"url":"http://127.0.0.1/x.mp4"}}]}`), nil, "does not support video"},
		{"talk with a picture", "openai-embeddings-clip", []tacho.Message{picture, {Role: "user", Content: "b"}}, nil, `{"messages":[` + string(picture.Raw) + `,{"role":"user","content":"b"}]}`},
		{"several prompts", "openai-embeddings-chat", []tacho.Message{{Role: "user", Content: "b"}}, map[string]any{"input": []any{"a", "b"}}, "--random-batch-size"},
		{"unknown part", "anthropic", one(`{"role":"user","content":[{"type":"smell"}]}`), nil, `"smell"`},
		{"bad arguments", "gemini", one(`{"role":"assistant","content":null,"tool_calls":[{"function":{"name":"look","arguments":"[1]"}}]}`), nil, "not a JSON object"},

		{"tools", "anthropic", toolTalk, tools, `{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"look","input":{"at":1}},{"type":"tool_use","id":"c2","name":"hear","input":{}}]},` +
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"42"},{"type":"tool_result","tool_use_id":"c2","content":"43"}]}],"system":"be",` +
			`"tools":[{"name":"look","description":"d","input_schema":{"type":"object"}},{"name":"hear","input_schema":{"type":"object","properties":{}}}],"tool_choice":{"type":"tool","name":"look"}}`},
		{"tools", "gemini", toolTalk, tools, `{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":1}}},{"functionCall":{"name":"hear","args":{}}}]},` +
			`{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"result":"42"}}}]},{"role":"user","parts":[{"functionResponse":{"name":"hear","response":{"result":"43"}}}]}],"systemInstruction":{"parts":[{"text":"be"}]},` +
			`"tools":[{"functionDeclarations":[{"name":"look","description":"d","parameters":{"type":"object"}},{"name":"hear"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["look"]}}}`},
		{"tools", "openai-responses", toolTalk, tools, `{"input":[{"role":"system","content":"be"},{"role":"user","content":"hi"},{"type":"function_call","call_id":"c1","name":"look","arguments":"{\"at\":1}"},{"type":"function_call","call_id":"c2","name":"hear","arguments":"{}"},` +
			`{"type":"function_call_output","call_id":"c1","output":"42"},{"type":"function_call_output","call_id":"c2","output":"43"}],` +
			`"tools":[{"type":"function","name":"look","description":"d","parameters":{"type":"object"}},{"type":"function","name":"hear"}],"tool_choice":{"type":"function","name":"look"}}`},
		{"tools", "ollama-chat", toolTalk, map[string]any{"tools": tools["tools"], "tool_choice": "auto"}, `{"messages":[{"role":"system","content":"be"},{"role":"user","content":"hi"},{"role":"assistant","content":"","tool_calls":[{"function":{"name":"look","arguments":{"at":1}}},{"function":{"name":"hear","arguments":{}}}]},` +
			`{"role":"tool","content":"42","tool_name":"look"},{"role":"tool","content":"43","tool_name":"hear"}],"tools":` + string(tools["tools"].(json.RawMessage)) + `}`},
		{"forced tool", "ollama-chat", toolTalk, tools, "Ollama's model always chooses freely"},
		{"own tools", "anthropic", []tacho.Message{{Role: "user", Content: "a"}}, map[string]any{"tools": json.RawMessage(`[{"name":"x","input_schema":{}}]`), "tool_choice": map[string]any{"type": "any"}}, `{"tools":[{"name":"x","input_schema":{}}],"tool_choice":{"type":"any"}}`},
		{"any tool", "anthropic", []tacho.Message{{Role: "user", Content: "a"}}, map[string]any{"tools": tools["tools"], "tool_choice": "required"}, `{"tool_choice":{"type":"any"}}`},
	} {
		t.Run(tc.kind+"/"+tc.name, func(t *testing.T) {
			r := &tacho.Request{Input: tacho.Input{Messages: tc.messages}, MaxTokens: 5, Extra: tc.extra}
			if !strings.HasPrefix(tc.want, "{") {
				b := newBackend(t, tc.kind, "http://127.0.0.1:1", backend.Options{Model: "m"})
				if _, err := b.Prepare(r); err == nil || !strings.Contains(err.Error(), tc.want) {
					t.Errorf("%v, want a refusal with %q", err, tc.want)
				}
				return
			}
			body, _ := sent(t, tc.kind, backend.Options{Model: "m"}, r)
			var got, want map[string]any
			must.Do(t, json.Unmarshal([]byte(body), &got))
			must.Do(t, json.Unmarshal([]byte(tc.want), &want))
			for name := range got {
				if _, ok := want[name]; !ok {
					delete(got, name)
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", body, diff)
			}
		})
	}
}

// The form matches the reference: the audio first, then the fields. Extra fields override others.
func TestAudioForm(t *testing.T) {
	half, k := 0.5, 3
	options := backend.Options{Model: "m", Sampling: backend.Sampling{Temperature: &half, TopK: &k}, Extra: map[string]any{"language": nil, "prompt": "before"}}
	request := func() *tacho.Request {
		return &tacho.Request{ID: "r1", MaxTokens: 7, Extra: map[string]any{"stream_include_usage": false}, Input: tacho.Input{Audio: &tacho.Audio{Name: "a.flac", Data: []byte("fLaC\r\n--x")}}}
	}
	body, req := sent(t, "openai-audio", options, request())
	_, params, err := mime.ParseMediaType(req.Header.Get("Content-Type"))
	if err != nil || req.URL.Path != "/v1/audio/transcriptions" {
		t.Fatalf("%s, %s, %v", req.URL, req.Header, err)
	}
	var got [][4]string
	form := multipart.NewReader(strings.NewReader(body), params["boundary"])
	for {
		p, err := form.NextPart()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		data := must.Get(io.ReadAll(p))(t)
		got = append(got, [4]string{p.FormName(), p.FileName(), p.Header.Get("Content-Type"), string(data)})
	}
	want := [][4]string{
		{"file", "a.flac", "audio/flac", "fLaC\r\n--x"},
		{"model", "", "", "m"},
		{"max_completion_tokens", "", "", "7"},
		{"stream", "", "", "true"},
		{"stream_include_usage", "", "", "false"},
		{"stream_continuous_usage_stats", "", "", "true"},
		{"temperature", "", "", "0.5"},
		{"top_k", "", "", "3"},
		{"prompt", "", "", "before"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	again, _ := sent(t, "openai-audio", options, request())
	other := request()
	other.ID = "r2"
	elsewhere, req := sent(t, "openai-audio", backend.Options{Model: "m", Endpoint: "/v1/audio/translations"}, other)
	if again != body || elsewhere[:40] == body[:40] || req.URL.Path != "/v1/audio/translations" {
		t.Errorf("equal requests are not equal, or others are: %s, %q", req.URL, elsewhere[:40])
	}
	if plain, _ := sent(t, "openai-audio", backend.Options{Model: "m"}, request()); !strings.Contains(plain, "name=\"language\"\r\n\r\nen\r\n") {
		t.Error("the language is missing")
	}
	silent := request()
	silent.Input.Audio.Data = nil
	if _, err := newBackend(t, "openai-audio", "http://127.0.0.1:1", options).Prepare(silent); err == nil || !strings.Contains(err.Error(), "empty") {
		t.Errorf("an empty sound: %v", err)
	}
}

// vLLM's chunks carry the number of tokens so far and a finish reason for each segment of a long audio file.
// OpenAI's own events differ.
func TestTranscriptionStreams(t *testing.T) {
	const usage = `,"usage":{"prompt_tokens":100,"total_tokens":0,"completion_tokens":`
	chunk := func(text, rest string) string {
		return `{"object":"transcription.chunk","choices":[{"delta":{"content":` + quoted(text) + `}` + rest
	}
	for name, tc := range map[string]struct {
		stream string
		tokens []int16
		text   string
		usage  *tacho.Usage
		cause  tacho.Cause
	}{
		"pieces of a long sound": {
			events(chunk("a", `}]`+usage+`1}}`), chunk("b", `,"finish_reason":"stop"}]`+usage+`2}}`), chunk("cd", `}]`+usage+`4}}`), chunk("", `,"finish_reason":"stop"}]`+usage+`5}}`), `{"choices":[]`+usage+`5}}`, "[DONE]"),
			[]int16{1, 1, 2, 1},
			"abcd", &tacho.Usage{Prompt: 100, Completion: 5}, "",
		},
		"cut after a piece": {events(chunk("a", `,"finish_reason":"stop"}]}`)), []int16{0}, "a", nil, tacho.Truncated},
		"OpenAI's events": {
			events(`{"type":"transcript.text.delta","delta":"I"}`, `{"type":"transcript.text.delta","delta":" see"}`, `{"type":"transcript.text.done","text":"I see","usage":{"type":"tokens","total_tokens":45,"input_tokens":14,"input_token_details":{"text_tokens":10},"output_tokens":31}}`),
			[]int16{0, 0},
			"I see", &tacho.Usage{Prompt: 14, Completion: 31}, "",
		},
		"OpenAI's seconds": {events(`{"type":"transcript.text.delta","delta":"I"}`, `{"type":"transcript.text.done","text":"I","usage":{"type":"duration","seconds":3}}`), []int16{0}, "I", nil, ""},
		"a text about it":  {events(chunk(`"transcript.text.done"`, `}]}`), "[DONE]"), []int16{0}, `"transcript.text.done"`, nil, ""},
		"segments":         {events(`{"type":"transcript.text.segment","text":"x"}`, `{"type":"transcript.text.delta","delta":"x"}`, `{"type":"transcript.text.done","text":"x"}`), []int16{0}, "x", nil, ""},
	} {
		rec := exchange(t, find(t, "openai-audio"), pieces(tc.stream), textRequest("RIFF"))
		var got []int16
		for _, e := range rec.Events {
			got = append(got, e.Tokens)
		}
		if diff := cmp.Diff(tc.tokens, got); diff != "" || causeOf(rec) != tc.cause || rec.Text != tc.text {
			t.Errorf("%s: %v, text %q (-want +got):\n%s", name, rec.Failure, rec.Text, diff)
		}
		if diff := cmp.Diff(tc.usage, rec.Usage); diff != "" {
			t.Errorf("%s: usage (-want +got):\n%s", name, diff)
		}
	}
}

// A message with media is sent unchanged next to a quoted answer.
func TestMediaBesideQuotes(t *testing.T) {
	r := &tacho.Request{MaxTokens: 1, Input: tacho.Input{Messages: []tacho.Message{picture, {Role: "assistant", Answer: 1}, {Role: "user", Content: "and?"}}}}
	r.Quote([]tacho.Answer{{Text: "a cat", Tokens: 2}})
	body, _ := sent(t, "openai-chat", backend.Options{}, r)
	want := `"messages":[` + string(picture.Raw) + `,{"role":"assistant","content":"a cat"},{"role":"user","content":"and?"}]`
	if !strings.Contains(body, want) {
		t.Errorf("%s, want %s", body, want)
	}
}
