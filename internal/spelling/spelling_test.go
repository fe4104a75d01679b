package spelling

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"backend", "base-url", "think-time-ms", "min-p", "num-prompts", "man", "autoscale-target", "output-len"}
	for written, want := range map[string]string{
		"bakend": "backend", "bakcend": "backend", "think-ms": "think-time-ms", "num-promts": "num-prompts", "min-q": "min-p", "something-else": "",
		"run": "", "target": "", "output-file": "", "gsp-num-groups": "",
	} {
		if got := Nearest(written, names); got != want {
			t.Errorf("%s is taken for %q, want %q", written, got, want)
		}
	}
}
