package memnet_test

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
)

// pair returns both ends of a connection.
func pair(t *testing.T, n *memnet.Network) (client, server net.Conn) {
	t.Helper()
	l := must.Get(n.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	client = must.Get(n.Dial(t.Context(), "tcp", l.Addr().String()))(t)
	server = must.Get(l.Accept())(t)
	t.Cleanup(func() { _, _, _ = client.Close(), server.Close(), l.Close() })
	return client, server
}

func TestBytesArriveInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, &memnet.Network{})
		long := strings.Repeat("0123456789", 100_000) // larger than the window
		go func() {
			_, _ = io.WriteString(client, long)
			_ = client.Close()
		}()
		got, err := io.ReadAll(server)
		if string(got) != long || err != nil {
			t.Errorf("%d bytes, %v; want %d", len(got), err, len(long))
		}
	})
}

// A write waits if the reader does not read, and the deadline ends the wait.
func TestWriteWaitsForReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := pair(t, &memnet.Network{})
		began := time.Now()
		_ = client.SetWriteDeadline(began.Add(time.Second))
		n, err := client.Write(make([]byte, 1<<20))
		if !errors.Is(err, os.ErrDeadlineExceeded) || n == 0 || n == 1<<20 || time.Since(began) != time.Second {
			t.Errorf("wrote %d bytes in %v: %v", n, time.Since(began), err)
		}
	})
}

func TestDeadlineMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := pair(t, &memnet.Network{})
		began := time.Now()
		_ = client.SetReadDeadline(began.Add(time.Second))
		go func() {
			time.Sleep(500 * time.Millisecond)
			_ = client.SetReadDeadline(began.Add(3 * time.Second))
		}()
		if _, err := client.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		_ = client.SetReadDeadline(time.Time{})
		go func() { _, _ = io.WriteString(server, "x") }()
		if _, err := client.Read(make([]byte, 1)); err != nil {
			t.Errorf("without a deadline: %v", err)
		}
	})
}

func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		end  func(client, server net.Conn)
		data string // read by the client before the error
		want error
	}{
		"close": {func(_, server net.Conn) { _, _ = io.WriteString(server, "bye"); _ = server.Close() }, "bye", io.EOF},
		"linger": {func(_, server net.Conn) {
			_ = server.(interface{ SetLinger(int) error }).SetLinger(0)
			_ = server.Close()
		}, "", syscall.ECONNRESET},
		"unread bytes": {func(client, server net.Conn) { _, _ = io.WriteString(client, "hello"); _ = server.Close() }, "", syscall.ECONNRESET},
		"own end":      {func(client, _ net.Conn) { _ = client.Close() }, "", net.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := pair(t, &memnet.Network{})
				c.end(client, server)
				var got []byte
				b := make([]byte, 10)
				for {
					n, err := client.Read(b)
					got = append(got, b[:n]...)
					if err != nil {
						if string(got) != c.data || !errors.Is(err, c.want) {
							t.Errorf("%q, then %v; want %q, then %v", got, err, c.data, c.want)
						}
						return
					}
				}
			})
		})
	}
}

// If the peer reacts to the close of a connection, the closed end does not read the reaction.
func TestCloseEndsReadsFirst(t *testing.T) {
	for range 1000 {
		synctest.Test(t, func(t *testing.T) {
			client, server := pair(t, &memnet.Network{})
			go func() {
				_, _ = io.Copy(io.Discard, server) // until the client closes
				_, _ = io.WriteString(server, "late")
			}()
			go func() { _ = client.Close() }()
			if n, err := client.Read(make([]byte, 10)); n > 0 || !errors.Is(err, net.ErrClosed) {
				t.Fatalf("%d bytes, %v", n, err)
			}
		})
	}
}

func TestRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memnet.Network{}
		if _, err := n.Dial(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("no listener: %v", err)
		}
		l := must.Get(n.Listen(t.Context(), "tcp", "127.0.0.1:8000"))(t)
		if _, err := n.Listen(t.Context(), "tcp", "127.0.0.1:8000"); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("two listeners: %v", err)
		}
		waiting := must.Get(n.Dial(t.Context(), "tcp", "127.0.0.1:8000"))(t)
		_ = l.Close()
		if _, err := waiting.Read(make([]byte, 1)); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("a connection that was never accepted: %v", err)
		}
		if _, err := n.Dial(t.Context(), "tcp", "127.0.0.1:8000"); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Errorf("closed: %v", err)
		}
	})
}

// Each direction delays bytes by the network's delay, and later bytes are not delayed more.
func TestDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		client, server := pair(t, &memnet.Network{Delay: 10 * time.Millisecond})
		if time.Since(began) != 20*time.Millisecond {
			t.Errorf("a dial took %v, want a round trip", time.Since(began))
		}
		began = time.Now()
		go func() {
			for range 3 {
				_, _ = io.WriteString(server, "x")
				time.Sleep(time.Millisecond)
			}
		}()
		var at []time.Duration
		for range 3 {
			must.Get(client.Read(make([]byte, 1)))(t)
			at = append(at, time.Since(began))
		}
		if want := []time.Duration{10 * time.Millisecond, 11 * time.Millisecond, 12 * time.Millisecond}; !slices.Equal(at, want) {
			t.Errorf("bytes arrived after %v, want %v", at, want)
		}
	})
}

func TestHTTP(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &memnet.Network{}
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(w, r.Body)
		}))
		srv.Listener = must.Get(n.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
		srv.Start()
		defer srv.Close()
		client := &http.Client{Transport: &http.Transport{DialContext: n.Dial}}
		defer client.CloseIdleConnections()
		for range 3 {
			res, err := client.Post(srv.URL, "text/plain", strings.NewReader("hello"))
			must.Do(t, err)
			b, _ := io.ReadAll(res.Body)
			_ = res.Body.Close()
			if string(b) != "hello" {
				t.Errorf("got %q", b)
			}
		}
	})
}
