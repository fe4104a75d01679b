package backend_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport"
)

// An outcome is the expected result of a trial.
type outcome struct {
	Cause   tacho.Cause
	Status  int
	Message string // substring of the message
	Events  int    // number of events with tokens a, b and c, not including the events of last
	Last    bool   // last was sent
	Text    string
}

func TestConformance(t *testing.T) {
	for _, kind := range backend.Kinds {
		d, ok := dialects[kind.Name]
		if kind.Pools {
			continue // see TestDocuments
		}
		if !ok {
			t.Errorf("%s has no dialect: add one, and it goes through all trials", kind.Name)
			continue
		}
		abc := d.token("a", 1) + d.token("b", 2) + d.token("c", 3) + d.last("abc")
		unicode := d.token("é", 1) + d.token("😀", 2) + d.token("\"\\\n", 3) + d.last("é😀\"\\\n")
		for _, tc := range []struct {
			name  string
			serve http.HandlerFunc
			want  outcome
		}{
			{"whole", pieces(abc), outcome{Events: 3, Last: true, Text: "abc"}},
			{"event by event", pieces(d.token("a", 1), d.token("b", 2), d.token("c", 3), d.last("abc")), outcome{Events: 3, Last: true, Text: "abc"}},
			{"byte by byte", pieces(bytewise(unicode)...), outcome{Events: 3, Last: true, Text: "é😀\"\\\n"}},
			{"comments and CRLF", pieces(commented(&d, abc)), outcome{Events: 3, Last: true, Text: "abc"}},
			{"blanks before newlines", pieces(strings.ReplaceAll(abc, "}\n", "} \n")), outcome{Events: 3, Last: true, Text: "abc"}},
			{"no blank line at the end", pieces(strings.TrimSuffix(abc, "\n")), outcome{Events: 3, Last: true, Text: "abc"}},
			{"cut inside a token", pieces(d.token("a", 1), d.token("b", 2)[:20]), outcome{Cause: tacho.Truncated, Status: 200, Message: "after 1 token", Events: 1, Text: "a"}},
			{"no end mark", pieces(d.token("a", 1), d.token("b", 2)), noEndMark(&d)},
			{"nothing at all", pieces(), nothing(&d)},
			{"empty", pieces(d.empty), outcome{Cause: tacho.Empty, Status: 200, Message: "no token"}},
			{"failure first", pieces(d.failure + d.done), outcome{Cause: tacho.InBand, Status: 200, Message: "out of memory"}},
			{"failure after tokens", pieces(d.token("a", 1), d.failure, d.done), outcome{Cause: tacho.InBand, Status: 200, Message: "out of memory", Events: 1, Text: "a"}},
			{"failure then silence", pieces(d.token("a", 1) + d.failure), outcome{Cause: tacho.InBand, Status: 200, Message: "out of memory", Events: 1, Text: "a"}},

			{"malformed", pieces(d.token("a", 1) + d.event("{nonsense") + d.last("a")), outcome{Cause: tacho.Malformed, Status: 200, Message: "{nonsense", Events: 1, Last: true, Text: "a"}},
			{"no events", typed("text/event-stream", "hello"), outcome{Cause: tacho.Malformed, Status: 200, Message: "hello"}},
			{"not streamed", typed("application/json; charset=utf-8", d.whole), outcome{Cause: tacho.Malformed, Status: 200, Message: "did not stream"}},
			{"failure not streamed", typed("application/json", `{"error":{"message":"out of memory"}}`), outcome{Cause: tacho.InBand, Status: 200, Message: "out of memory"}},
			{"login page", typed("text/html", "<html><title>Log in</title></html>"), outcome{Cause: tacho.Malformed, Status: 200, Message: "did not stream"}},
			{"mislabelled stream", typed("text/plain", abc), outcome{Events: 3, Last: true, Text: "abc"}},
			{"busy", status(429, "application/json", `{"error":{"message":"slow \"down\"","code":429}}`), outcome{Cause: tacho.Status, Status: 429, Message: `slow "down"`}},
			{"bad gateway", status(502, "text/html", "<html>\n<head><title>502 Bad\nGateway</title></head><body>nginx</body></html>"), outcome{Cause: tacho.Status, Status: 502, Message: "502 Bad Gateway"}},
			{"page without a title", status(503, "text/html", "<html><head><style>a{}</style></head><body><h1>Try</h1> later</body></html>"), outcome{Cause: tacho.Status, Status: 503, Message: "Try later"}},
			{"silent status", status(500, "", ""), outcome{Cause: tacho.Status, Status: 500, Message: "Internal Server Error"}},
			{"framework error", status(422, "application/json", `{"detail":[{"msg":"too long"}]}`), outcome{Cause: tacho.Status, Status: 422, Message: "too long"}},
			{"key repeated", status(401, "application/json", `{"error":{"message":"Incorrect API key: sk-verysecret"}}`), outcome{Cause: tacho.Status, Status: 401, Message: "Incorrect API key: [redacted]"}},
			{"reset", reset(d.token("a", 1)), outcome{Cause: tacho.Reset, Status: 200, Events: 1, Text: "a"}},
			{"reset behind the end", reset(abc), brokenAfterEnd(&d)},
		} {
			t.Run(kind.Name+"/"+tc.name, func(t *testing.T) {
				t.Parallel()
				rec := exchange(t, kind, tc.serve, textRequest("hi"))
				checkOutcome(t, d, tc.want, rec)
			})
		}
		if !d.lines {
			t.Run(kind.Name+"/named failure", func(t *testing.T) {
				t.Parallel()
				rec := exchange(t, kind, pieces(d.token("a", 1)+"event: error\ndata: all lost\n\n"), textRequest("hi"))
				checkOutcome(t, d, outcome{Cause: tacho.InBand, Status: 200, Message: "all lost", Events: 1, Text: "a"}, rec)
			})
		}
		t.Run(kind.Name+"/refused before the body is read", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				inBubble(t, kind, refuse(t), backend.Options{}, func(b tacho.Backend) {
					rec := send(t.Context(), t, b, fitting(kind, textRequest(strings.Repeat("x", 1<<20)))) // larger than the network buffers
					checkOutcome(t, d, outcome{Cause: tacho.Status, Status: 429, Message: "busy"}, rec)
				})
			})
		})
	}
}

// A refusal before the body is read is also recorded on a socket, where the client does not use net/http.
func TestRefusedBeforeTheBodyIsRead(t *testing.T) {
	rec := exchange(t, find(t, "vllm"), refuse(t), textRequest(strings.Repeat("x", 16<<20))) // larger than the socket buffers
	checkOutcome(t, dialects["vllm"], outcome{Cause: tacho.Status, Status: 429, Message: "busy"}, rec)
}

// commented returns a stream with comments and CRLF, if the framing supports them.
func commented(d *dialect, stream string) string {
	if d.lines {
		return "\r\n" + strings.ReplaceAll(stream, "\n", "\r\n\r\n")
	}
	return ": ping\r\n\r\n" + strings.ReplaceAll(stream, "\n", "\r\n: ping\r\n")
}

// noEndMark is the outcome of two tokens followed by the end of the connection.
func noEndMark(d *dialect) outcome {
	if d.unmarked {
		return outcome{Events: 2, Text: "ab"}
	}
	return outcome{Cause: tacho.Truncated, Status: 200, Message: "end mark", Events: 2, Text: "ab"}
}

func nothing(d *dialect) outcome {
	if d.closes {
		return outcome{Cause: tacho.Empty, Status: 200, Message: "no token"}
	}
	return outcome{Cause: tacho.Truncated, Status: 200, Message: "after 0 token"}
}

// brokenAfterEnd is the outcome of a complete answer with a broken connection. Only an end mark shows completeness.
func brokenAfterEnd(d *dialect) outcome {
	if d.unmarked {
		return outcome{Cause: tacho.Reset, Status: 200, Events: 3, Text: "abc"}
	}
	return outcome{Events: 3, Last: true, Text: "abc"}
}

func checkOutcome(t *testing.T, d dialect, want outcome, rec *tacho.Record) {
	t.Helper()
	got := outcome{Events: len(rec.Events), Last: want.Last, Text: rec.Text}
	if want.Last && d.lastEvents != nil {
		got.Events -= d.lastEvents(want.Events)
	}
	if f := rec.Failure; f != nil {
		got.Cause, got.Status = f.Cause, f.Status
		if strings.Contains(f.Message, want.Message) {
			got.Message = want.Message
		} else {
			got.Message = f.Message
		}
		if strings.Contains(f.Message, "verysecret") {
			t.Errorf("the message repeats the API key: %s", f.Message)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if want.Last {
		if rec.Finish != d.finish {
			t.Errorf("finish reason %q, want %q", rec.Finish, d.finish)
		}
		if d.counted {
			tells := strings.Contains(d.last("a"), `"cache`) || strings.Contains(d.token("a", 1), `"cache_read`)
			if diff := cmp.Diff(&tacho.Usage{Prompt: 7, Completion: 3, TellsCached: tells}, rec.Usage); diff != "" {
				t.Errorf("usage (-want +got):\n%s", diff)
			}
			if rec.Output != 3 || rec.OutputFrom != tacho.FromUsage {
				t.Errorf("output %d from %q, want 3 from usage", rec.Output, rec.OutputFrom)
			}
		}
	}
	checkTimes(t, rec)
}

// checkTimes checks the order of the times in a timeline.
func checkTimes(t *testing.T, rec *tacho.Record) {
	t.Helper()
	moments := []time.Duration{rec.Conn, rec.Sent, rec.Head}
	for _, e := range rec.Events {
		moments = append(moments, e.At)
	}
	moments = append(moments, rec.End)
	before := time.Duration(0)
	for i, m := range moments {
		if m == tacho.Never && rec.Failure != nil {
			continue
		}
		// The kernel's clock and the process's clock differ by some microseconds.
		if m < before-time.Millisecond {
			t.Errorf("moment %d of %v is before the one before it", i, moments)
		}
		before = m
	}
	if rec.Conns != 1 {
		t.Errorf("%d connections tried, want 1", rec.Conns)
	}
	if rec.Clock != tacho.KernelClock && rec.Clock != tacho.ReadClock {
		t.Errorf("clock %v", rec.Clock)
	}
	if rec.ClockStep != 0 {
		t.Errorf("the clock stepped by %v", rec.ClockStep)
	}
}

func textRequest(text string) *tacho.Request {
	return &tacho.Request{ID: "r1", Input: tacho.Input{Text: text}, MaxTokens: 3}
}

// fitting returns a text request, or an audio request if the Kind accepts only audio.
func fitting(kind backend.Kind, r *tacho.Request) *tacho.Request {
	if kind.Takes.Text || r.Input.Text == "" {
		return r
	}
	sound := *r
	sound.Input = tacho.Input{Audio: &tacho.Audio{Name: "a.wav", Data: []byte(r.Input.Text)}}
	return &sound
}

// exchange sends one request to a server on the loopback interface.
func exchange(t *testing.T, kind backend.Kind, serve http.HandlerFunc, r *tacho.Request) *tacho.Record {
	t.Helper()
	srv := httptest.NewServer(serve)
	t.Cleanup(srv.Close)
	client := must.Get(transport.New(transport.Options{BaseURL: srv.URL}))(t)
	t.Cleanup(client.Close)
	b := must.Get(kind.New(backend.Options{
		Client: client, Model: "m", KeepText: true,
		Header: http.Header{"Authorization": {"Bearer sk-verysecret"}},
	}))(t)
	return send(t.Context(), t, b, fitting(kind, r))
}

func send(ctx context.Context, t *testing.T, b tacho.Backend, r *tacho.Request) *tacho.Record {
	t.Helper()
	call := must.Get(b.Prepare(r))(t)
	rec := &tacho.Record{Timeline: tacho.NewTimeline(0)}
	call.Do(ctx, time.Now(), rec, tacho.CallOptions{})
	if rec.Due != 0 || rec.Slot != tacho.Never || rec.Start != tacho.Never {
		t.Error("the backend touched what belongs to the engine")
	}
	return rec
}

// pieces returns a server that streams the pieces and flushes after each.
func pieces(ps ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		_ = http.NewResponseController(w).Flush()
		for _, p := range ps {
			_, _ = io.WriteString(w, p)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func bytewise(s string) []string {
	ps := make([]string, len(s))
	for i := range len(s) {
		ps[i] = s[i : i+1]
	}
	return ps
}

// typed returns a server that sends a body with the given content type.
func typed(contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	}
}

// status returns a server that refuses requests without reading the body.
func status(code int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(code)
		_, _ = io.WriteString(w, body)
	}
}

// refuse returns a server that refuses requests without reading the body and leaves the connection open. net/http's
// server would close the connection after half a second; if the client had not read the refusal by then, it would
// see a reset.
func refuse(t *testing.T) http.HandlerFunc {
	t.Helper()
	const body = `{"error":{"message":"busy"}}`
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 429 Too Many Requests\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
		<-t.Context().Done()
	}
}

// reset returns a server that streams one piece and resets the connection after the client had time to read the
// piece.
func reset(piece string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_, _ = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n", len(piece), piece)
		// Closing the connection with unread data would reset it at once and discard the bytes sent. Half a chunk
		// breaks the stream without discarding bytes.
		_, _ = io.WriteString(conn, "100\r\nda")
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, conn)
		_ = conn.Close()
	}
}
