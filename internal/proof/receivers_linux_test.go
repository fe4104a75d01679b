package proof

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"testing"
)

// BenchmarkReceivers compares the receive thread outside Go's scheduler with
// the ordinary receiver, alternating. Server and client first share all cores,
// then have one core each.
func BenchmarkReceivers(b *testing.B) {
	first, last := ends()
	for _, streams := range []int{100, 1000, 5000} {
		b.Run(fmt.Sprintf("%d/shared", streams), func(b *testing.B) {
			free := func(_ int, start func()) { start() }
			for b.Loop() {
				receivers(b, streams, first, last, free)
			}
		})
		b.Run(fmt.Sprintf("%d/apart", streams), func(b *testing.B) {
			if first == last {
				b.Skip("it wants two cores")
			}
			for b.Loop() {
				receivers(b, streams, first, last, onCore)
			}
		})
	}
}

// receivers measures streams with both receivers: events with equal times, ITL
// error, and CPU time per token. place starts servers and clients.
func receivers(b *testing.B, streams, server, client int, place func(core int, start func())) {
	b.Helper()
	const tokens = 100
	for _, receiver := range []string{"", "ordinary"} {
		var urls []string
		place(server, func() { urls = metronomes(b, 1, "2s", "50ms") })
		u := commandWith(b, func(cmd *exec.Cmd) (err error) {
			cmd.Env = append(os.Environ(), "TACHO_RECEIVER="+receiver)
			place(client, func() { err = cmd.Start() })
			return err
		}, urls, "--num-prompts", strconv.Itoa(streams), "--random-output-len", strconv.Itoa(tokens), "--clock", "kernel")
		s := against(b, u.records, urls, Load{Requests: streams, Tokens: tokens})
		events := float64(streams * tokens)
		b.Logf("%d streams, TACHO_RECEIVER=%s: %.3f %% of events coalesced, error p99 ITL %.0f us, %.2f us of CPU a token, %d missing; %.40s",
			streams, receiver, 100*float64(s.Coalesced)/events, s.ITL.Quantile(.99), 1e6*u.cpu/events, s.Missing, u.verdict())
	}
	b.ReportMetric(0, "ns/op")
}
