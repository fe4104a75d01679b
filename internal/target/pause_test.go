package target

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
)

// Attempts use the full timeout, even if it is shorter than a pause.
func TestPausesFitTheTime(t *testing.T) {
	for _, given := range []time.Duration{300 * time.Millisecond, time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			tries := 1
			for Pause(t.Context(), began.Add(given)) {
				tries++
			}
			if took := time.Since(began); tries < 3 || took < given/2 || took >= given {
				t.Errorf("of %v: %d tries in %v", given, tries, took)
			}
		})
	}
}

// A server whose connection broke in the middle of an answer was reached.
func TestBrokenAnswerIsReached(t *testing.T) {
	target := newTarget(&setting{})
	target.Plan.BaseURL = []string{"http://127.0.0.1:1"}
	for phase, want := range map[string]string{
		"wait":   "cannot reach the server at http://127.0.0.1:1: unexpected EOF",
		"stream": "the server at http://127.0.0.1:1 closed the connection in the middle of the answer",
	} {
		err := target.Refused(t.Context(), 0, &tacho.Failure{Cause: tacho.Reset, Phase: phase, Message: "unexpected EOF"})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", phase, err)
		}
	}
}

// A connection timeout reads like a refused connection, because the network
// decides which of the two happens if no server is listening.
func TestTimeoutOfAConnection(t *testing.T) {
	target := newTarget(&setting{})
	target.Plan.BaseURL, target.Plan.ReadyCheck = []string{"http://127.0.0.1:1"}, 0.2
	for phase, want := range map[string]string{
		"connect": "cannot reach the server at http://127.0.0.1:1: no answer to a request within 200ms: i/o timeout",
		"wait":    "the server at http://127.0.0.1:1 did not answer the test request: no answer to a request within 200ms: i/o timeout; nothing was measured",
	} {
		err := target.Refused(t.Context(), 0, &tacho.Failure{Cause: tacho.Timeout, Phase: phase, Message: "i/o timeout"})
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v", phase, err)
		}
	}
}
