package cli_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// --level-pause also pauses between the probes of a search: probes are levels.
func TestPauseBetweenProbes(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		code, out, errs := inside(nil, "find", "--slo", "ttft:p95<500ms", "--within", "20%", "--virtual", "--sim", "vllm-8b-h100", "--seed", "1",
			"--from", "20", "--to", "30", "--input-len", "200", "--output-len", "20", "--level-pause", "1000", "--no-html", "--runs-dir", dir)
		probes := strings.Count(errs, " requests in ")
		if waited := time.Since(began); code != 0 || probes < 2 || waited.Round(1000*time.Second) != time.Duration(probes-1)*1000*time.Second {
			t.Errorf("exit code %d, %v of pauses between %d probes\n%s%s", code, waited, probes, out, errs)
		}
	})
}
