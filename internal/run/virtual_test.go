package run_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
)

// network connects the tests with their servers. All tests run in
// testing/synctest bubbles, where time advances only while all goroutines are
// blocked.
var network memnet.Network

// unstarted returns a server with an address on the in-memory network.
func unstarted(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	return &httptest.Server{Listener: listener(t, "127.0.0.1"), Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}}
}

// listener listens at an address of the in-memory network.
func listener(t *testing.T, host string) net.Listener {
	t.Helper()
	return must.Get(network.Listen(t.Context(), "tcp", host+":0"))(t)
}

// listen starts a server on the in-memory network.
func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := unstarted(t, h)
	srv.Start()
	return srv
}
