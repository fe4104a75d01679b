package jsonscan

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

func TestErrorText(t *testing.T) {
	type entry struct {
		Prompt  string
		Tokens  *int
		Rate    float64
		Stop    []string
		Stream  bool
		At      netip.Addr
		Options map[string]any
	}
	for text, want := range map[string]string{
		`[1]`:            "line 3: want an object, not this array",
		`{"prompt":7}`:   "line 3: Prompt: want a string, not this number",
		`{"tokens":"7"}`: "line 3: Tokens: want a whole number, not this string",
		`{"tokens":7.5}`: "line 3: Tokens: want a whole number, not this number 7.5",
		`{"rate":true}`:  "line 3: Rate: want a number, not this bool",
		`{"stop":"x"}`:   "line 3: Stop: want a list, not this string",
		`{"stream":{}}`:  "line 3: Stream: want true or false, not this object",
		`{"at":7}`:       "line 3: At: want a string, not this number",
		`{"options":[]}`: "line 3: Options: want an object, not this array",
		`{`:              "line 3: unexpected end of JSON input",
	} {
		err := fmt.Errorf("line 3: %w", json.Unmarshal([]byte(text), new(entry)))
		if got := ErrorText(err); !strings.EqualFold(got, want) || strings.Contains(got, "Go ") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
