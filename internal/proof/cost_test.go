package proof

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/transport"
)

// A load is a number of streams opened over some time, each with a fixed number
// of tokens.
type load struct {
	addr            string
	streams, tokens int
	within          time.Duration
}

// at returns the time at which stream i is opened.
func (l load) at(i int) time.Duration { return time.Duration(i) * l.within / time.Duration(l.streams) }

// clients are implementations that read the same streams.
var clients = map[string]func(load) error{"tacho": tachoClient, "plain": plainClient, "floor": floorClient}

// client is the role of a client. args are its kind, the server's address, the
// number of streams, tokens per stream, the time over which streams are opened,
// and the time after which all are open. It prints its CPU time per token and
// its memory per stream.
func client(args []string) error {
	streams, err1 := strconv.Atoi(args[2])
	tokens, err2 := strconv.Atoi(args[3])
	within, err3 := time.ParseDuration(args[4])
	after, err4 := time.ParseDuration(args[5])
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	runtime.GC()
	debug.FreeOSMemory()
	before, cpu := residentKiB(), cpuSeconds()
	var open float64
	timer := time.AfterFunc(after, func() { open = residentKiB() })
	defer timer.Stop()
	if err := clients[args[0]](load{addr: args[1], streams: streams, tokens: tokens, within: within}); err != nil {
		return err
	}
	fmt.Println((cpuSeconds()-cpu)/float64(streams*tokens)*1e6, (open-before)/float64(streams))
	return nil
}

// tachoClient uses tacho's code from the schedule to the records.
func tachoClient(l load) error {
	engine.Tune()
	be, tc, err := vllm(l.addr)
	if err != nil {
		return err
	}
	defer tc.Close()
	var sink counter
	err = engine.Run(context.Background(), engine.Stage{
		Arrivals: pace.Stripe(pace.Constant{Rate: float64(l.streams) / l.within.Seconds(), Count: l.streams}.Arrivals(), 0, 1),
		Source:   prompts{count: l.streams, output: l.tokens}, Backend: be, Precise: true,
	}, &sink)
	if err == nil && sink.tokens != l.streams*l.tokens {
		err = fmt.Errorf("%d tokens, want %d; %s", sink.tokens, l.streams*l.tokens, sink.example)
	}
	return err
}

// vllm returns a backend and its client.
func vllm(addr string) (tacho.Backend, *transport.Client, error) {
	tc, err := transport.New(transport.Options{BaseURL: "http://" + addr})
	if err != nil {
		return nil, nil, err
	}
	k, err := backend.Find("vllm")
	if err != nil {
		return nil, nil, err
	}
	be, err := k.New(backend.Options{Client: tc, Model: "sim"})
	return be, tc, err
}

// counter counts records and drops them.
type counter struct {
	tokens  int
	example string
}

func (c *counter) Add(r *tacho.Record) error {
	c.tokens += len(r.Events)
	if r.Failure != nil {
		c.example = r.Failure.Error()
	}
	return nil
}
func (c *counter) Close() error { return nil }

// plainClient is a typical client: net/http, a scanner and encoding/json.
func plainClient(l load) error {
	hc := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: l.streams, DisableCompression: true}}
	var wg sync.WaitGroup
	errs := make(chan error, l.streams)
	for i := range l.streams {
		wg.Go(func() {
			time.Sleep(l.at(i))
			n, err := plainStream(hc, l)
			if err == nil && n != l.tokens {
				err = fmt.Errorf("%d tokens, want %d", n, l.tokens)
			}
			errs <- err
		})
	}
	wg.Wait()
	close(errs)
	var all []error
	for err := range errs {
		all = append(all, err)
	}
	return errors.Join(all...)
}

func plainStream(hc *http.Client, l load) (tokens int, err error) {
	resp, err := hc.Post("http://"+l.addr+"/v1/completions", "application/json", strings.NewReader(requestBody(l.tokens)))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	times := make([]time.Time, 0, l.tokens)
	for sc := bufio.NewScanner(resp.Body); sc.Scan(); {
		data, ok := bytes.CutPrefix(sc.Bytes(), []byte("data: "))
		if !ok || string(data) == "[DONE]" {
			continue
		}
		var chunk struct {
			Choices []struct {
				Text         string
				FinishReason *string `json:"finish_reason"`
			}
			Usage *struct {
				PromptTokens     int `json:"prompt_tokens"`
				CompletionTokens int `json:"completion_tokens"`
			}
		}
		if err := json.Unmarshal(data, &chunk); err != nil {
			return 0, err
		}
		if len(chunk.Choices) > 0 && chunk.Choices[0].Text != "" {
			times = append(times, time.Now())
		}
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return len(times), err
}

func requestBody(tokens int) string {
	return fmt.Sprintf(`{"model":"sim","prompt":[1001,1002,1003,1004],"max_tokens":%d,"ignore_eos":true,"stream":true,"stream_options":{"include_usage":true}}`, tokens)
}

// measure runs a client in its own process.
func measure(b *testing.B, kind string, l load, after time.Duration) (cpuMicros, kib float64) {
	b.Helper()
	c := start(b, "client", kind, l.addr, strconv.Itoa(l.streams), strconv.Itoa(l.tokens), l.within.String(), after.String())
	must.Get(fmt.Sscan(c.line(), &cpuMicros, &kib))(b)
	c.stop()
	return cpuMicros, kib
}

// BenchmarkCPU compares the CPU time per streamed token.
func BenchmarkCPU(b *testing.B) {
	for b.Loop() {
		const streams, tokens = 2000, 400
		addr := start(b, "server", "1s", "50ms").line()
		cpu := map[string]float64{}
		for _, kind := range []string{"plain", "tacho", "floor", "tacho", "plain"} { // twice, to show changes in the machine's load
			micros, _ := measure(b, kind, load{addr, streams, tokens, time.Second}, time.Hour)
			b.Logf("%-5s %.2f us of CPU a token (%d streams at 20 tokens/s)", kind, micros, streams)
			cpu[kind] += micros
		}
		ratio := cpu["tacho"] / cpu["plain"]
		b.Logf("tacho / plain net/http + bufio.Scanner + encoding/json: %.2f (wanted: at most 0.6); floor / plain: %.2f", ratio, 2*cpu["floor"]/cpu["plain"])
		b.ReportMetric(ratio, "cpu-ratio")
		b.ReportMetric(cpu["tacho"]/2, "us/token")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkMemory measures the resident memory per open stream.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		const streams, tokens = 10_000, 12
		addr := start(b, "server", "2s", "1s").line()
		for _, kind := range []string{"plain", "tacho"} {
			_, kib := measure(b, kind, load{addr, streams, tokens, time.Second}, 8*time.Second)
			b.Logf("%-5s %.1f KiB resident for each of %d open streams", kind, kib, streams)
			b.ReportMetric(kib, kind+"-KiB/stream")
		}
		b.ReportMetric(0, "ns/op")
	}
}
