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

// patience is the timeout of a wait in a test. No result depends on it.
const patience = 5 * time.Minute

// until polls a condition until it holds. On timeout, state describes the
// current state.
func until(t testing.TB, state func() string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within %v:\n%s", patience, state())
		}
	}
}

// A heldServer implements OpenAI's protocol and answers completions only on
// request, so that a test knows that requests are in flight.
type heldServer struct {
	*httptest.Server
	asked  chan struct{} // receives one value per requested completion
	answer func()        // answers all current and future completions
}

func holdAnswers(t testing.TB) *heldServer {
	t.Helper()
	answered := make(chan struct{})
	s := &heldServer{asked: make(chan struct{}, 1000), answer: sync.OnceFunc(func() { close(answered) })}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/v1/models":
			_, _ = fmt.Fprint(w, `{"data":[{"id":"m"}]}`)
		case "/v1/completions":
			s.asked <- struct{}{}
			select {
			case <-answered:
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
