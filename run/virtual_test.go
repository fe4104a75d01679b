package run_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"tacho/internal/memnet"
)

// network connects the runs of these tests to their servers. All tests run in
// testing/synctest bubbles, where time passes only while everyone waits.
var network memnet.Network

// unstarted returns a server with an address on the network.
func unstarted(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	return &httptest.Server{Listener: listener(t, "127.0.0.1"), Config: &http.Server{Handler: h, ReadHeaderTimeout: time.Hour}}
}

// listener listens at a host of the network.
func listener(t *testing.T, host string) net.Listener {
	t.Helper()
	l, err := network.Listen(t.Context(), "tcp", host+":0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// listen starts a server on the network.
func listen(t *testing.T, h http.Handler) *httptest.Server {
	t.Helper()
	srv := unstarted(t, h)
	srv.Start()
	return srv
}
