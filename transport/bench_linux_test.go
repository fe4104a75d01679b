package transport

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tacho-bench/tacho/internal/must"
)

// serveVariable makes the test binary the server of the benchmarks, so that the server's
// CPU time and memory are not counted.
//
// hermetic: only benchmarks start a process.
const serveVariable = "TRANSPORT_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(serveVariable) != "" {
		if err := serveStreams(os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

const event = `data: {"id":"cmpl-0123456789abcdef0123456789abcdef","object":"text_completion","created":1700000000,` +
	`"model":"meta-llama/Llama-3.1-8B-Instruct","choices":[{"index":0,"text":" token","logprobs":null,` +
	`"finish_reason":null,"stop_reason":null}],"usage":null}` + "\n\n"

// serveStreams responds to /?events=N&gap=D with N events, one every D, until standard
// input is closed.
func serveStreams(out io.Writer) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, ln.Addr())
	go func() {
		io.Copy(io.Discard, os.Stdin)
		ln.Close()
	}()
	for {
		nc, err := ln.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		go serveStream(nc)
	}
}

func serveStream(nc net.Conn) {
	defer nc.Close()
	r := bufio.NewReaderSize(nc, 512)
	line := []byte(chunk(event))
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		events, _ := strconv.Atoi(req.FormValue("events"))
		gap, _ := time.ParseDuration(req.FormValue("gap"))
		io.WriteString(nc, chunkedHead)
		next := time.Now()
		for range events {
			next = next.Add(gap)
			time.Sleep(time.Until(next))
			if _, err := nc.Write(line); err != nil {
				return
			}
		}
		io.WriteString(nc, "0\r\n\r\n")
	}
}

// startServer runs serveStreams in a separate process.
func startServer(b *testing.B) (base string) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"=1")
	cmd.Stderr = os.Stderr
	stdin := must.Get(cmd.StdinPipe())(b)
	stdout := must.Get(cmd.StdoutPipe())(b)
	must.Do(b, cmd.Start())
	b.Cleanup(func() { stdin.Close(); cmd.Wait() })
	addr := must.Get(bufio.NewReader(stdout).ReadString('\n'))(b)
	return "http://" + strings.TrimSpace(addr)
}

func cpuNanos(b *testing.B) int64 {
	var u syscall.Rusage
	must.Do(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

// discard is a Consumer that does nothing.
type discard struct{}

func (discard) Consume([]byte, []Read) error { return nil }

// BenchmarkStream measures the CPU time of kernel and program per event of many paced
// streams: with this package, and with net/http, a line scanner and encoding/json as in a
// simple client.
func BenchmarkStream(b *testing.B) {
	const streams = 400
	base := startServer(b)
	client := newClient(b, Options{BaseURL: base})
	plain := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: streams, DisableCompression: true}}
	for _, bm := range []struct {
		name string
		run  func(path string) error
	}{
		{"transport", func(path string) error {
			var x Exchange
			return client.Do(context.Background(), ready(b, client, "GET", path, ""), &x, discard{}, nil)
		}},
		{"net-http+scanner", func(path string) error { return scan(plain, base+path, false) }},
		{"net-http+scanner+json", func(path string) error { return scan(plain, base+path, true) }},
	} {
		b.Run(bm.name, func(b *testing.B) {
			events := b.N/streams + 1
			path := "/?gap=20ms&events=" + strconv.Itoa(events)
			b.ReportAllocs()
			runtime.GC()
			before := cpuNanos(b)
			b.ResetTimer()
			var wg sync.WaitGroup
			for range streams {
				wg.Go(func() {
					if err := bm.run(path); err != nil {
						b.Error(err)
					}
				})
			}
			wg.Wait()
			b.StopTimer()
			b.ReportMetric(float64(cpuNanos(b)-before)/float64(events*streams), "cpu-ns/event")
		})
	}
}

// A talker is a connection without a network: after a request it returns one event per
// read, immediately.
type talker struct {
	net.Conn
	asked  chan struct{}
	left   int
	chunk  []byte
	headed bool
}

func (c *talker) Write(p []byte) (int, error) {
	select {
	case c.asked <- struct{}{}:
	default:
	}
	return len(p), nil
}

func (c *talker) Read(p []byte) (int, error) {
	switch {
	case !c.headed:
		<-c.asked
		c.headed = true
		return copy(p, chunkedHead), nil
	case c.left > 0:
		c.left--
		return copy(p, c.chunk), nil
	case c.left == 0:
		c.left--
		return copy(p, "0\r\n\r\n"), nil
	}
	return 0, io.EOF
}

func (*talker) Close() error { return nil }

// BenchmarkEvent measures the cost of an event without system calls, for the clients of
// BenchmarkStream.
func BenchmarkEvent(b *testing.B) {
	dial := func(n int) func(context.Context, string, string) (net.Conn, error) {
		return func(context.Context, string, string) (net.Conn, error) {
			return &talker{asked: make(chan struct{}, 1), left: n, chunk: []byte(chunk(event))}, nil
		}
	}
	b.Run("transport", func(b *testing.B) {
		c := newClient(b, Options{BaseURL: "http://mem", Dial: dial(b.N)})
		req := ready(b, c, "GET", "/", "")
		b.ReportAllocs()
		var x Exchange
		must.Do(b, c.Do(context.Background(), req, &x, discard{}, nil))
	})
	for _, decode := range []bool{false, true} {
		b.Run(map[bool]string{false: "net-http+scanner", true: "net-http+scanner+json"}[decode], func(b *testing.B) {
			b.ReportAllocs()
			must.Do(b, scan(&http.Client{Transport: &http.Transport{DialContext: dial(b.N)}}, "http://mem", decode))
		})
	}
}

func scan(c *http.Client, url string, decode bool) error {
	resp, err := c.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var stamps []int64
	s := bufio.NewScanner(resp.Body)
	for s.Scan() {
		data, ok := strings.CutPrefix(s.Text(), "data: ")
		if !ok {
			continue
		}
		stamps = append(stamps, now())
		if !decode {
			continue
		}
		var chunk struct {
			Choices []struct {
				Text string `json:"text"`
			} `json:"choices"`
		}
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return err
		}
	}
	if len(stamps) == 0 {
		return errors.New("no event")
	}
	return s.Err()
}

// BenchmarkOpenStreams measures the memory of one of b.N open streams in the middle of the
// response. Run it with -benchtime 10000x.
func BenchmarkOpenStreams(b *testing.B) {
	base := startServer(b)
	client := newClient(b, Options{BaseURL: base})
	ctx, cancel := context.WithCancel(b.Context())
	debug.FreeOSMemory()
	before := resident(b)
	beforeHeap, beforeStack := inUse()
	var started, wg sync.WaitGroup
	dialling := make(chan struct{}, 64) // more would overflow the listen queue
	for range b.N {
		dialling <- struct{}{}
		started.Add(1)
		req := ready(b, client, "GET", "/?gap=500ms&events=1000000", "")
		wg.Go(func() {
			pieces := 0
			live := func([]byte, int64) {
				switch pieces++; pieces {
				case 1:
					<-dialling
				case 20: // about 6 KB have arrived
					started.Done()
				}
			}
			var x Exchange
			if err := client.Do(ctx, req, &x, discard{}, live); ctx.Err() == nil {
				b.Error(err)
			}
		})
	}
	started.Wait()
	b.ReportMetric(float64(resident(b)-before)/float64(b.N), "dirty-RSS-B/stream")
	debug.FreeOSMemory()
	b.ReportMetric(float64(resident(b)-before)/float64(b.N), "RSS-B/stream")
	heap, stack := inUse()
	b.ReportMetric(float64(heap-beforeHeap)/float64(b.N), "heap-B/stream")
	b.ReportMetric(float64(stack-beforeStack)/float64(b.N), "stack-B/stream")
	cancel()
	wg.Wait()
}

func resident(b *testing.B) int64 {
	text := must.Get(os.ReadFile("/proc/self/statm"))(b)
	pages := must.Get(strconv.ParseInt(strings.Fields(string(text))[1], 10, 64))(b)
	return pages * int64(unix.Getpagesize())
}

func inUse() (heap, stack int64) {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse), int64(m.StackInuse)
}
