package run

import (
	"testing"
	"testing/synctest"
	"time"
)

// A server has all of the time that it is given, be it less than a pause.
func TestPausesFitTheTime(t *testing.T) {
	for _, given := range []time.Duration{300 * time.Millisecond, time.Second, 10 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			began := time.Now()
			tries := 1
			for pause(t.Context(), began.Add(given)) {
				tries++
			}
			if took := time.Since(began); tries < 3 || took < given/2 || took >= given {
				t.Errorf("of %v: %d tries in %v", given, tries, took)
			}
		})
	}
}
