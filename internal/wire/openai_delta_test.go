package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/wire"
)

// A reading is an OpenAIDelta without its buffers.
type reading struct {
	Choices  int
	Kind     wire.OpenAIKind
	Text     string
	Blank    bool
	TokenIDs int
	Finish   string
	Usage    wire.OpenAICounts
	HasUsage bool
	Error    string
	Failed   bool
}

func readingOf(d *wire.OpenAIDelta) reading {
	return reading{d.Choices, d.Kind, string(d.Text), d.Blank, d.TokenIDs, string(d.Finish), d.Usage, d.HasUsage, string(d.Error), d.Failed}
}

// decode reads chunk with an OpenAIDelta used for other chunks before.
func decode(t testing.TB, chunk string) (reading, error) {
	t.Helper()
	var d wire.OpenAIDelta
	full := `{"choices":[{"text":"before","delta":{"reasoning":"x"},"finish_reason":"stop","token_ids":[1]}],"usage":{"prompt_tokens":1,"completion_tokens":2},"error":"old","object":"error","message":"older"}`
	must.Do(t, d.Decode([]byte(full)))
	err := d.Decode([]byte(chunk))
	return readingOf(&d), err
}

var chunks = []struct {
	name, chunk string
	want        reading
}{
	{
		"vLLM completion", `{"id":"cmpl-1","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":" the","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}`,
		reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: " the"},
	},
	{
		"finish with text", `{"choices":[{"index":0,"text":".","finish_reason":"length"}]}`,
		reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: ".", Finish: "length"},
	},
	{"empty finish reason is none", `{"choices":[{"text":"a","finish_reason":""}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "a"}},
	{"role", `{"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`, reading{Choices: 1}},
	{"no text yet", `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":null}]}`, reading{Choices: 1, Blank: true}},
	{"no text any more", `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"stop"}]}`, reading{Choices: 1, Blank: true, Finish: "stop"}},
	{"neither", `{"choices":[{"index":0,"delta":{"content":null},"finish_reason":null}]}`, reading{Choices: 1}},
	{"role with null", `{"choices":[{"index":0,"delta":{"role":"assistant","content":null},"finish_reason":null}]}`, reading{Choices: 1}},
	{"no choices", `{"choices":[]}`, reading{}},
	{"choices of another type", `{"choices":{"text":"a"}}`, reading{}},
	{"null choice", `{"choices":[null,{"text":"a"}]}`, reading{Choices: 2, Kind: wire.OpenAIContentToken, Text: "a"}},
	{"several choices", `{"choices":[{"text":"a","index":0},{"text":"b","index":1}]}`, reading{Choices: 2, Kind: wire.OpenAIContentToken, Text: "ab"}},
	{"content", `{"choices":[{"delta":{"content":"Hi \u00e9\ud83d\ude00"}}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "Hi é😀"}},
	{"reasoning", `{"choices":[{"delta":{"reasoning":"hm"}}]}`, reading{Choices: 1, Kind: wire.OpenAIReasoningToken, Text: "hm"}},
	{"reasoning by both names counts once", `{"choices":[{"delta":{"reasoning_content":"hm","reasoning":"hm"}}]}`, reading{Choices: 1, Kind: wire.OpenAIReasoningToken, Text: "hm"}},
	{"reasoning null", `{"choices":[{"delta":{"content":"a","reasoning_content":null}}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "a"}},
	{"reasoning and content", `{"choices":[{"delta":{"reasoning":"so","content":"yes"}}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "soyes"}},
	{"content and reasoning", `{"choices":[{"delta":{"content":"yes","reasoning":"so"}}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "yesso"}},
	{"refusal", `{"choices":[{"delta":{"refusal":"no"}}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "no"}},
	{
		"tool call", `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","type":"function","function":{"name":"f","arguments":""}},{"index":1,"function":{"arguments":"{\"a\":"}}]}}]}`,
		reading{Choices: 1, Kind: wire.OpenAIToolCallToken, Text: `f{"a":`},
	},
	{"tool call without words", `{"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":""}}]}}]}`, reading{Choices: 1}},
	{"token ids", `{"choices":[{"text":"","token_ids":[1, 2,3]}]}`, reading{Choices: 1, Blank: true, TokenIDs: 3}},
	{"output ids", `{"choices":[{"text":"ab","output_ids":[7]}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "ab", TokenIDs: 1}},
	{
		"usage", `{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":12,"total_tokens":21,"completion_tokens_details":{"reasoning_tokens":5},"prompt_tokens_details":{"cached_tokens":4}}}`,
		reading{Usage: wire.OpenAICounts{Prompt: 9, Completion: 12, Cached: 4, Reasoning: 5, TellsCached: true}, HasUsage: true},
	},
	{"cached null", `{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":null}}}`, reading{Usage: wire.OpenAICounts{Prompt: 9}, HasUsage: true}},
	{"cached none", `{"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens":0}}}`, reading{Usage: wire.OpenAICounts{Prompt: 9, TellsCached: true}, HasUsage: true}},
	{"usage null", `{"choices":[],"usage":null}`, reading{}},
	{"usage that is none", `{"usage":{"prompt_tokens":-1,"completion_tokens":1.5,"prompt_tokens_details":null}}`, reading{HasUsage: true}},
	{"error object", `{"error":{"message":"out of memory","type":"InternalServerError","param":null,"code":500}}`, reading{Error: "out of memory", Failed: true}},
	{"error text", `{"error":"overloaded"}`, reading{Error: "overloaded", Failed: true}},
	{"error null", `{"error":null,"choices":[{"text":"a"}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "a"}},
	{"flat error", `{"object":"error","message":"bad","type":"BadRequestError","code":400}`, reading{Error: "bad", Failed: true}},
	{"a message is not an error", `{"object":"chat.completion","message":"bad"}`, reading{}},
	{"escaped key", `{"ch\u006fices":[{"text":"a"}]}`, reading{Choices: 1, Kind: wire.OpenAIContentToken, Text: "a"}},
}

func TestOpenAIDelta(t *testing.T) {
	for _, tc := range chunks {
		t.Run(tc.name, func(t *testing.T) {
			got := must.Get(decode(t, tc.chunk))(t)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, oracle(t, tc.chunk)); diff != "" {
				t.Errorf("the oracle is wrong (-want +got):\n%s", diff)
			}
		})
	}
	for _, chunk := range []string{``, `[DONE]`, `{`, `[]`, `"a"`, `null`, `{"choices":[}`, `{"choices":[{"text":"a"}]`, `{} {}`} {
		if got, err := decode(t, chunk); err == nil {
			t.Errorf("%q: read as %+v, want an error", chunk, got)
		}
	}
}

// The result of decoding a chunk does not depend on earlier chunks, whether the previous chunk differs only in its
// text (the fast path) or in more.
func TestOpenAIDeltaAfterOthers(t *testing.T) {
	texts := []string{`x`, ` the `, `\n`, `é`, `"`, `\`, ``, "\x01", `","finish_reason":"stop`, `x"},{"text":"y`, `\u0041`, `日本`}
	shapes := []string{
		`{"choices":[{"text":"%s","finish_reason":null}]}`,
		`{"choices":[{"delta":{"content":"%s"},"finish_reason":null}],"usage":null}`,
		`{"choices":[{"delta":{"reasoning":"%s","content":null}}]}`,
		`{"choices":[{"delta":{"reasoning":"%s","reasoning_content":"%[1]s"}}]}`,
		`{"choices":[{"delta":{"tool_calls":[{"function":{"name":"f","arguments":"%s"}}]}}]}`,
		`{"choices":[{"text":"a"},{"text":"%s"}]}`,
		`{"choices":[{"text":"%s","token_ids":[1,2],"finish_reason":"length"}],"usage":{"completion_tokens":3}}`,
		`{"error":"%s"}`,
	}
	for _, first := range shapes {
		for _, second := range shapes {
			for _, a := range texts {
				for _, b := range texts {
					for _, blank := range []string{"", " "} {
						var used, fresh wire.OpenAIDelta
						_ = used.Decode(fmt.Appendf(nil, first, a)) // may be invalid JSON
						chunk := fmt.Appendf(nil, second+blank, b)
						got, want := used.Decode(chunk), fresh.Decode(chunk)
						if (got == nil) != (want == nil) {
							t.Fatalf("%s after %s: %v, want %v", chunk, fmt.Sprintf(first, a), got, want)
						}
						if diff := cmp.Diff(readingOf(&fresh), readingOf(&used)); want == nil && (diff != "" || string(used.Content) != string(fresh.Content)) {
							t.Fatalf("%s after %s: -fresh +used\n%s", chunk, fmt.Sprintf(first, a), diff)
						}
					}
				}
			}
		}
	}
}

func FuzzOpenAIDelta(f *testing.F) {
	for _, tc := range chunks {
		f.Add(tc.chunk)
	}
	f.Add(`{"choices":[{"delta":{"content":"a`)
	f.Fuzz(func(t *testing.T, chunk string) {
		got, err := decode(t, chunk)
		if isObject := json.Valid([]byte(chunk)) && bytes.TrimSpace([]byte(chunk))[0] == '{'; isObject != (err == nil) {
			t.Fatalf("%q: an object: %v, error %v", chunk, isObject, err)
		}
		if err != nil || !utf8.ValidString(chunk) || repeatsKeys(chunk) {
			return
		}
		if diff := cmp.Diff(oracle(t, chunk), got); diff != "" {
			t.Errorf("%q (-encoding/json +Delta):\n%s", chunk, diff)
		}
	})
}

// repeatsKeys reports whether an object of the document repeats a key. The meaning of such a document is undefined.
func repeatsKeys(doc string) bool {
	d := json.NewDecoder(bytes.NewReader([]byte(doc)))
	type level struct {
		seen  map[string]bool // nil in arrays
		value bool            // a key was read, and its value follows
	}
	var levels []level
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return false
		}
		n := len(levels) - 1
		if key, ok := token.(string); ok && n >= 0 && levels[n].seen != nil && !levels[n].value {
			if levels[n].seen[key] {
				return true
			}
			levels[n].seen[key], levels[n].value = true, true
			continue
		}
		if n >= 0 {
			levels[n].value = false
		}
		switch token {
		case json.Delim('{'):
			levels = append(levels, level{seen: map[string]bool{}})
		case json.Delim('['):
			levels = append(levels, level{})
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:n]
		}
	}
}

// oracle decodes a chunk with encoding/json. oracle visits the members of a delta in document order, because the
// texts are concatenated in that order.
func oracle(t *testing.T, chunk string) reading {
	t.Helper()
	var r reading
	var blank, role bool
	doc := object(t, []byte(chunk))
	text := func(raw json.RawMessage, k wire.OpenAIKind) bool {
		s := textOf(raw)
		r.Text += s
		blank = blank || string(raw) == `""` && k == wire.OpenAIContentToken
		if s != "" && (r.Kind == wire.OpenAINoToken || r.Kind == wire.OpenAIReasoningToken) {
			r.Kind = k
		}
		return s != ""
	}
	for _, raw := range array(doc.get("choices")) {
		r.Choices++
		thought := false
		for _, m := range object(t, raw) {
			switch m.key {
			case "text":
				text(m.value, wire.OpenAIContentToken)
			case "finish_reason":
				if s := m.value; s[0] == '"' {
					r.Finish = textOf(s)
				}
			case "token_ids", "output_ids":
				r.TokenIDs += len(array(m.value))
			case "delta":
				for _, m := range object(t, m.value) {
					switch m.key {
					case "role":
						role = true
					case "content", "refusal":
						text(m.value, wire.OpenAIContentToken)
					case "reasoning", "reasoning_content":
						if !thought {
							thought = text(m.value, wire.OpenAIReasoningToken)
						}
					case "tool_calls":
						for _, call := range array(m.value) {
							for _, m := range object(t, object(t, call).get("function")) {
								if m.key == "name" || m.key == "arguments" {
									text(m.value, wire.OpenAIToolCallToken)
								}
							}
						}
					}
				}
			}
		}
	}
	r.Blank = blank && !role && r.Text == ""
	if usage := object(t, doc.get("usage")); usage != nil {
		r.HasUsage = true
		cached := object(t, usage.get("prompt_tokens_details")).get("cached_tokens")
		r.Usage = wire.OpenAICounts{
			Prompt: natural(usage.get("prompt_tokens")), Completion: natural(usage.get("completion_tokens")),
			Cached: natural(cached), TellsCached: isInteger(cached),
			Reasoning: natural(object(t, usage.get("completion_tokens_details")).get("reasoning_tokens")),
		}
	}
	if failure := doc.get("error"); failure != nil {
		r.Error = textOf(failure)
		if o := object(t, failure); o != nil {
			r.Failed = true
			if r.Error = textOf(o.get("message")); r.Error == "" {
				r.Error = string(failure)
			}
		}
		r.Failed = r.Failed || r.Error != ""
	}
	if !r.Failed && textOf(doc.get("object")) == "error" {
		r.Failed, r.Error = true, textOf(doc.get("message"))
	}
	return r
}

type member struct {
	key   string
	value json.RawMessage
}

type members []member

func (ms members) get(key string) json.RawMessage {
	for _, m := range ms {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// object returns the members of a JSON object in document order, or nil if raw is not an object.
func object(t *testing.T, raw json.RawMessage) members {
	t.Helper()
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	ms := members{}
	d := json.NewDecoder(bytes.NewReader(raw))
	must.Get(d.Token())(t)
	for d.More() {
		key := must.Get(d.Token())(t)
		var m member
		m.key = key.(string)
		must.Do(t, d.Decode(&m.value))
		ms = append(ms, m)
	}
	return ms
}

func array(raw json.RawMessage) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

func textOf(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// isInteger reports whether raw is an integer of at most 18 digits.
func isInteger(raw json.RawMessage) bool {
	var n *int64
	return json.Unmarshal(raw, &n) == nil && n != nil && *n > -1e18 && *n < 1e18
}

func natural(raw json.RawMessage) int {
	var n int
	if json.Unmarshal(raw, &n) != nil || n < 0 || n >= 1e18 {
		return 0
	}
	return n
}

// The chunks of one stream differ only in their text. The chunks of two streams differ in more.
func BenchmarkOpenAIDelta(b *testing.B) {
	const form = `{"id":"cmpl-%s","object":"text_completion","created":1763171717,"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"text":" the","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}`
	first, other := fmt.Appendf(nil, form, "2f6f6a0b7d5e4c3a9b8c7d6e5f4a3b2c"), fmt.Appendf(nil, form, "3f6f6a0b7d5e4c3a9b8c7d6e5f4a3b2c")
	for name, chunks := range map[string][][]byte{"alike": {first, first}, "unlike": {first, other}} {
		b.Run(name, func(b *testing.B) {
			var d wire.OpenAIDelta
			b.ReportAllocs()
			b.SetBytes(int64(len(first)))
			for i := 0; b.Loop(); i++ {
				if err := d.Decode(chunks[i%2]); err != nil || d.Kind != wire.OpenAIContentToken {
					b.Fatal(d.Kind, err)
				}
			}
		})
	}
}
