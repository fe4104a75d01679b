package proof

import (
	"os"
	"os/exec"
	"strconv"
	"testing"

	"tacho/transport"
)

// BenchmarkReceivers compares the receive thread outside Go's scheduler with the ordinary
// receiver, in turns: events that share a time with another, the error of ITL, and CPU
// time per token. Once server and client may use all cores, and once each has one.
// With -count 3 every figure is measured three times.
func BenchmarkReceivers(b *testing.B) {
	const tokens = 200
	first, last := ends()
	for b.Loop() {
		for _, streams := range []int{100, 1000, 5000} {
			for _, apart := range []bool{false, true} {
				for _, receiver := range []string{"", "ordinary"} {
					place := func(_ int, start func()) { start() }
					if apart {
						place = onCore
					}
					var urls []string
					place(first, func() { urls = metronomes(b, 1, "2s", "50ms") })
					u := commandWith(b, func(cmd *exec.Cmd) (err error) {
						cmd.Env = append(os.Environ(), transport.ReceiverVariable+"="+receiver)
						place(last, func() { err = cmd.Start() })
						return err
					}, urls, "--num-prompts", strconv.Itoa(streams), "--random-output-len", strconv.Itoa(tokens), "--clock", "kernel")
					s := against(b, u.records, urls, Load{Requests: streams, Tokens: tokens})
					events := float64(streams * tokens)
					b.Logf("%d streams, a core each: %v, receiver %q: %.3f %% of events coalesced, error p99 ITL %.0f us, %.2f us of CPU a token, %d missing; %s",
						streams, apart, receiver, 100*float64(s.Coalesced)/events, s.ITL.Quantile(.99), 1e6*u.cpu/events, s.Missing, u.verdict())
				}
			}
		}
		b.ReportMetric(0, "ns/op")
	}
}
