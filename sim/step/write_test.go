package step

import (
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

// A profile survives a round trip through a file.
func TestProfileRoundTrip(t *testing.T) {
	for _, name := range Names() {
		p, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
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
	p, err := Load("vllm-8b-h200")
	if err != nil {
		t.Fatal(err)
	}
	p.API.EventUs, p.Cost.Decode = 65.42, []Knot{{Tokens: 64, Ms: 5.64}}
	b, err := p.Write(map[string]string{"api.event_us": "+- 3 %", "cost.decode at 64": "+- 1 %"})
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"event_us: 65.42 # +- 3 %\n", "{tokens: 64, ms: 5.64} # +- 1 %\n"} {
		if !strings.Contains(string(b), line) {
			t.Errorf("no line %q:\n%s", line, b)
		}
	}
}
