package jsonscan

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestPlain(t *testing.T) {
	type entry struct{ Prompt string }
	for text, want := range map[string]string{
		`[1]`:          "line 3: a value of another type is expected than this array",
		`{"prompt":7}`: "line 3: Prompt: a value of another type is expected than this number",
		`{`:            "line 3: unexpected end of JSON input",
	} {
		err := fmt.Errorf("line 3: %w", json.Unmarshal([]byte(text), new(entry)))
		if got := Plain(err); !strings.EqualFold(got, want) || strings.Contains(got, "Go ") {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
