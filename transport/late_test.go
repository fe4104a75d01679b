package transport

import (
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
)

// A read that waited for its bytes is not late, however long it waited. Bytes already
// there when the read begins may have arrived long before.
func TestReadIsLateIfItDidNotWait(t *testing.T) {
	const gap = 20 * time.Millisecond
	for name, http2 := range map[string]bool{"HTTP/1": false, "HTTP/2": true} {
		for busy, want := range map[time.Duration]bool{0: false, gap / 2: false, 2 * gap: true} {
			synctest.Test(t, func(t *testing.T) {
				ln := memnet.Listen()
				s := &http.Server{Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					for _, text := range []string{"one", "two"} {
						io.WriteString(w, text)
						w.(http.Flusher).Flush()
						time.Sleep(gap)
					}
				})}
				s.Protocols.SetHTTP1(!http2)
				s.Protocols.SetUnencryptedHTTP2(http2)
				go s.Serve(ln)
				defer s.Close()
				c := newClient(t, Options{BaseURL: "http://mem", Dial: ln.Dial, HTTP2: http2})
				var x Exchange
				sink := new(collector)
				between := func(p []byte, _ int64) {
					if string(p) == "one" {
						time.Sleep(busy)
					}
				}
				must.Do(t, c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, sink, between))
				if r := sink.reads; len(r) != 2 || r[1].Late != want || want && time.Duration(r[1].Since) < gap {
					t.Errorf("%s, busy for %v: %+v, want the second to be late: %v", name, busy, r, want)
				}
			})
		}
	}
}

// The limit for late bytes follows the polling interval of the receive thread.
func TestLate(t *testing.T) {
	for _, tc := range []struct {
		since, gap time.Duration
		want       bool
	}{
		{lateLeast, 0, false},
		{lateLeast + 1, 16 * time.Millisecond, true},
		{4 * time.Millisecond, 40 * time.Millisecond, false},
		{lateMost + 1, 300 * time.Millisecond, true},
		{10 * time.Millisecond, time.Second, false},
	} {
		if got := late(tc.since, tc.gap); got != tc.want {
			t.Errorf("%v in a gap of %v: late %v", tc.since, tc.gap, got)
		}
	}
}
