package plan_test

import (
	"strings"
	"testing"

	"tacho/plan"
	"tacho/workload"
)

// Whatever whole number can be asked for, one that no machine can hold is
// refused, and the most is told.
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

// Numbers that are fine by themselves can be too many together.
func TestBatchIsBounded(t *testing.T) {
	p := plan.Default()
	p.Backend, p.RandomBatchSize, p.RandomInputLen = "openai-embeddings", 60_000, workload.Fixed(1_000_000)
	if err := p.Validate(); err == nil || !strings.Contains(err.Error(), "--random-batch-size") {
		t.Errorf("%v, want --random-batch-size", err)
	}
}
