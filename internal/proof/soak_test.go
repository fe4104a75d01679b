package proof

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkSoak keeps 5,000 streams open for minutes, each followed by the next,
// and looks whether memory and descriptors stay what they were and every event
// is there. SOAK is how long; without it there is none.
func BenchmarkSoak(b *testing.B) {
	minutes, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		b.Skip("SOAK=10m says how long")
	}
	for b.Loop() {
		const streams, tokens = 5000, 100
		rounds := max(1, int(minutes/(21*time.Second))) // 1 s to the first token, then 5 a second
		var seen []usage
		over, watched := make(chan struct{}), make(chan struct{})
		u := commandWith(b, func(cmd *exec.Cmd) error {
			err := cmd.Start()
			go func() {
				defer close(watched)
				for {
					select {
					case <-over:
						return
					case <-time.After(time.Second):
						seen = append(seen, usageOf(cmd.Process.Pid))
					}
				}
			}()
			return err
		}, servers(b, 1, "1s", "200ms"), "--num-prompts", strconv.Itoa(rounds*streams), "--max-concurrency", strconv.Itoa(streams), "--random-output-len", strconv.Itoa(tokens))
		close(over)
		<-watched
		events := 0
		for i := range u.records {
			events += len(u.records[i].Events)
		}
		early, late := mostOf(seen[len(seen)/4:len(seen)/2]), mostOf(seen[len(seen)/2:])
		b.Logf("%d streams of %d tokens, 5,000 at a time, in %v: %d of %d events; second quarter and second half: %d and %d descriptors, %d and %d MB; %s",
			len(u.records), tokens, minutes, events, rounds*streams*tokens, early.descriptors, late.descriptors, early.kib>>10, late.kib>>10, u.verdict())
		if events != rounds*streams*tokens {
			b.Errorf("%d events are missing", rounds*streams*tokens-events)
		}
		if late.descriptors > early.descriptors+early.descriptors/50 {
			b.Errorf("%d descriptors became %d", early.descriptors, late.descriptors)
		}
		b.ReportMetric(float64(late.kib)/float64(early.kib), "memory-growth")
		b.ReportMetric(0, "ns/op")
	}
}

// usage is what a process holds.
type usage struct{ descriptors, kib int }

func usageOf(pid int) (u usage) {
	open, _ := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	u.descriptors = len(open)
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if _, after, ok := strings.Cut(string(status), "VmRSS:"); ok {
		_, _ = fmt.Sscan(after, &u.kib)
	}
	return u
}

func mostOf(all []usage) (most usage) {
	for _, u := range all {
		most = usage{max(most.descriptors, u.descriptors), max(most.kib, u.kib)}
	}
	return most
}
