package backend_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/route"
)

// several starts n servers with the same handler and returns a backend for all of them.
func several(t *testing.T, n int, how string, serve http.HandlerFunc) (tacho.Backend, []string) {
	t.Helper()
	var backends []tacho.Backend
	var names []string
	for i := range n {
		srv := httptest.NewServer(serve)
		t.Cleanup(srv.Close)
		backends = append(backends, newBackend(t, "vllm", srv.URL, backend.Options{Model: "m"}))
		names = append(names, fmt.Sprintf("s%d", i))
	}
	policy := must.Get(route.Find(how))(t)
	b := must.Get(backend.Spread(backends, names, policy, 1))(t)
	return b, names
}

func TestSpread(t *testing.T) {
	answer := completions.token("a", 1) + completions.last("a")
	for how, want := range map[string]map[string]int{
		"round-robin":  {"s0": 10, "s1": 10, "s2": 10},
		"least-loaded": {"s0": 10, "s1": 10, "s2": 10}, // with concurrency 1, servers take turns
		"prefix":       {"s0": 30},                     // all prompts have the same prefix
		"sticky":       {"s0": 15, "s1": 15},
	} {
		b, _ := several(t, 3, how, pieces(answer))
		got := map[string]int{}
		for i := range 30 {
			r := textRequest(strings.Repeat("hi ", 100))
			r.Session, r.Turn = uint64(i%2), i/2
			rec := send(t.Context(), t, b, r)
			if rec.Failure != nil {
				t.Fatal(rec.Failure)
			}
			got[rec.Endpoint]++
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", how, diff)
		}
	}
	b, names := several(t, 3, "random", pieces(answer))
	seen := map[string]bool{}
	for i := range 60 {
		r := textRequest("hi")
		r.Session = uint64(i)
		seen[send(t.Context(), t, b, r).Endpoint] = true
	}
	if len(seen) != len(names) {
		t.Errorf("by chance 60 requests went to %v", seen)
	}
}

// While one server is stuck, the others get the requests.
func TestLeastInFlight(t *testing.T) {
	var taken atomic.Bool
	stuck, release := make(chan struct{}), make(chan struct{})
	b, _ := several(t, 2, "least-loaded", func(w http.ResponseWriter, r *http.Request) {
		if taken.CompareAndSwap(false, true) {
			close(stuck)
			<-release
		}
		pieces(completions.token("a", 1)+completions.last("a"))(w, r)
	})
	var slow *tacho.Record
	var wg sync.WaitGroup
	wg.Go(func() { slow = send(t.Context(), t, b, textRequest("hi")) })
	<-stuck
	others := map[string]int{}
	for range 5 {
		others[send(t.Context(), t, b, textRequest("hi")).Endpoint]++
	}
	close(release)
	wg.Wait()
	if len(others) != 1 || others[slow.Endpoint] != 0 {
		t.Errorf("%s was stuck, and the others went to %v", slow.Endpoint, others)
	}
}

// The record of a retried request stores the number of attempts, and its wait starts with the first attempt.
func TestRetry(t *testing.T) {
	for name, tc := range map[string]struct {
		first    http.HandlerFunc // handles the first two attempts
		retries  int
		attempts int
		cause    tacho.Cause
	}{
		"busy twice":             {status(503, "", "later"), 3, 3, ""},
		"busy, no retries":       {status(503, "", "later"), 0, 0, tacho.Status},
		"busy, too few":          {status(429, "", "later"), 1, 2, tacho.Status},
		"never":                  {status(400, "", "no"), 3, 0, tacho.Status},
		"broken before a token":  {pieces(completions.failure), 3, 3, ""},
		"broken behind a token":  {pieces(completions.token("a", 1) + completions.failure), 3, 0, tacho.InBand},
		"cut off before a token": {pieces(""), 3, 3, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			serve := func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(body), `"hi"`) {
					t.Errorf("%s: attempt %d has the body %q", name, n+1, body)
				}
				if n++; n <= 2 {
					tc.first(w, r)
					return
				}
				pieces(completions.token("a", 1)+completions.last("a"))(w, r)
			}
			inBubble(t, find(t, "vllm"), serve, backend.Options{}, func(b tacho.Backend) {
				epoch := time.Now()
				call := must.Get(backend.Retry(b, tc.retries).Prepare(textRequest("hi")))(t)
				time.Sleep(time.Second)
				rec := &tacho.Record{Timeline: tacho.NewTimeline(0), ID: "x"}
				call.Do(t.Context(), epoch, rec, tacho.CallOptions{})
				if causeOf(rec) != tc.cause || rec.Attempts != tc.attempts || rec.ID != "x" {
					t.Errorf("%s: %v after %d attempts, want %q after %d", name, rec.Failure, rec.Attempts, tc.cause, tc.attempts)
				}
				if rec.Sent != time.Second {
					t.Errorf("%s: sent at %v, and first at 1s", name, rec.Sent)
				}
				if tc.attempts == 3 && rec.First() != time.Second+300*time.Millisecond {
					t.Errorf("%s: first token at %v", name, rec.First())
				}
			})
		})
	}
}

// A retry waits for the time in Retry-After, if the request's deadline allows it.
func TestRetryAfter(t *testing.T) {
	for _, tc := range []struct {
		header   string
		timeout  time.Duration
		first    time.Duration // first token; 0 if the failure is final
		attempts int
	}{
		{"7", time.Minute, 7 * time.Second, 2},
		{"0.5", time.Minute, 500 * time.Millisecond, 2},
		{"Sat, 01 Jan 2000 00:00:09 GMT", time.Minute, 9 * time.Second, 2}, // synctest starts in 2000
		{"Fri, 31 Dec 1999 00:00:00 GMT", time.Minute, 100 * time.Millisecond, 2},
		{"soon", time.Minute, 100 * time.Millisecond, 2},
		{"-3", time.Minute, 100 * time.Millisecond, 2},
		{"61", time.Minute, 0, 0},
		{"1e300", time.Minute, 100 * time.Millisecond, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := 0
			serve := func(w http.ResponseWriter, r *http.Request) {
				if n++; n == 1 {
					w.Header().Set("Retry-After", tc.header)
					status(429, "", "later")(w, r)
					return
				}
				pieces(completions.token("a", 1)+completions.last("a"))(w, r)
			}
			inBubble(t, find(t, "vllm"), serve, backend.Options{}, func(b tacho.Backend) {
				epoch := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), tc.timeout)
				defer cancel()
				call := must.Get(backend.Retry(b, 1).Prepare(textRequest("hi")))(t)
				rec := &tacho.Record{Timeline: tacho.NewTimeline(0)}
				call.Do(ctx, epoch, rec, tacho.CallOptions{})
				if rec.Attempts != tc.attempts || max(rec.First(), 0) != tc.first {
					t.Errorf("Retry-After %q: %d attempts, first token at %v (%v); want %d, %v", tc.header, rec.Attempts, rec.First(), rec.Failure, tc.attempts, tc.first)
				}
				if tc.first == 0 && (causeOf(rec) != tacho.Status || time.Since(epoch) > time.Second) {
					t.Errorf("Retry-After %q: %v after %v, want the refusal at once", tc.header, rec.Failure, time.Since(epoch))
				}
			})
		})
	}
}
