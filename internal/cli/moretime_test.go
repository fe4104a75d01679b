package cli

import (
	"testing"

	"github.com/tacho-bench/tacho/internal/search"
)

// After an unusable probe, more time is no advice.
func TestMoreTimeHelps(t *testing.T) {
	for last, want := range map[search.Verdict]bool{search.Void: false, search.Undecided: true, search.Overrun: true} {
		f := finding{search: &search.Search{Results: []search.Result{{Verdict: search.Undecided}, {Verdict: last}}}}
		if f.timeHelps() != want {
			t.Errorf("after a probe that is %v: %v", last, !want)
		}
	}
}
