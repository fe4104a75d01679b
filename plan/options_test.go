package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

// set sets options from words of the form NAME=VALUE.
func set(t *testing.T, p *plan.Plan, words ...string) {
	t.Helper()
	for _, word := range words {
		name, value, _ := strings.Cut(word, "=")
		must.Do(t, p.Set(name, value))
	}
}

// Given is true for an option set to its default, and setting options of a copy
// does not change the original plan.
func TestGiven(t *testing.T) {
	p := plan.Default()
	set(t, &p, "num-prompts=1000", "max-seconds=4", "request-rate=10", "header=a=1", "header=b=2")
	p.MaxConcurrency = 3
	other := p
	set(t, &other, "host=127.0.0.1", "header=c=3")
	for name, want := range map[string]bool{"num-prompts": true, "max-seconds": true, "max-concurrency": true, "host": false, "burstiness": false, "no-such": false} {
		if p.Given(name) != want {
			t.Errorf("%s given: %v, want %v", name, !want, want)
		}
	}
	if !other.Given("host") || len(p.Header) != 2 || len(other.Header) != 3 {
		t.Errorf("a copy: host given %v, headers %q and %q", other.Given("host"), p.Header, other.Header)
	}
	if l := p.Levels(); len(l) != 1 || l[0].Prompts != 1000 {
		t.Errorf("1000 requests were asked for, at most: %+v", l)
	}
	p = plan.Default()
	set(t, &p, "max-seconds=4", "request-rate=10")
	if l := p.Levels(); len(l) != 1 || l[0].Prompts != 0 {
		t.Errorf("a run by time ends by time: %+v", l)
	}
}

// Every option parses the text it formats.
func TestOptionsReadWhatTheyWrite(t *testing.T) {
	p, again := plan.Default(), plan.Default()
	set(t, &p, "seed=7", "top-k=3", "top-p=0.5", "ignore-eos=false", "request-rate=inf", "random-range-ratio=0.5", "extra-body={\"a\":1}", "burstiness=inf")
	from, to := p.Options(), again.Options()
	for i, o := range from {
		text := o.Text()
		if text == "" {
			continue
		}
		if err := to[i].Set(text); err != nil || to[i].Text() != text || !again.Given(o.Name) {
			t.Errorf("--%s %q: %q, %v", o.Name, text, to[i].Text(), err)
		}
	}
	for _, word := range []string{"seed=-1", "port=x", "top-p=x", "profile=maybe", "top-k=1.5", "num-prompts=many"} {
		name, value, _ := strings.Cut(word, "=")
		i := slices.IndexFunc(to, func(o plan.Option) bool { return o.Name == name })
		if err := to[i].Set(value); err == nil || !strings.Contains(err.Error(), value) || strings.Contains(err.Error(), "strconv") {
			t.Errorf("%s: %v", word, err)
		}
	}
}
