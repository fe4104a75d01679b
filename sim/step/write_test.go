package step

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// A profile survives a round trip through a file.
func TestProfileRoundTrip(t *testing.T) {
	for _, name := range Names() {
		p := must.Get(Load(name))(t)
		b, err := p.Write(nil)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		got, err := parse(b)
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, b)
		}
		if diff := gocmp.Diff(p, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s\n%s", name, diff, b)
		}
	}
}

func TestProfileHasRemarks(t *testing.T) {
	p := must.Get(Load("vllm-8b-h200"))(t)
	p.API.EventUs, p.Cost.Decode = 65.42, []Knot{{Tokens: 64, Ms: 5.64}}
	b := must.Get(p.Write(map[string]string{"api.event_us": "+- 3 %", "cost.decode at 64": "+- 1 %"}))(t)
	for _, line := range []string{"event_us: 65.42 # +- 3 %\n", "{tokens: 64, ms: 5.64} # +- 1 %\n"} {
		if !strings.Contains(string(b), line) {
			t.Errorf("no line %q:\n%s", line, b)
		}
	}
}
