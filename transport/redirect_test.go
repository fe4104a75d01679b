package transport

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/must"
)

// listenOn serves h on a given loopback address.
func listenOn(t *testing.T, addr string, secure bool, h http.Handler) *httptest.Server {
	t.Helper()
	ln, err := net.Listen("tcp", addr+":0")
	if err != nil {
		t.Skip(err) // some systems lack parts of 127/8
	}
	s := httptest.NewUnstartedServer(h)
	s.Listener.Close()
	s.Listener = ln
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// A redirect cannot send our keys to another host or port, or from https to http.
func TestRedirectsKeepKeysAtHome(t *testing.T) {
	secrets := http.Header{"Authorization": {"Bearer sk-1"}, "X-Api-Key": {"sk-2"}, "X-Goog-Api-Key": {"sk-3"}, "X-Team": {"sk-4"}, "Cookie": {"sk-5"}}
	for _, tt := range []struct {
		name         string
		home, away   string
		secure, user bool
	}{
		{name: "another host", home: "127.0.0.1", away: "127.0.0.2"},
		{name: "another port", home: "127.0.0.1", away: "127.0.0.1"},
		{name: "https to http", home: "127.0.0.1", away: "127.0.0.1", secure: true},
		{name: "name and password in the URL", home: "127.0.0.1", away: "127.0.0.2", user: true},
	} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			t.Run(tt.name, func(t *testing.T) {
				asked := 0
				away := listenOn(t, tt.away, false, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					asked++
					t.Errorf("the other server was asked, with %v", r.Header)
				}))
				home := listenOn(t, tt.home, tt.secure, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					http.Redirect(w, r, away.URL+r.URL.Path, code)
				}))
				base := home.URL
				if tt.user {
					base = strings.Replace(base, "://", "://me:sk-6@", 1)
				}
				config := must.Get(TLSConfig(TLSOptions{Insecure: true}))(t)
				c := newClient(t, Options{BaseURL: base, TLS: config})
				for _, method := range []string{"GET", "POST"} {
					req := must.Get(c.NewRequest(method, "/v1/models", secrets.Clone(), []byte("{}")))(t)
					resp, err := c.HTTP().Do(req)
					if err == nil {
						resp.Body.Close()
					}
					if err == nil || !strings.Contains(err.Error(), "redirects to "+away.URL) || strings.Contains(err.Error(), "sk-") {
						t.Errorf("%s: %v, want an error that names %s and no key", method, err, away.URL)
					}
				}
				var x Exchange
				if err := c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, nil, nil); err != nil || x.Status != code {
					t.Errorf("measured: status %d, %v, want %d", x.Status, err, code)
				}
			})
		}
	}
}

// Redirects within the server are followed with the keys, up to a limit.
func TestRedirectsAtHome(t *testing.T) {
	s := listenOn(t, "127.0.0.1", false, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/a":
			http.Redirect(w, r, "/b", http.StatusTemporaryRedirect)
		case "/circle":
			http.Redirect(w, r, "/circle", http.StatusFound)
		default:
			io.WriteString(w, r.Header.Get("X-Api-Key"))
		}
	}))
	c := newClient(t, Options{BaseURL: s.URL})
	req := must.Get(c.NewRequest("GET", "/a", http.Header{"X-Api-Key": {"sk"}}, nil))(t)
	resp, err := c.HTTP().Do(req)
	must.Do(t, err)
	defer resp.Body.Close()
	if body, _ := io.ReadAll(resp.Body); string(body) != "sk" {
		t.Errorf("body %q", body)
	}
	resp, err = c.HTTP().Do(newRequest(t, c, "GET", "/circle", ""))
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil || !strings.Contains(err.Error(), "circle") {
		t.Errorf("%v, %v, want an error", resp, err)
	}
}

// A fullAfter is a Consumer that returns an error after some bytes.
type fullAfter struct{ left int }

func (f *fullAfter) Consume(data []byte, _ []Read) error {
	if f.left -= len(data); f.left < 0 {
		return limit.Bytes("an event", limit.Event)
	}
	return nil
}

// An error of the Consumer ends the exchange, and the exchange returns that error.
func TestConsumerEndsExchange(t *testing.T) {
	stopped := make(chan struct{})
	addr := rawServer(t, func(nc net.Conn, r *bufio.Reader) {
		readHead(r)
		io.WriteString(nc, "HTTP/1.1 200 OK\r\n\r\n")
		junk := []byte(strings.Repeat("x", 1<<16))
		for {
			if _, err := nc.Write(junk); err != nil {
				close(stopped)
				return
			}
		}
	})
	c := newClient(t, Options{BaseURL: "http://" + addr})
	var x Exchange
	err := c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, &fullAfter{1 << 20}, nil)
	if f := Classify(err, &x); f == nil || f.Cause != tacho.TooLarge {
		t.Errorf("%v, want %s", f, tacho.TooLarge)
	}
	<-stopped
}

// If a server accepts but does not answer the handshake, the client waits for the dial
// timeout, and not at all once the context is cancelled.
func TestSilentHandshake(t *testing.T) {
	for _, limited := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ln := inMemory(t, func(_ net.Conn, r *bufio.Reader) { _, _ = io.Copy(io.Discard, r) })
			o := Options{BaseURL: "https://mem", DialTimeout: time.Hour, Dial: ln.Dial}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if limited {
				o.DialTimeout = time.Minute
			} else {
				time.AfterFunc(time.Minute, cancel)
			}
			c := newClient(t, o)
			began := time.Now()
			err := c.Warm(ctx, 1, 0)
			if err == nil || limited != errors.Is(err, context.DeadlineExceeded) || time.Since(began) != time.Minute {
				t.Errorf("bounded by the dial %v: %v after %v, want an error after a minute", limited, err, time.Since(began))
			}
		})
	}
}
