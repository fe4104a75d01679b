//go:build real

package cli_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// patience bounds how long a test waits for something that never comes. No result
// depends on it.
const patience = 5 * time.Minute

// until polls a condition until it holds. If it never does, state says what there
// is instead.
func until(t testing.TB, state func() string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v:\n%s", patience, state())
		}
	}
}

// A heldServer speaks OpenAI's protocol. It answers completions only when it is
// told to, so that a test knows that a run has requests in flight.
type heldServer struct {
	*httptest.Server
	asked  chan struct{} // gets one for each completion that was asked for
	answer func()        // has all completions answered, those to come too
}

func holdAnswers(t testing.TB) *heldServer {
	t.Helper()
	told := make(chan struct{})
	s := &heldServer{asked: make(chan struct{}, 1000), answer: sync.OnceFunc(func() { close(told) })}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			_, _ = fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		case "/v1/completions":
			s.asked <- struct{}{}
			select {
			case <-told:
			case <-r.Context().Done():
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = fmt.Fprint(w, "data: {\"choices\":[{\"text\":\" a\"}]}\n\ndata: {\"choices\":[{\"text\":\" b\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(func() { s.answer(); s.CloseClientConnections(); s.Close() })
	return s
}
