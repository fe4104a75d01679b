package limit

import (
	"strings"
	"testing"
)

// TestDepth checks that nesting is bounded, and that ordinary files pass.
func TestDepth(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"plan":           {"num_prompts: 100\nbase_url:\n  - http://127.0.0.1:8000\nmix: [a, b]\n", true},
		"rule":           {strings.Repeat("-", 80) + "\na: 1\n", true},
		"many lists":     {strings.Repeat("a: [1]\n", 10_000), true},
		"brackets":       {"a: " + strings.Repeat("[", 101), false},
		"braces":         {strings.Repeat(`{"a":`, 101), false},
		"dashes":         {"a:\n" + strings.Repeat("- ", 101) + "1\n", false},
		"endless dashes": {strings.Repeat("- ", 100_000), false},
	} {
		if err := Depth([]byte(c.text)); (err == nil) != c.ok {
			t.Errorf("%s: %v", name, err)
		}
	}
}
