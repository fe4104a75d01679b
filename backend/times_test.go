package backend_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport"
)

// inBubble runs a server in memory with a fake clock.
func inBubble(t *testing.T, kind backend.Kind, serve http.HandlerFunc, o backend.Options, do func(tacho.Backend)) {
	t.Helper()
	network := memnet.Listen()
	srv := &http.Server{Handler: serve}
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(network) }()
	client := must.Get(transport.New(transport.Options{BaseURL: "http://127.0.0.1:8000", Dial: network.Dial}))(t)
	o.Client, o.Model = client, "m"
	b := must.Get(kind.New(o))(t)
	do(b)
	client.Close()
	_ = srv.Close()
	<-served
}

// The time of an event is the arrival time of the byte that completes its data line, not of its first byte and not
// of its blank line.
func TestEventTimes(t *testing.T) {
	for _, kind := range backend.Kinds {
		d := dialects[kind.Name]
		if kind.Pools || d.lines {
			continue // lines end with a newline: see TestLineTimes
		}
		t.Run(kind.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, b, c := d.token("a", 1), d.token("b", 2), d.token("c", 3)
				serve := func(w http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body)
					w.Header().Set("Content-Type", "text/event-stream")
					for _, p := range []string{
						"",
						a[:10],            // 2 s
						a[10:],            // 3 s: the first token
						b[:len(b)-1],      // 4 s: the second token
						b[len(b)-1:],      // 5 s: its blank line
						c + d.last("abc"), // 6 s: the third
					} {
						time.Sleep(time.Second)
						_, _ = io.WriteString(w, p)
						_ = http.NewResponseController(w).Flush()
					}
					time.Sleep(time.Second)
				}
				var live atomic.Int64
				inBubble(t, kind, serve, backend.Options{OnToken: func(n int, _ bool, _ time.Duration) { live.Add(int64(n)) }}, func(b tacho.Backend) {
					epoch := time.Now()
					time.Sleep(time.Minute)
					call := must.Get(b.Prepare(fitting(kind, textRequest("hi"))))(t)
					time.Sleep(time.Minute)
					rec := &tacho.Record{Timeline: tacho.NewTimeline(0)}
					call.Do(t.Context(), epoch, rec, tacho.CallOptions{})
					if rec.Failure != nil {
						t.Fatal(rec.Failure)
					}
					start := 2 * time.Minute
					type times struct{ Conn, Sent, Wrote, Head, First, Second, Third, End time.Duration }
					want := times{start, start, start, start + time.Second, start + 3*time.Second, start + 4*time.Second, start + 6*time.Second, start + 7*time.Second}
					e := rec.Events
					got := times{rec.Conn, rec.Sent, rec.Wrote, rec.Head, e[0].At, e[1].At, e[2].At, rec.End}
					if diff := cmp.Diff(want, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
					if rec.Clock != tacho.ReadClock {
						t.Errorf("clock %v in memory", rec.Clock)
					}
					if int(live.Load()) != len(e) {
						t.Errorf("%d token events were reported live, want %d", live.Load(), len(e))
					}
					if rec.Text != "" {
						t.Errorf("kept the text %q unasked", rec.Text)
					}
				})
			})
		})
	}
}

// If a server hangs at any point, the request ends at its deadline.
func TestHang(t *testing.T) {
	for _, kind := range backend.Kinds {
		if kind.Pools {
			continue
		}
		token := dialects[kind.Name].token("a", 1)
		for name, piece := range map[string]string{"at once": "", "inside an event": token[:12], "after a token": token} {
			t.Run(kind.Name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					serve := func(w http.ResponseWriter, r *http.Request) {
						_, _ = io.Copy(io.Discard, r.Body)
						if piece != "" {
							_, _ = io.WriteString(w, piece)
							_ = http.NewResponseController(w).Flush()
						}
						<-r.Context().Done()
					}
					inBubble(t, kind, serve, backend.Options{}, func(b tacho.Backend) {
						ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
						defer cancel()
						rec := send(ctx, t, b, fitting(kind, textRequest("hi")))
						if rec.Failure == nil || rec.Failure.Cause != tacho.Timeout {
							t.Errorf("failure %v, want a timeout", rec.Failure)
						}
						if rec.End != time.Hour {
							t.Errorf("over after %v, want 1h", rec.End)
						}
						if tokens := len(rec.Events); (tokens == 1) != (piece == token) {
							t.Errorf("%d tokens", tokens)
						}
					})
				})
			})
		}
	}
}

// A compressed response cannot be decoded in real time. The error names the header, not the bytes.
func TestAnswerWithContentEncoding(t *testing.T) {
	kind := backend.Kinds[0]
	for status, coding := range map[int]string{http.StatusOK: "gzip", http.StatusBadGateway: "br", http.StatusAccepted: "identity"} {
		synctest.Test(t, func(t *testing.T) {
			serve := func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				w.Header().Set("Content-Encoding", coding)
				w.WriteHeader(status)
				_, _ = io.WriteString(w, "\x1f\x8bsome bytes")
			}
			inBubble(t, kind, serve, backend.Options{}, func(b tacho.Backend) {
				call := must.Get(b.Prepare(&tacho.Request{MaxTokens: 3, Input: tacho.Input{Text: "hi"}}))(t)
				rec := tacho.NewRecord(0, &tacho.Request{}, 0)
				call.Do(t.Context(), time.Now(), rec, tacho.CallOptions{})
				if rec.Failure == nil {
					t.Fatal("no failure")
				}
				got := rec.Failure.Message
				named := strings.Contains(got, "Content-Encoding \""+coding) && strings.Contains(got, "disable compression") && !strings.Contains(got, "some bytes")
				if named != (coding != "identity") {
					t.Errorf("%d, %s: %s", status, coding, got)
				}
			})
		})
	}
}
