package sim

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"
)

// childVar makes the test binary a server in a separate process, so that client and
// server do not share a heap, a scheduler or a CPU limit.
//
// hermetic: only the benchmark starts a process.
const childVar = "TACHO_SIM_CHILD"

var (
	loadStreams = flag.Int("streams", 2000, "BenchmarkLoad: open streams")
	loadRate    = flag.Float64("rate", 50, "BenchmarkLoad: tokens a second on each stream")
	loadTokens  = flag.Int("tokens", 250, "BenchmarkLoad: tokens of each answer")
	loadBatched = flag.Bool("batched", false, "BenchmarkLoad: with the step engine, in which all streams write at once")
)

func TestMain(m *testing.M) {
	flag.Parse()
	if os.Getenv(childVar) != "" {
		if err := serveChild(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// serveChild serves until its standard input ends and then reports the delay of its
// writes.
func serveChild() error {
	runtime.GOMAXPROCS(1)
	itl := time.Duration(float64(time.Second) / *loadRate)
	ttft := 2 * time.Second
	opt := Options{TTFT: ttft, ITL: itl}
	if *loadBatched {
		opt = Options{Profile: &step.Profile{
			Policy: "chunked", MaxSequences: 1 << 20, StepTokens: 1 << 20,
			KV:       step.KV{BlockTokens: 16},
			Output:   step.Lengths{Mean: 1, Max: 1 << 20},
			FrontEnd: step.FrontEnd{FixedMs: float64(ttft.Milliseconds())},
			Cost:     step.Cost{Step: []step.Knot{{Tokens: 1, Ms: itl.Seconds() * 1e3}}},
		}}
	}
	s, err := New(opt)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go s.Serve(l)
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var late []int64
	for _, t := range s.Truth() {
		for k, at := range t.Writes {
			late = append(late, at-t.Arrival-int64(ttft)-int64(k)*int64(itl))
		}
	}
	if len(late) == 0 || *loadBatched {
		return s.Close()
	}
	slices.Sort(late)
	fmt.Println(late[len(late)/2], late[len(late)*99/100])
	return s.Close()
}

// BenchmarkLoad opens many concurrent streams to a server in a separate process,
// limited to one core, and reads them to the end. It reports the tokens received
// per second, the server's CPU time for each token, its peak memory and the delay
// of its writes.
//
//	go test ./sim -run '^$' -bench Load -benchtime 1x -streams 2000 -rate 50 -tokens 500
func BenchmarkLoad(b *testing.B) {
	for range b.N {
		loadOnce(b)
	}
}

func loadOnce(b *testing.B) {
	child := exec.Command(os.Args[0], os.Args[1:]...)
	child.Env = append(os.Environ(), childVar+"=1")
	child.Stderr = os.Stderr
	stdin := must.Get(child.StdinPipe())(b)
	stdout := must.Get(child.StdoutPipe())(b)
	must.Do(b, child.Start())
	defer child.Wait()
	defer stdin.Close()
	said := bufio.NewReader(stdout)
	address := must.Get(said.ReadString('\n'))(b)
	address = strings.TrimSpace(address)

	var wg sync.WaitGroup
	var tokens, failed atomic.Int64
	var first, last atomic.Int64
	for range *loadStreams {
		wg.Go(func() {
			n, err := readStream(address, &first, &last)
			tokens.Add(n)
			if err != nil {
				failed.Add(1)
			}
		})
	}
	wg.Wait()
	peak := peakMiB(b, child.Process.Pid)
	stdin.Close()
	lateness, _ := said.ReadString('\n')
	must.Do(b, child.Wait())
	want := int64(*loadStreams) * int64(*loadTokens)
	if failed.Load() > 0 || tokens.Load() != want {
		b.Fatalf("%d tokens arrived and %d streams failed, want %d and 0", tokens.Load(), failed.Load(), want)
	}
	cpu := child.ProcessState.UserTime() + child.ProcessState.SystemTime()
	b.ReportMetric(float64(want)/time.Duration(last.Load()-first.Load()).Seconds(), "tokens/s")
	b.ReportMetric(float64(cpu.Microseconds())/float64(want), "server-µs/token")
	b.ReportMetric(peak, "MiB")
	var p50, p99 float64
	if _, err := fmt.Sscan(lateness, &p50, &p99); err == nil {
		b.ReportMetric(p50/1e6, "late-p50-ms")
		b.ReportMetric(p99/1e6, "late-p99-ms")
	}
}

// readStream requests one answer and counts its tokens with as little work as
// possible.
func readStream(address string, first, last *atomic.Int64) (int64, error) {
	c, err := net.Dial("tcp", address)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	body := fmt.Sprintf(`{"prompt":"x","max_tokens":%d,"ignore_eos":true,"stream":true}`, *loadTokens)
	if _, err := fmt.Fprintf(c, "POST /v1/completions HTTP/1.1\r\nHost: sim\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s", len(body), body); err != nil {
		return 0, err
	}
	mark := []byte(`"text"`)
	buf := make([]byte, 4096)
	tail := 0 // of the previous read, in which a mark may have begun
	n := int64(0)
	for {
		got, err := c.Read(buf[tail:])
		text := buf[:tail+got]
		if found := int64(bytes.Count(text, mark)); found > 0 {
			now := time.Now().UnixNano()
			first.CompareAndSwap(0, now)
			last.Store(now)
			n += found
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return n, err
		}
		tail = min(len(text), len(mark)-1)
		copy(buf, text[len(text)-tail:])
	}
}

func peakMiB(b *testing.B, pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Skip("no /proc: cannot measure memory")
	}
	for line := range strings.Lines(string(status)) {
		if f := strings.Fields(line); f[0] == "VmHWM:" {
			kib := must.Get(strconv.ParseFloat(f[1], 64))(b)
			return kib / 1024
		}
	}
	b.Fatal("no VmHWM in /proc/PID/status")
	return 0
}
