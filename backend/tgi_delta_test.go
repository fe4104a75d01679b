package backend

import (
	"bytes"
	"encoding/json"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// streamDetails are the server's token counts at the end of a stream.
type streamDetails struct {
	FinishReason    string `json:"finish_reason"`
	GeneratedTokens int    `json:"generated_tokens"`
	Seed            *int64 `json:"seed"`
	InputLength     int    `json:"input_length"`
}

// A streamEvent is one event of a stream, decoded by encoding/json.
type streamEvent struct {
	Index         int            `json:"index"`
	Token         token          `json:"token"`
	GeneratedText *string        `json:"generated_text"`
	Details       *streamDetails `json:"details"`
}

type token struct {
	ID      int32    `json:"id"`
	Text    string   `json:"text"`
	Logprob *float64 `json:"logprob"`
	Special bool     `json:"special"`
}

// A reading is a tgiDelta without its buffers.
type reading struct {
	Token, Special, Last, Counted, Failed bool
	Text, Whole, Finish, Error            string
	Input, Output                         int
}

// decode decodes event with a tgiDelta used for other events before.
func decode(t testing.TB, event string) (reading, error) {
	t.Helper()
	var d tgiDelta
	full := `{"token":{"text":"old","special":true},"generated_text":"old","details":{"finish_reason":"length","generated_tokens":1,"input_length":2},"error":"old"}`
	must.Do(t, d.Decode([]byte(full)))
	err := d.Decode([]byte(event))
	return reading{
		d.Token, d.Special, d.Last, d.Counted, d.Failed,
		string(d.Text), string(d.Whole), string(d.Finish), string(d.Error), d.Input, d.Output,
	}, err
}

var events = []struct {
	name, event string
	want        reading
}{
	{"token", `{"index":1,"token":{"id":34,"text":" the","logprob":-0.1,"special":false},"generated_text":null,"details":null}`, reading{Token: true, Text: " the"}},
	{
		"last", `{"index":57,"token":{"id":128009,"text":"<|eot_id|>","logprob":-0.2,"special":true},"generated_text":"full text","details":{"finish_reason":"eos_token","generated_tokens":57,"seed":null,"input_length":80}}`,
		reading{Token: true, Text: "<|eot_id|>", Special: true, Last: true, Whole: "full text", Finish: "eos_token", Input: 80, Output: 57, Counted: true},
	},
	{"last without details", `{"token":{"text":"."},"generated_text":""}`, reading{Token: true, Text: ".", Last: true}},
	{"token without text", `{"token":{"id":1,"text":"","special":false}}`, reading{Token: true}},
	{"null token", `{"token":null}`, reading{}},
	{"error", `{"error":"Model is overloaded","error_type":"overloaded"}`, reading{Failed: true, Error: "Model is overloaded"}},
	{"wrapped error", `{"error":{"message":"no","http_status_code":422}}`, reading{Failed: true, Error: "no"}},
	{"wrong types", `{"token":{"text":1,"special":"true"},"generated_text":{},"details":[],"error":7}`, reading{Token: true}},
}

func TestTGIDelta(t *testing.T) {
	for _, tc := range events {
		t.Run(tc.name, func(t *testing.T) {
			got := must.Get(decode(t, tc.event))(t)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
	for _, event := range []string{``, `[DONE]`, `[]`, `null`, `{"token":{"text":"a"}`, `{"token":}`} {
		if got, err := decode(t, event); err == nil {
			t.Errorf("%q: read as %+v, want an error", event, got)
		}
	}
}

// Decode reads back every value the server's own type can encode, and accepts every object encoding/json accepts.
func FuzzTGIDelta(f *testing.F) {
	for _, tc := range events {
		f.Add(tc.event)
	}
	f.Fuzz(func(t *testing.T, event string) {
		_, err := decode(t, event)
		if isObject := json.Valid([]byte(event)) && bytes.TrimSpace([]byte(event))[0] == '{'; isObject != (err == nil) {
			t.Fatalf("%q: an object: %v, error %v", event, isObject, err)
		}
		var typed streamEvent
		if err != nil || !utf8.ValidString(event) || json.Unmarshal([]byte(event), &typed) != nil {
			return
		}
		// After encoding again, every key is unique and in its own case.
		again := must.Get(json.Marshal(typed))(t)
		want := reading{Token: true, Text: typed.Token.Text, Special: typed.Token.Special}
		if typed.GeneratedText != nil {
			want.Last, want.Whole = true, *typed.GeneratedText
		}
		if d := typed.Details; d != nil {
			want.Counted, want.Finish = true, d.FinishReason
			want.Input, want.Output = count(d.InputLength), count(d.GeneratedTokens)
		}
		got := must.Get(decode(t, string(again)))(t)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%q (-encoding/json +Delta):\n%s", again, diff)
		}
	})
}

// count returns the expected value for a number of tokens.
func count(n int) int {
	if n < 0 || n >= 1e18 {
		return 0
	}
	return n
}

func BenchmarkTGIDelta(b *testing.B) {
	event := []byte(`{"index":1,"token":{"id":34,"text":" the","logprob":-0.12345,"special":false},"generated_text":null,"details":null}`)
	var d tgiDelta
	b.ReportAllocs()
	for b.Loop() {
		if err := d.Decode(event); err != nil || !d.Token {
			b.Fatal(err)
		}
	}
}
