package run

import (
	"strings"
	"testing"
)

func TestAllowedTargets(t *testing.T) {
	for _, c := range []struct {
		patterns, target string
		want             bool
	}{
		{"http://vllm:8000", "http://vllm:8000", true},
		{"http://vllm:8000", "http://VLLM:8000/v1", true},
		{"http://vllm:8000", "http://vllm:8001", false},
		{"http://vllm:8000", "https://vllm:8000", false},
		{"http://vllm", "http://vllm:9", true},
		{"http://vllm", "http://vllm.evil.example:9", false},
		{"http://vllm", "http://vllm@evil.example", false},
		{"https://llm/a", "https://llm/ab", false},
		{"https://llm/a", "https://llm/a/b", true},
		{"http://a http://b", "http://b:1", true},
		{"any", "http://wherever", true},
		{"unix:///run/a.sock", "unix:///run/a.sock", true},
		{"unix:///run/a.sock", "unix:///run/b.sock", false},
		{"", "http://127.0.0.1:1", false},
		{"http://vllm", "http://vllm:80\x00", false},
	} {
		if got := checkAddress(strings.Fields(c.patterns), c.target) == nil; got != c.want {
			t.Errorf("%q may go to %q: %v", c.patterns, c.target, got)
		}
	}
}
