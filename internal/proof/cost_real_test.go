//go:build real

package proof

import (
	"errors"
	"testing"
	"time"
)

// All clients see all tokens, so that their costs are comparable.
func TestRealClientsSeeTheSame(t *testing.T) {
	addr := start(t, "server", "10ms", "1ms").line()
	for kind, run := range clients {
		if err := run(load{addr, 5, 20, time.Second}); err != nil && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}
