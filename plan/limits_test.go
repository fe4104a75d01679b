package plan_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// Every integer option rejects values too large for any machine, and the error
// names the maximum.
func TestAbsurdNumbersAreRefused(t *testing.T) {
	tried := 0
	p := plan.Default()
	for _, o := range p.Options() {
		switch o.Value.(type) {
		case *int, **int, *workload.Length:
		default:
			continue
		}
		tried++
		for _, value := range []string{"9223372036854775807", "10000000000"} {
			if err := o.Set(value); err == nil || !strings.Contains(err.Error(), "at most") {
				t.Errorf("--%s %s: %v, want the most that can be asked for", o.Name, value, err)
			}
		}
	}
	if tried < 20 {
		t.Errorf("only %d options tried", tried)
	}
	for option, value := range map[string]string{
		"random-num-prefixes": "1048577", "random-mm-base-items-per-request": "1001", "max-concurrency": "1,2,5000000",
		"random-input-len": "uniform(1,1e12)", "turns": "normal(9999999999,1)", "scenario": "D(99999999999,1)",
	} {
		set := plan.Default()
		for _, o := range set.Options() {
			if err := o.Set(value); o.Name == option && err == nil {
				t.Errorf("--%s %s was taken", option, value)
			}
		}
	}
}

// Values within their own limits are rejected if their product is too large.
func TestBatchIsBounded(t *testing.T) {
	p := plan.Default()
	p.Backend, p.RandomBatchSize, p.RandomInputLen = "openai-embeddings", 60_000, workload.Fixed(1_000_000)
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "--random-batch-size") {
		t.Errorf("%v, want --random-batch-size", err)
	}
}

// TestPlanBombs checks that a plan that is too deep, or has too many values that may be secrets, is an error at once.
func TestPlanBombs(t *testing.T) {
	var values strings.Builder
	for i := range 40_000 {
		fmt.Fprintf(&values, "k: value%dxyz%d\n", i, i*7919)
	}
	for name, text := range map[string]string{
		"brackets": "a: " + strings.Repeat("[", 100_000),
		"braces":   strings.Repeat(`{"a":`, 100_000),
		"dashes":   strings.Repeat("- ", 100_000),
		"values":   "a: [\n" + values.String(),
		"long":     "a: [\nb: " + strings.Repeat("x", 1_000_000),
	} {
		p := plan.Default()
		if err := p.Read([]byte(text), &redact.Secrets{}); err == nil || len(err.Error()) > 1000 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
