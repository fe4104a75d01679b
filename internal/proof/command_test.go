package proof

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim"
	"github.com/tacho-bench/tacho/stat"
	"github.com/tacho-bench/tacho/store"
)

// buildDir is removed at the end.
//
// hermetic: only benchmarks and tests of the real tier start processes.
var buildDir string

// built returns a tacho binary: the one named by TACHO, or a new build.
var built = sync.OnceValues(func() (string, error) {
	if binary := os.Getenv("TACHO"); binary != "" {
		return binary, nil
	}
	dir, err := os.MkdirTemp("", "proof")
	if err != nil {
		return "", err
	}
	buildDir = dir
	binary := filepath.Join(dir, "tacho")
	out, err := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "../../cmd/tacho").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return binary, nil
})

// A used contains the results and the resources of a run of the command.
type used struct {
	records records
	said    string
	cpu     float64 // seconds
	rss     float64 // peak, in KiB
}

// command runs tacho bench in its own process.
func command(b testing.TB, urls []string, flags ...string) used {
	b.Helper()
	return commandWith(b, (*exec.Cmd).Start, urls, flags...)
}

// commandWith is command with a custom start function.
func commandWith(b testing.TB, start func(*exec.Cmd) error, urls []string, flags ...string) used {
	b.Helper()
	binary, err := built()
	must.Do(b, err)
	dir := b.TempDir()
	words := append([]string{"bench", "--runs-dir", dir}, flags...)
	for _, usual := range []string{"--backend=vllm", "--model=sim", "--random-input-len=4", "--skip-tokenizer-init", "--metrics-url=none"} {
		name, _, _ := strings.Cut(usual, "=")
		if !slices.ContainsFunc(flags, func(flag string) bool { return flag == name || strings.HasPrefix(flag, name+"=") }) { // two values are an error
			words = append(words, usual)
		}
	}
	for _, url := range urls {
		words = append(words, "--base-url", url)
	}
	cmd := exec.Command(binary, words...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	must.Do(b, start(cmd))
	over := make(chan struct{})
	most := peak(cmd.Process.Pid, over)
	err = cmd.Wait()
	close(over)
	u := used{said: out.String(), cpu: (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds(), rss: <-most}
	kept, _ := filepath.Glob(filepath.Join(dir, "*", store.RecordsFile))
	if len(kept) != 1 {
		b.Fatalf("%v: %d runs were kept\n%s", err, len(kept), &out)
	}
	r := must.Get(store.Open(filepath.Dir(kept[0])))(b)
	for rec, err := range r.Records() {
		must.Do(b, err)
		u.records = append(u.records, *rec)
	}
	return u
}

// peak polls the peak memory of a process in KiB until the process exits. The
// rusage of the exited process would include memory of its parent.
func peak(pid int, over <-chan struct{}) <-chan float64 {
	most := make(chan float64, 1)
	go func() {
		var kib float64
		for {
			status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
			if _, after, ok := strings.Cut(string(status), "VmHWM:"); ok {
				_, _ = fmt.Sscan(after, &kib)
			}
			select {
			case <-over:
				most <- kib
				return
			case <-time.After(50 * time.Millisecond):
			}
		}
	}()
	return most
}

// verdict returns the verdict of the run and its reasons.
func (u *used) verdict() string {
	var said []string
	for line := range strings.Lines(u.said) {
		line = strings.TrimSpace(line)
		if word, ok := strings.CutPrefix(line, "Verdict:"); ok {
			said = append(said, strings.TrimSpace(word))
		} else if slices.ContainsFunc([]string{"note ", "degraded ", "invalid "}, func(word string) bool { return strings.HasPrefix(line, word) }) {
			said = append(said, line)
		}
	}
	return strings.Join(said, "; ")
}

// lags returns the send lags of requests in microseconds.
func (u *used) lags() stat.Sample {
	lag := make([]float64, len(u.records))
	for i := range u.records {
		lag[i] = micros(u.records[i].Sent - u.records[i].Due)
	}
	return stat.New(lag)
}

func servers(b testing.TB, n int, ttft, itl string) []string {
	return started(b, n, "server", ttft, itl)
}

// metronomes starts n servers with minimal CPU use if available, otherwise
// simulators.
func metronomes(b testing.TB, n int, ttft, itl string) []string {
	if platformRoles["metronome"] == nil {
		return servers(b, n, ttft, itl)
	}
	return started(b, n, "metronome", ttft, itl)
}

func started(b testing.TB, n int, role, ttft, itl string) (urls []string) {
	for range n {
		urls = append(urls, "http://"+start(b, role, ttft, itl).line())
	}
	return urls
}

// BenchmarkCommandBurst sends 1,024 requests together and measures the time
// until the last one is sent.
func BenchmarkCommandBurst(b *testing.B) {
	for b.Loop() {
		u := command(b, servers(b, 1, "500ms", "50ms"), "--num-prompts", "1024", "--random-output-len", "4")
		lag := u.lags()
		first, all := lag.Quantile(0)/1e3, lag.Quantile(1)/1e3
		b.Logf("1,024 requests at once on %d cores: the first left after %.1f ms, half within %.1f ms of it, all within %.1f ms (wanted: 10 on 2 cores, 3 on 16); %s",
			runtime.NumCPU(), first, lag.Quantile(.5)/1e3-first, all-first, u.verdict())
		b.ReportMetric(all-first, "burst-ms")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkCommandRequest measures the CPU time per request, including startup
// and report, and the send lag.
func BenchmarkCommandRequest(b *testing.B) {
	for b.Loop() {
		for _, rate := range []int{500, 2000, 1250 * runtime.NumCPU()} {
			const seconds = 15
			u := command(b, servers(b, max(1, rate/3000), "20ms", "10ms"), "--request-rate", strconv.Itoa(rate), "--num-prompts", strconv.Itoa(seconds*rate), "--random-output-len", "2")
			lag := u.lags()
			b.Logf("%d requests at %d/s: %.1f s of CPU, %.0f us a request; sent late by p50 %.0f us, p99 %.0f us, at most %.0f us; %s",
				len(lag), rate, u.cpu, 1e6*u.cpu/float64(len(lag)), lag.Quantile(.5), lag.Quantile(.99), lag.Quantile(1), u.verdict())
		}
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkCommandMemory measures the resident memory per open stream,
// including stored data.
func BenchmarkCommandMemory(b *testing.B) {
	for b.Loop() {
		few := memory(b, 10)
		for _, saved := range [][]string{nil, {"--save-result", "--save-detailed"}} {
			const streams = 10_000
			rss := memory(b, streams, saved...)
			b.Logf("%.0f MB for %d streams, %.0f MB for ten: %.1f KiB a stream %v (wanted: below 16)", rss/1024, streams, few/1024, (rss-few)/streams, saved)
			b.ReportMetric((rss-few)/streams, "KiB/stream"+strings.Join(saved, ""))
		}
		b.ReportMetric(0, "ns/op")
	}
}

func memory(b *testing.B, streams int, flags ...string) float64 {
	b.Helper()
	u := command(b, servers(b, 1, "5s", "1s"), append(flags, "--num-prompts", strconv.Itoa(streams), "--random-output-len", "12")...)
	first, last := u.records[0].Events[0].At, u.records[0].Sent
	for i := range u.records {
		if !u.records[i].OK() {
			b.Fatalf("a stream failed: %v", u.records[i].Failure)
		}
		first, last = min(first, u.records[i].End), max(last, u.records[i].Sent)
	}
	if last > first {
		b.Errorf("not all streams were open at the same time: %v, %v", first, last)
	}
	return u.rss
}

// BenchmarkCommandAccuracy compares reported times with the server's own, and
// the CPU time per token with a minimal receiver and a plain client. Server and
// client first share all cores, then have one core each.
func BenchmarkCommandAccuracy(b *testing.B) {
	first, last := ends()
	free := func(start func()) { start() }
	for _, streams := range []int{100, 1000, 5000} {
		for _, clock := range []string{"kernel", "wire"} {
			b.Run(fmt.Sprintf("%d/shared/%s", streams, clock), func(b *testing.B) {
				for b.Loop() {
					accuracy(b, streams, clock, free, free)
				}
			})
		}
		b.Run(strconv.Itoa(streams)+"/apart", func(b *testing.B) {
			if first == last {
				b.Skip("it wants two cores")
			}
			for b.Loop() {
				accuracy(b, streams, "kernel", func(start func()) { onCore(first, start) }, func(start func()) { onCore(last, start) })
			}
		})
	}
}

// accuracy measures streams. here and there start servers and clients.
func accuracy(b *testing.B, streams int, clock string, here, there func(start func())) {
	b.Helper()
	const tokens = 200
	var urls []string
	here(func() { urls = metronomes(b, 1, "2s", "50ms") })
	u := commandWith(b, func(cmd *exec.Cmd) (err error) {
		there(func() { err = cmd.Start() })
		return err
	}, urls, "--num-prompts", strconv.Itoa(streams), "--random-output-len", strconv.Itoa(tokens), "--clock", clock)
	s := against(b, u.records, urls, Load{Requests: streams, Tokens: tokens})
	micros := 1e6 * u.cpu / float64(streams*tokens)
	b.Logf("%d streams at 20 tokens/s: error p99 TTFT %.0f us, ITL %.0f us (wanted: 60); %d of %d events coalesced, %d missing; %.1f us of CPU a token; %s",
		streams, s.TTFT.Quantile(.99), s.ITL.Quantile(.99), s.Coalesced, streams*tokens, s.Missing, micros, u.verdict())
	there(func() {
		if s := listen(b, urls[0], streams, tokens); s != nil {
			b.Logf("floor: error p99 TTFT %.0f us, ITL %.0f us; %d missing", s.TTFT.Quantile(.99), s.ITL.Quantile(.99), s.Missing)
		}
		for _, kind := range []string{"floor", "plain"} {
			least, _ := measure(b, kind, load{strings.TrimPrefix(urls[0], "http://"), streams, tokens, 0}, time.Hour)
			b.Logf("%s: %.1f us a token, %.2f times that", kind, least, micros/least)
		}
	})
	b.ReportMetric(s.ITL.Quantile(.99), "ITL-p99-us")
	b.ReportMetric(0, "ns/op")
}

// against compares records with the records of all servers.
func against(b testing.TB, recs []tacho.Record, urls []string, l Load) *Seen {
	b.Helper()
	all := map[string]sim.Truth{}
	for _, url := range urls {
		truth := must.Get(readTruths(b.Context(), nil, url))(b)
		maps.Copy(all, truth)
	}
	return compare(recs, all, l)
}

// BenchmarkCommandScale is for machines with many cores: more streams than one
// receive thread can handle, on both clocks, with one server per core on a few
// cores.
func BenchmarkCommandScale(b *testing.B) {
	if runtime.NumCPU() < 8 {
		b.Skip("it wants eight cores or more")
	}
	for _, c := range []struct {
		streams int
		gap     string
	}{{8000, "50ms"}, {16_000, "100ms"}} {
		for _, clock := range []string{"kernel", "wire"} {
			b.Run(fmt.Sprintf("%d-%s-%s", c.streams, c.gap, clock), func(b *testing.B) {
				for b.Loop() {
					const tokens = 100
					urls := metronomes(b, 6, "3s", c.gap)
					u := command(b, urls, "--num-prompts", strconv.Itoa(c.streams), "--random-output-len", strconv.Itoa(tokens), "--clock", clock)
					s := against(b, u.records, urls, Load{Requests: c.streams, Tokens: tokens})
					b.Logf("error p99 TTFT %.0f us, ITL %.0f us (wanted: below 100); %d of %d events coalesced, %d missing; %.1f us of CPU a token; %s",
						s.TTFT.Quantile(.99), s.ITL.Quantile(.99), s.Coalesced, c.streams*tokens, s.Missing, 1e6*u.cpu/float64(c.streams*tokens), u.verdict())
					b.ReportMetric(s.ITL.Quantile(.99), "ITL-p99-us")
					b.ReportMetric(0, "ns/op")
				}
			})
		}
	}
}
