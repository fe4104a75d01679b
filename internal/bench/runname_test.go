package bench

import (
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

func TestLoadName(t *testing.T) {
	for _, c := range []struct{ flags, want string }{
		{"", "1000prompts"},
		{"num-prompts=10,100", "10..100prompts"},
		{"max-concurrency=64", "64conc"},
		{"max-concurrency=8,16,32", "8..32conc"},
		{"max-concurrency=32,8", "8..32conc"},
		{"request-rate=0.5,4", "0.5..4rps"},
		{"request-rate=4,inf", "4..Infrps"},
		{"request-rate=1e308", "1e308rps"},
		{"request-rate=10 max-concurrency=64", "10rps-64conc"},
		{"max-concurrency=sweep", "sweep"},
		{"ramp-up-strategy=linear ramp-up-start-rps=1 ramp-up-end-rps=5", "ramp"},
		{"max-concurrency=8 random-input-len=100,200", "8conc"},
	} {
		p := plan.Default()
		for flag := range strings.FieldsSeq(c.flags) {
			name, value, _ := strings.Cut(flag, "=")
			must.Do(t, p.Set(name, value))
		}
		if got := loadName(&p); got != c.want {
			t.Errorf("%q: %q, want %q", c.flags, got, c.want)
		}
	}
}

func TestRunName(t *testing.T) {
	for _, c := range []struct{ model, load, engine, want string }{
		{"meta-llama/Llama-3.1-8B-Instruct", "8..32conc", "vllm", "llama-3.1-8b-instruct-8..32conc-vllm"},
		{"", "10rps", "openai", "10rps-openai"},
		{"../..", "10rps", "", "10rps"},
		{"/models/größe\x1b[2J x/", "find", "sglang", "größe-2j-x-find-sglang"},
		{"a/Meta-Llama-3.1-405B-Instruct-FP8-dynamic", "0.5..4rps", "vllm", "meta-llama-3.1-405b-instruct-0.5..4rps-vllm"},
		{strings.Repeat("模", 40), "1conc", "vllm", strings.Repeat("模", 11) + "-1conc-vllm"},
	} {
		got := runName(c.model, c.load, c.engine, nameLength)
		if got != c.want || len(got) > nameLength {
			t.Errorf("%q: %q (%d bytes), want %q", c.model, got, len(got), c.want)
		}
	}
	if got := runName("model", strings.Repeat("1", 99), "vllm", nameLength); strings.HasPrefix(got, "-") {
		t.Errorf("%q", got)
	}
}
