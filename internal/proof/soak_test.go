package proof

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// BenchmarkSoak keeps 5,000 streams open for minutes and checks that memory and
// descriptors do not grow and that no event is missing. SOAK is the duration;
// without it the benchmark is skipped.
//
// hermetic: only the benchmark starts a process.
func BenchmarkSoak(b *testing.B) {
	minutes, err := time.ParseDuration(os.Getenv("SOAK"))
	if err != nil {
		b.Skip("SOAK=10m says how long")
	}
	for b.Loop() {
		const streams, tokens = 5000, 100
		rounds := max(1, int(minutes/(21*time.Second))) // 1 s to the first token, then 5 per second
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
		quarter := len(seen) / 4
		b.Logf("%d streams of %d tokens, 5,000 at a time, in %v: %d of %d events; %s", len(u.records), tokens, minutes, events, rounds*streams*tokens, u.verdict())
		for i, name := range []string{"first", "second", "third", "last"} {
			part := seen[i*quarter : (i+1)*quarter]
			b.Logf("%s quarter: %d descriptors and %d MB at the most, median %d MB", name, mostOf(part).descriptors, mostOf(part).kib>>10, medianOf(part).kib>>10)
		}
		early, late := seen[quarter:2*quarter], seen[3*quarter:]
		if events != rounds*streams*tokens {
			b.Errorf("%d events are missing", rounds*streams*tokens-events)
		}
		if before, after := mostOf(early).descriptors, mostOf(late).descriptors; after > before+before/50 {
			b.Errorf("%d descriptors became %d", before, after)
		}
		b.ReportMetric(float64(medianOf(late).kib)/float64(medianOf(early).kib), "memory-growth")
		b.ReportMetric(0, "ns/op")
	}
}

// usage contains the resources of a process.
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

// medianOf returns the usage with the median memory. The maximum is not useful,
// because garbage lives longer while the client is not scheduled.
func medianOf(all []usage) usage {
	sorted := slices.SortedFunc(slices.Values(all), func(a, b usage) int { return a.kib - b.kib })
	return sorted[len(sorted)/2]
}

func mostOf(all []usage) (most usage) {
	for _, u := range all {
		most = usage{max(most.descriptors, u.descriptors), max(most.kib, u.kib)}
	}
	return most
}
