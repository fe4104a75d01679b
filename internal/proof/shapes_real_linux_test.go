//go:build real

package proof

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
)

// few is a load of few streams that the server sends on time.
func few(r *rand.Rand, c *trial, p answerPattern) {
	c.streams, c.tokens, c.answerPattern = between(r, 30, 80), between(r, 20, 60), p
	c.answerPattern.TTFT, c.answerPattern.Gap = millis(r, 50, 150), millis(r, 15, 40)
}

// shape returns a kind with an answer pattern.
func shape(name string, p answerPattern, flags ...string) kind {
	return kind{name: name, of: func(r *rand.Rand, c *trial) {
		few(r, c, p)
		if c.flags = flags; p.Chat {
			c.flags = append([]string{"--backend", "openai-chat"}, flags...)
		}
	}}
}

// counted makes the client count tokens, so that a run without usage can be VALID.
var counted = []string{"--skip-tokenizer-init=false", "--tokenizer", "cl100k_base", "--ignore-eos=false"}

// shapes are answers with events without text, with several tokens in an event, or in lumps.
var shapes = slices.Concat([]kind{
	shape("first token: announced", answerPattern{Opening: "announce"}),
	shape("first token: announced, one pair", answerPattern{Opening: "announce", Pairs: "one"}),
	shape("first token: announced, a pair once", answerPattern{Opening: "announce", Pairs: "once"}),
	shape("first token: announced, no usage", answerPattern{Opening: "announce", Uncount: "none"}, counted...),
	shape("first token: announced, usage 0", answerPattern{Opening: "announce", Pairs: "one", Uncount: "zero"}, counted...),
	shape("first token: announced with a count, one pair", answerPattern{Opening: "count", Pairs: "one"}),
	shape("first token: role", answerPattern{Opening: "role", Chat: true}),
	shape("first token: role, one pair", answerPattern{Opening: "role", Chat: true, Pairs: "one"}),
	shape("first token: chat, announced, one pair", answerPattern{Opening: "announce", Chat: true, Pairs: "one"}),
	shape("first token: heartbeats", answerPattern{Beat: 20 * time.Millisecond}),
	shape("first token: heartbeats, one pair", answerPattern{Beat: 20 * time.Millisecond, Pairs: "one"}),
	shape("first token: heartbeats, no usage", answerPattern{Beat: 20 * time.Millisecond, Chat: true, Uncount: "none"}, counted...),
	shape("first token: half a character", answerPattern{Opening: "half"}),
	shape("first token: half a character, one pair", answerPattern{Opening: "half", Pairs: "one"}),
	shape("first token: half a character, no usage", answerPattern{Opening: "half", Uncount: "none"}, counted...),
	shape("empty events: half characters", answerPattern{Halves: 5}),
	shape("empty events: half characters, pairs", answerPattern{Halves: 5, Pairs: "some"}),
	shape("empty events: heartbeats", answerPattern{Beat: 10 * time.Millisecond, Beats: true}),
	shape("empty events: heartbeats, one pair", answerPattern{Beat: 10 * time.Millisecond, Beats: true, Pairs: "one"}),
	{name: "empty events: a heartbeat in each gap, pairs", of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{Beats: true, Pairs: "all"})
		c.answerPattern.Beat = c.answerPattern.Gap * 6 / 10
	}},
	{name: "empty events: heartbeats in some gaps, pairs", of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{Beats: true, Pairs: "all", Jitter: 1})
		c.answerPattern.Beat = c.answerPattern.Gap
	}},
	shape("pairs: some", answerPattern{Pairs: "some"}),
	shape("pairs: all", answerPattern{Pairs: "all"}),
	shape("pairs: all, no usage", answerPattern{Pairs: "all", Uncount: "none"}, counted...),
	{name: "lumps: of the server", of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{Burst: between(r, 2, 20)})
	}},
	{name: "lumps: of the server, one write", of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{Burst: between(r, 2, 20), Together: true})
	}},
	{name: "lumps: of the server, metrics page", wrong: mustNotName("buffered", "held-back"), of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{Burst: between(r, 2, 20)})
		c.page = true
	}},
	{name: "lumps: of a relay", wrong: mustName("unexplained-lumps", "buffered"), of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{})
		c.relay = strconv.Itoa(between(r, 2, 20))
	}},
	{name: "lumps: of a relay, metrics page", of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{})
		c.relay, c.page = strconv.Itoa(between(r, 2, 20)), true
	}},
	{name: "lumps: held for 25 ms", wrong: mustName("unexplained-lumps", "buffered"), of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{})
		c.relay, c.answerPattern.Gap = "25ms", millis(r, 5, 20)
	}},
	{name: "lumps: held for 25 ms, metrics page", of: func(r *rand.Rand, c *trial) {
		few(r, c, answerPattern{})
		c.relay, c.page, c.answerPattern.Gap = "25ms", true, millis(r, 5, 20)
	}},
})

// mustName checks that a run names one of the rules.
func mustName(codes ...string) func(observation) string {
	return func(o observation) string {
		if !slices.ContainsFunc(codes, func(code string) bool { return strings.Contains(o.said, " "+code+":") }) {
			return "does not name " + strings.Join(codes, " or ") + "; "
		}
		return ""
	}
}

// mustNotName checks that a run names none of the rules.
func mustNotName(codes ...string) func(observation) string {
	return func(o observation) string {
		if mustName(codes...)(o) == "" {
			return "names " + strings.Join(codes, " or ") + "; "
		}
		return ""
	}
}

// inBursts reports whether the server sent more than one of 20 answers with 12 events in a row, as servers do that are
// short of CPU.
func inBursts(truth map[string]serverRecord) bool {
	answers := 0
	for _, w := range truth {
		for k := 11; k < len(w.Left); k++ {
			if w.Left[k]-w.Left[k-11] < int64(11*200*time.Microsecond) {
				answers++
				break
			}
		}
	}
	return 20*answers > len(truth)
}

// uneven reports whether the client may take other events for tokens than the server.
func (c *trial) uneven() bool {
	p := &c.answerPattern
	return p.Opening == "half" || p.Beats || c.relay != ""
}

// relay is the role of a proxy that holds answers back: a number of events, or a time after each read.
func relay(args []string) error {
	runtime.GOMAXPROCS(1)
	events, err := strconv.Atoi(args[1])
	hold := time.Duration(0)
	if err != nil {
		if hold, err = time.ParseDuration(args[1]); err != nil {
			return err
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go pass(c, args[0], events, hold)
		}
	}()
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

// pass connects a client to a server.
func pass(client net.Conn, address string, events int, hold time.Duration) {
	defer func() { _ = client.Close() }() // everything was written
	server, err := net.Dial("tcp", address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "relay:", err)
		return
	}
	defer func() { _ = server.Close() }() // everything was read
	go func() {
		_, _ = io.Copy(server, client)
		_ = server.Close() // the client has closed
	}()
	var held []byte
	b := make([]byte, 64<<10)
	for {
		n, err := server.Read(b)
		held = append(held, b[:n]...)
		if hold > 0 && n > 0 && bytes.Contains(held, []byte("data:")) {
			time.Sleep(hold)
			_ = server.SetReadDeadline(time.Now().Add(time.Millisecond))
			n, _ = server.Read(b) // bytes that arrived in the meantime
			_ = server.SetReadDeadline(time.Time{})
			held = append(held, b[:n]...)
		}
		waiting := bytes.Count(held, []byte("data:"))
		if err != nil || hold > 0 || waiting == 0 || waiting >= events || bytes.Contains(held, []byte("[DONE]")) {
			if _, failed := client.Write(held); failed != nil || err != nil {
				return
			}
			held = held[:0]
		}
	}
}

// A wrongFigure is a published figure and its error outside the server's times before and after each write.
type wrongFigure struct {
	name  string
	share float64 // of the true value
	value float64
	low   float64 // smallest true value
	high  float64 // largest true value
}

func (f wrongFigure) String() string {
	if f.name == "" {
		return "no figure off"
	}
	return fmt.Sprintf("%s %.2f for %.2f to %.2f (%.2f %%)", f.name, f.value, f.low, f.high, 100*f.share)
}

// A window holds the smallest and largest true values of a metric.
type window struct{ low, high []float64 }

func (w *window) add(low, high int64) {
	w.low, w.high = append(w.low, max(float64(low), 0)/1e6), append(w.high, max(float64(high), 0)/1e6)
}

// published returns the published figure with the largest error.
func published(recs records, truth map[string]serverRecord) (worst wrongFigure) {
	var sum metric.Accumulator
	var ttft, itl, tpot, e2el window
	begin, end := int64(math.MaxInt64), int64(0)
	for i := range recs {
		r := &recs[i]
		_ = sum.Add(r) // in memory, cannot fail
		w, ok := truth[r.ID]
		if !ok || !r.OK() || len(w.Writes) == 0 {
			continue
		}
		begin, end = min(begin, w.Received-int64(r.Sent)), max(end, w.End) // throughput counts from the start of the schedule
		n := len(w.Writes)
		first, last := w.Writes[0], w.Writes[n-1]
		ttft.add(first.Before-w.Received, first.After-w.Received)
		e2el.add(last.Before-w.Received, last.After-w.Received)
		for k := range n - 1 {
			itl.add(w.Writes[k+1].Before-w.Writes[k].After, w.Writes[k+1].After-w.Writes[k].Before)
		}
		if steps := int64(w.Tokens - 1); steps > 0 {
			tpot.add((last.Before-first.After)/steps, (last.After-first.Before)/steps)
		}
	}
	s := sum.Summary(metric.DefaultConfig())
	for _, m := range []struct {
		metric *metric.Metric
		truth  window
	}{{metric.TTFT, ttft}, {metric.ITL, itl}, {metric.TPOT, tpot}, {metric.E2EL, e2el}} {
		stats := s.Dist(m.metric).Stats
		if stats == nil || len(m.truth.low) == 0 {
			continue
		}
		low, high := stat.New(m.truth.low), stat.New(m.truth.high)
		worst = worst.orWorse(wrongFigure{name: m.metric.Name + ".mean", value: stats.Mean, low: low.Mean(), high: high.Mean()}, leastMillis)
		worst = worst.orWorse(wrongFigure{name: m.metric.Name + ".median", value: stats.Median, low: low.Quantile(.5), high: high.Quantile(.5)}, leastMillis)
		worst = worst.orWorse(wrongFigure{name: m.metric.Name + ".p99", value: stats.Percentile(99), low: low.Quantile(.99), high: high.Quantile(.99)}, leastMillis)
	}
	if lasted := float64(end-begin) / 1e9; s.Throughput != nil && lasted > 0 {
		n := float64(len(ttft.low))
		worst = worst.orWorse(wrongFigure{name: "request_throughput", value: s.Throughput.RequestsPerS, low: n / lasted, high: n / lasted}, 0)
	}
	return worst
}

// orWorse returns the figure with the larger error. Times below least need no better accuracy.
func (f wrongFigure) orWorse(o wrongFigure, least float64) wrongFigure {
	o.share = max(o.low-o.value, o.value-o.high, 0) / max(math.Abs(o.high), least)
	if o.share > f.share {
		return o
	}
	return f
}
