package sim

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"

	"github.com/google/go-cmp/cmp"
)

// An outcome is an answer as a careful client sees it: the failure, if any, and the
// data received.
type outcome struct {
	Failure string // status 429, reset, truncated, timeout, malformed, in-band
	Tokens  int
	Usage   int // completion tokens by the server's count; -1 if missing
	Events  int // token events
	Huge    bool
	Bytes   bool // the answer arrived one byte at a time
	First   time.Duration
	Early   time.Duration // the first event of any kind
	Took    time.Duration
}

// talk requests eight tokens and reads the answer as a careful client would.
func talk(t *testing.T, c *http.Client, url, fault string) (o outcome) {
	t.Helper()
	begin := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	o.Usage, o.Early, o.First = -1, -1, -1
	defer func() { o.Took = time.Since(begin) }()
	body := `{"messages":[{"role":"user","content":"a b c"}],"max_tokens":8,"stream":true,"stream_options":{"include_usage":true}}`
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		o.Failure = err.Error()
		return o
	}
	if fault != "" {
		req.Header.Set("X-Sim-Fault", fault)
	}
	res, err := c.Do(req)
	if err != nil {
		o.Failure = failureOf(err)
		return o
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		o.Failure = fmt.Sprintf("status %d", res.StatusCode)
		return o
	}
	var in io.Reader = res.Body
	if res.Header.Get("Content-Encoding") == "gzip" {
		if in, err = gzip.NewReader(in); err != nil {
			o.Failure = failureOf(err)
			return o
		}
	}
	o.read(in, begin)
	return o
}

func (o *outcome) read(in io.Reader, begin time.Time) {
	var split wire.SSESplitter
	var delta wire.OpenAIDelta
	finished, done := false, false
	emit := func(e wire.SSEEvent) {
		if o.Early < 0 {
			o.Early = time.Since(begin)
		}
		o.Huge = o.Huge || len(e.Data) > 1<<20
		switch {
		case string(e.Data) == wire.OpenAIDone:
			done = true
		case delta.Decode(e.Data) != nil:
			o.Failure = "malformed"
		case delta.Failed:
			o.Failure = "in-band"
		}
		if n := words.Count(string(delta.Text)); n > 0 && !done && o.Failure == "" {
			if o.First < 0 {
				o.First = time.Since(begin)
			}
			o.Tokens += n
			o.Events++
		}
		finished = finished || len(delta.Finish) > 0
		if delta.HasUsage {
			o.Usage = delta.Usage.Completion
		}
	}
	buf := make([]byte, 4096)
	o.Bytes = true
	for {
		n, err := in.Read(buf)
		o.Bytes = o.Bytes && n <= 1
		split.Feed(buf[:n], emit)
		if err == nil {
			continue
		}
		split.Close(emit)
		if !errors.Is(err, io.EOF) && o.Failure == "" {
			o.Failure = failureOf(err)
		}
		break
	}
	if o.Failure == "" && (!finished || !done) {
		o.Failure = "truncated"
	}
}

func failureOf(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "refused"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET):
		return "reset"
	}
	return err.Error()
}

// Every fault has its documented effect on a client. No fault hangs the client, and
// a broken answer never looks complete. An answer takes 100 ms plus 10 ms for each
// further token: 170 ms for eight.
func TestFaults(t *testing.T) {
	const ms = time.Millisecond
	whole := outcome{Tokens: 8, Usage: 8, Events: 8, First: 100 * ms, Early: 100 * ms, Took: 170 * ms}
	with := func(change func(o *outcome)) outcome { o := whole; change(&o); return o }
	failed := func(how string, took time.Duration) outcome {
		return outcome{Failure: how, Usage: -1, First: -1, Early: -1, Took: took}
	}
	broken := func(how string, tokens int, took time.Duration) outcome {
		return outcome{Failure: how, Tokens: tokens, Events: tokens, Usage: -1, First: 100 * ms, Early: 100 * ms, Took: took}
	}
	tests := map[string]outcome{
		"":               whole,
		"429":            failed("status 429", 0),
		"500":            failed("status 500", 0),
		"503":            failed("status 503", 0),
		"queue-full":     failed("status 503", 0),
		"reset":          failed("reset", 0),
		"reset:3":        broken("reset", 3, 120*ms),
		"reset:8":        broken("reset", 8, 170*ms), // complete except for its end
		"truncate":       broken("truncated", 1, 100*ms),
		"truncate:8":     broken("truncated", 8, 170*ms),
		"stall":          broken("timeout", 1, 10*time.Second),
		"stall:3":        broken("timeout", 3, 10*time.Second),
		"stall:8":        broken("timeout", 8, 10*time.Second),
		"stall:3:2s":     with(func(o *outcome) { o.Took = 2120 * ms }),
		"error":          broken("in-band", 1, 100*ms),
		"error:0":        {Failure: "in-band", Usage: -1, First: -1, Early: 0},
		"malformed":      with(func(o *outcome) { o.Failure, o.Tokens, o.Events = "malformed", 1, 1 }),
		"huge":           with(func(o *outcome) { o.Huge = true }),
		"huge:2:1000":    whole,
		"no-usage":       with(func(o *outcome) { o.Usage = -1 }),
		"wrong-usage":    with(func(o *outcome) { o.Usage = 15 }),
		"wrong-usage:-3": with(func(o *outcome) { o.Usage = 5 }),
		"early-role":     with(func(o *outcome) { o.Early = 0 }),
		"merge":          with(func(o *outcome) { o.First, o.Early = 130*ms, 130*ms }),
		"trickle":        with(func(o *outcome) { o.Bytes = true }),
		"gzip":           whole,
		"hostile":        whole,
		"reasoning":      whole,
		"hostile:html":   whole,
		"pause":          with(func(o *outcome) { o.First, o.Early, o.Took = 1400*ms, 1400*ms, 1470*ms }),
		"pause:50ms, merge:8": with(func(o *outcome) {
			o.First, o.Early, o.Took = 220*ms, 220*ms, 220*ms
		}),
		"swap":           whole, // there is no other request
		"wrong-digit":    whole, // the other faults change only text
		"half-answer":    whole,
		"wrong-type":     whole,
		"reword":         whole,
		"nonsense":       failed("status 400", 0),
		"reset:x":        failed("status 400", 0),
		"503@1s":         failed("status 400", 0),
		"refuse@1s+1s":   failed("status 400", 0),
		"slow-accept:1s": failed("status 400", 0),
	}
	for fault, want := range tests {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, c := start(t, Options{TTFT: 100 * ms, ITL: 10 * ms})
				got := talk(t, c, "http://127.0.0.1", fault)
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("outcome (-want +got):\n%s", diff)
				}
				time.Sleep(time.Second) // until the server has noticed the disconnected client
				truth := s.Truth()
				if len(truth) != 1 {
					t.Fatalf("%d truths, want 1", len(truth))
				}
				name, _, _ := strings.Cut(fault, ":")
				if len(want.Failure) != len("status 400") && !strings.HasPrefix(truth[0].Fault, name) {
					t.Errorf("the truth knows of fault %q, want %q", truth[0].Fault, name)
				}
				if finished := truth[0].Finish != ""; finished != (want.Failure == "" || want.Failure == "malformed") {
					t.Errorf("the truth says finished: %v", finished)
				}
			})
		})
	}
	for _, k := range FaultKinds {
		if _, ok := tests[k.Name]; !ok && k.scope != perAccept { // perAccept faults have separate tests
			t.Errorf("fault %s has no test", k.Name)
		}
	}
}

// The same faults on answers without streaming, where a client sees only the
// status, the length and the JSON.
func TestFaultsOfWholeAnswers(t *testing.T) {
	tests := map[string]string{
		"": "ok", "500": "status 500", "error": "status 500", "reset": "reset", "reset:3": "reset",
		"truncate": "reset", "malformed": "malformed", "stall": "timeout", "stall:1:1s": "ok", "huge": "ok", "trickle": "ok",
	}
	for fault, want := range tests {
		t.Run(fault, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := start(t, Options{})
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				req, _ := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/generate",
					strings.NewReader(`{"inputs":"a","parameters":{"max_new_tokens":8}}`))
				req.Header.Set("X-Sim-Fault", fault)
				if got := wholeOutcome(c, req); got != want {
					t.Errorf("outcome %q, want %q", got, want)
				}
			})
		})
	}
}

func wholeOutcome(c *http.Client, req *http.Request) string {
	res, err := c.Do(req)
	if err != nil {
		return failureOf(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	switch {
	case err != nil:
		return failureOf(err)
	case res.StatusCode != http.StatusOK:
		return fmt.Sprintf("status %d", res.StatusCode)
	case !strings.HasSuffix(string(body), "}"):
		return "malformed"
	}
	return "ok"
}

func TestFaultsByRateAndSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := start(t, Options{Faults: []string{"503@10s+5s/60s", "500=50%@120s"}})
		count := func() (failures int) {
			for range 100 {
				if talk(t, c, "http://127.0.0.1", "").Failure != "" {
					failures++
				}
			}
			return failures
		}
		for _, tt := range []struct {
			at       time.Duration
			min, max int
		}{
			{0, 0, 0},
			{10 * time.Second, 100, 100},
			{15 * time.Second, 0, 0},
			{70 * time.Second, 100, 100},
			{76 * time.Second, 0, 0},
			{150 * time.Second, 30, 70},
		} {
			time.Sleep(tt.at - s.sinceStart(time.Now()))
			if n := count(); n < tt.min || n > tt.max {
				t.Errorf("at %v %d of 100 failed, want %d to %d", tt.at, n, tt.min, tt.max)
			}
		}
	})
}

// A pause stops the clock of every answer in both models, including answers
// requested during the pause.
func TestPauseStopsAllAnswers(t *testing.T) {
	for name, opt := range map[string]Options{
		"fixed":   {TTFT: 100 * time.Millisecond, ITL: 100 * time.Millisecond},
		"batched": {Profile: testProfile()},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				opt.Faults = []string{"pause:2s@1150ms"}
				s, c := start(t, opt)
				time.Sleep(time.Second)
				for range 2 {
					go talk(t, c, "http://127.0.0.1", "")
				}
				time.Sleep(time.Second) // in the middle of the pause
				go talk(t, c, "http://127.0.0.1", "")
				time.Sleep(5 * time.Second)
				resumed := s.clock.start.Add(3150 * time.Millisecond).UnixNano()
				began := s.clock.start.Add(1150 * time.Millisecond).UnixNano()
				truth := s.Truth()
				if len(truth) != 3 {
					t.Fatalf("%d truths, want 3", len(truth))
				}
				for _, x := range truth {
					for _, at := range x.Writes {
						if at > began && at < resumed {
							t.Errorf("a token was written %v into the pause", time.Duration(at-began))
						}
					}
					if x.Finish == "" {
						t.Errorf("unfinished: %+v", x)
					}
				}
			})
		})
	}
}

// Connections are refused during the scheduled times, repeatedly.
func TestRefuse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		l := must.Get(network.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
		s := must.Get(New(Options{Faults: []string{"refuse@1s+300ms/600ms"}}))(t)
		served := make(chan error, 1)
		go func() { served <- s.Serve(l) }()
		c := &http.Client{Transport: &http.Transport{DialContext: network.Dial, DisableKeepAlives: true}}
		for at, want := range []string{"", "", "", "", "", "", "", "", "", "", "refused", "refused", "refused", "", "", "", "refused", "refused", "refused", ""} {
			time.Sleep(time.Duration(at)*100*time.Millisecond + time.Millisecond - s.sinceStart(time.Now()))
			if o := talk(t, c, "http://"+l.Addr().String(), ""); o.Failure != want {
				t.Errorf("after %d ms: failure %q, want %q", 100*at, o.Failure, want)
			}
		}
		if err := errors.Join(s.Close(), <-served); err != nil {
			t.Error(err)
		}
	})
}

func TestSlowAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := start(t, Options{Faults: []string{"slow-accept:2s"}})
		if o := talk(t, c, "http://127.0.0.1", ""); o.Failure != "" || o.Took != 2*time.Second {
			t.Errorf("failure %q after %v, want none after 2s", o.Failure, o.Took)
		}
		if o := talk(t, c, "http://127.0.0.1", ""); o.Failure != "" || o.Took != 0 {
			t.Errorf("on the same connection: failure %q after %v, want none at once", o.Failure, o.Took)
		}
	})
}

// A reset fault sends a TCP reset, not an end of file.
func TestResetIsATCPReset(t *testing.T) {
	s := must.Get(New(Options{}))(t)
	defer s.Close()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go s.Serve(l)
	conn, err := net.Dial("tcp", l.Addr().String())
	must.Do(t, err)
	defer conn.Close()
	body := `{"prompt":"a","stream":true}`
	fmt.Fprintf(conn, "POST /v1/completions HTTP/1.1\r\nHost: sim\r\nX-Sim-Fault: reset:2\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
	if _, err = io.Copy(io.Discard, conn); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("the connection ended with %v, want a reset", err)
	}
}

func TestFullServerRefusesInItsOwnWay(t *testing.T) {
	for _, tt := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v1/completions", `{"prompt":"a"}`, 503, "overloaded"},
		{"/generate", `{"inputs":"a"}`, 429, `"error_type":"overloaded"`},
		{"/generate_stream", `{"inputs":"a"}`, 200, `data:{"error":"Model is overloaded","error_type":"overloaded"}`},
		{"/api/generate", `{"prompt":"a"}`, 503, `{"error":"Model is overloaded"}`},
		{"/v1/messages", `{"max_tokens":1,"messages":[{"role":"user","content":"a"}]}`, 529, "overloaded_error"},
	} {
		t.Run(tt.path, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, c := start(t, Options{MaxConcurrent: 1, TTFT: time.Second})
				go talk(t, c, "http://127.0.0.1", "")
				synctest.Wait()
				res := post(t, c, tt.path, tt.body)
				body, _ := io.ReadAll(res.Body)
				if res.StatusCode != tt.status || !strings.Contains(string(body), tt.want) {
					t.Errorf("status %d, %s; want %d with %s", res.StatusCode, body, tt.status, tt.want)
				}
				time.Sleep(2 * time.Second)
			})
		})
	}
}

func FuzzParseFault(f *testing.F) {
	for _, s := range []string{"503=5%", "reset:10@30s+5s", "pause:1.3s@60s/120s", "stall:1:2s", "503@10s+5s/60s", "hostile:html", "=@+/:"} {
		f.Add(s, int64(time.Second))
	}
	f.Fuzz(func(t *testing.T, text string, at int64) {
		fault, err := parseFault(text)
		if err != nil || at < 0 {
			return
		}
		fault.active(time.Duration(at))
		if next, ok := fault.next(time.Duration(at)); ok && fault.scheduled && next >= 0 && next < time.Duration(at) {
			t.Errorf("%q begins at %v, which is before %v", text, next, time.Duration(at))
		}
		if fault.rate < 0 || fault.rate > 1 {
			t.Errorf("%q has a rate of %v", text, fault.rate)
		}
	})
}
