package transport

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// echo responds with the request body, in pieces.
var echo = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	for _, piece := range []string{r.Proto, " ", r.URL.RequestURI(), " ", string(body)} {
		io.WriteString(w, piece)
		w.(http.Flusher).Flush()
	}
})

func writePEM(t *testing.T, kind string, der []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), kind+".pem")
	must.Do(t, os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	return name
}

// identity creates a self-signed client certificate and returns its files.
func identity(t *testing.T) (cert *x509.Certificate, certFile, keyFile string) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key))(t)
	keyDER := must.Get(x509.MarshalPKCS8PrivateKey(key))(t)
	cert = must.Get(x509.ParseCertificate(der))(t)
	return cert, writePEM(t, "CERTIFICATE", der), writePEM(t, "PRIVATE KEY", keyDER)
}

// A site is a server and the options to reach it.
type site struct {
	url string
	tls TLSOptions
}

func plainSite(t *testing.T) site {
	s := httptest.NewServer(echo)
	t.Cleanup(s.Close)
	return site{url: s.URL}
}

func tlsSite(t *testing.T, configure func(*httptest.Server)) site {
	s := httptest.NewUnstartedServer(echo)
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.TLS = new(tls.Config)
	if configure != nil {
		configure(s)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return site{url: s.URL, tls: TLSOptions{CAFile: writePEM(t, "CERTIFICATE", s.Certificate().Raw)}}
}

func listenerSite(t *testing.T, network, addr, format string) site {
	ln, err := net.Listen(network, addr)
	if err != nil {
		t.Skip(err)
	}
	s := &http.Server{Handler: echo}
	go s.Serve(ln)
	t.Cleanup(func() { s.Close() })
	return site{url: fmt.Sprintf(format, ln.Addr())}
}

func TestWaysToAServer(t *testing.T) {
	for _, tt := range []struct {
		name  string
		start func(t *testing.T) site
		http2 bool
		proto string
		path  string
		clock tacho.Clock // 0 is the best clock of the system
	}{
		{name: "http", start: plainSite},
		{name: "by name", start: func(t *testing.T) site {
			s := plainSite(t)
			s.url = strings.Replace(s.url, "127.0.0.1", "localhost", 1)
			return s
		}},
		{name: "prefix", start: func(t *testing.T) site {
			s := plainSite(t)
			s.url += "/a%20b/"
			return s
		}, path: "/a%20b/v1/x"},
		{name: "IPv6", start: func(t *testing.T) site { return listenerSite(t, "tcp", "[::1]:0", "http://%s") }},
		{name: "unix", clock: tacho.ReadClock, start: func(t *testing.T) site {
			return listenerSite(t, "unix", filepath.Join(t.TempDir(), "s.sock"), "unix://%s")
		}},
		{name: "unix with prefix", clock: tacho.ReadClock, path: "/pre/fix/v1/x", start: func(t *testing.T) site {
			return listenerSite(t, "unix", filepath.Join(t.TempDir(), "s.sock"), "unix://%s:/pre/fix")
		}},
		{name: "TLS with CA file", start: func(t *testing.T) site { return tlsSite(t, nil) }},
		{name: "TLS insecure", start: func(t *testing.T) site {
			s := tlsSite(t, nil)
			s.tls = TLSOptions{Insecure: true}
			return s
		}},
		{name: "mutual TLS", start: func(t *testing.T) site {
			cert, certFile, keyFile := identity(t)
			s := tlsSite(t, func(s *httptest.Server) {
				s.TLS.ClientAuth = tls.RequireAndVerifyClientCert
				s.TLS.ClientCAs = x509.NewCertPool()
				s.TLS.ClientCAs.AddCert(cert)
			})
			s.tls.CertFile, s.tls.KeyFile = certFile, keyFile
			return s
		}},
		{name: "HTTP/2", http2: true, proto: "HTTP/2.0", clock: tacho.ReadClock, start: func(t *testing.T) site {
			return tlsSite(t, func(s *httptest.Server) { s.EnableHTTP2 = true })
		}},
		{name: "HTTP/2 asked but not spoken", http2: true, start: func(t *testing.T) site { return tlsSite(t, nil) }},
		{name: "h2c", http2: true, proto: "HTTP/2.0", clock: tacho.ReadClock, start: func(t *testing.T) site {
			s := httptest.NewUnstartedServer(echo)
			s.Config.Protocols = new(http.Protocols)
			s.Config.Protocols.SetUnencryptedHTTP2(true)
			s.Start()
			t.Cleanup(s.Close)
			return site{url: s.URL}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := tt.start(t)
			config := must.Get(TLSConfig(s.tls))(t)
			c := newClient(t, Options{BaseURL: s.url, TLS: config, HTTP2: tt.http2})
			must.Do(t, c.Warm(t.Context(), 1, 1))
			proto, path := tt.proto, tt.path
			if proto == "" {
				proto = "HTTP/1.1"
			}
			if path == "" {
				path = "/v1/x"
			}
			for i := range 3 {
				x, sink := mustPost(t, c, "hello")
				if got, want := string(sink.data), proto+" "+path+" hello"; got != want {
					t.Errorf("body %q, want %q", got, want)
				}
				checkOrder(t, x, sink.reads)
				if tt.clock != 0 && x.Clock != tt.clock {
					t.Errorf("clock %v, want %v", x.Clock, tt.clock)
				}
				if x.Status != 200 || x.Conns != 1 || x.Reused != (i > 0) {
					t.Errorf("request %d: status %d, %d connections, reused %v", i, x.Status, x.Conns, x.Reused)
				}
			}
			if got := c.spares.taken.Load(); got != 1 {
				t.Errorf("%d spares taken, want 1", got)
			}
		})
	}
}

func TestCompressionIsNeverAskedFor(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, "[%s]", r.Header.Get("Accept-Encoding"))
	}))
	defer s.Close()
	if _, sink := mustPost(t, newClient(t, Options{BaseURL: s.URL}), ""); string(sink.data) != "[]" {
		t.Errorf("Accept-Encoding %s", sink.data)
	}
}

// proxy is an HTTP proxy that reports the requests it forwards.
func proxy(t *testing.T, seen chan<- string) *url.URL {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen <- r.Method + " " + r.RequestURI
		if r.Method != http.MethodConnect {
			r.RequestURI = ""
			resp, err := http.DefaultTransport.RoundTrip(r)
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			defer resp.Body.Close()
			io.Copy(w, resp.Body)
			return
		}
		to, err := net.Dial("tcp", r.Host)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		from, _, _ := w.(http.Hijacker).Hijack()
		io.WriteString(from, "HTTP/1.1 200 OK\r\n\r\n")
		go func() { io.Copy(to, from); to.Close() }()
		io.Copy(from, to)
		from.Close()
	}))
	t.Cleanup(s.Close)
	return must.Get(url.Parse(s.URL))(t)
}

func TestProxy(t *testing.T) {
	for _, start := range []func(*testing.T) site{plainSite, func(t *testing.T) site { return tlsSite(t, nil) }} {
		s := start(t)
		seen := make(chan string, 10)
		config := must.Get(TLSConfig(s.tls))(t)
		c := newClient(t, Options{BaseURL: s.url, TLS: config, Proxy: http.ProxyURL(proxy(t, seen))})
		if err := c.Warm(t.Context(), 2, 2); err != nil {
			t.Errorf("Warm: %v", err)
		}
		x, sink := mustPost(t, c, "hello")
		if !strings.HasSuffix(string(sink.data), "/v1/x hello") {
			t.Errorf("body %q", sink.data)
		}
		checkOrder(t, x, sink.reads)
		if got := <-seen; len(seen) != 0 || !strings.Contains(got, strings.TrimPrefix(strings.TrimPrefix(s.url, "http://"), "https://")) {
			t.Errorf("the proxy saw %q and %d more", got, len(seen))
		}
	}
}

func TestHTTP(t *testing.T) {
	s := plainSite(t)
	c := newClient(t, Options{BaseURL: s.url})
	resp, err := c.HTTP().Do(newRequest(t, c, "GET", "/models?all=1", ""))
	must.Do(t, err)
	body, _ := io.ReadAll(resp.Body)
	resp.Body.Close()
	if string(body) != "HTTP/1.1 /models?all=1 " {
		t.Errorf("body %q", body)
	}
}

func TestNewRequest(t *testing.T) {
	for _, tt := range []struct{ base, path, want string }{
		{"http://127.0.0.1:8000", "/v1/completions", "http://127.0.0.1:8000/v1/completions"},
		{"http://127.0.0.1:8000/", "v1/completions", "http://127.0.0.1:8000/v1/completions"},
		{"http://127.0.0.1/a/b/", "/c?d=e", "http://127.0.0.1/a/b/c?d=e"},
		{"http://127.0.0.1/a", "", "http://127.0.0.1/a"},
		{"http://[::1]:8000/a%2Fb", "/c%2Fd", "http://[::1]:8000/a%2Fb/c%2Fd"},
		{"unix:///run/x.sock", "/info", "http://localhost/info"},
		{"unix:///run/x.sock:/tgi/", "/info", "http://localhost/tgi/info"},
	} {
		c := newClient(t, Options{BaseURL: tt.base})
		req, err := c.NewRequest("POST", tt.path, http.Header{"X-A": {"b"}}, []byte("body"))
		if err != nil {
			t.Errorf("%s %s: %v", tt.base, tt.path, err)
			continue
		}
		if got := req.URL.String(); got != tt.want || req.GetBody == nil || req.ContentLength != 4 || req.Header.Get("X-A") != "b" {
			t.Errorf("%s + %s = %s, want %s (%+v)", tt.base, tt.path, got, tt.want, req)
		}
	}
	c := newClient(t, Options{BaseURL: "http://me:secret@127.0.0.1/"})
	req := newRequest(t, c, "GET", "/x", "")
	if user, password, _ := req.BasicAuth(); user != "me" || password != "secret" || req.URL.User != nil {
		t.Errorf("user %q, password %q, URL %v", user, password, req.URL)
	}
	for _, path := range []string{"http://127.0.0.2/x", "//127.0.0.2/x", "/%zz", "\x00"} {
		if _, err := c.NewRequest("GET", path, nil, nil); err == nil {
			t.Errorf("endpoint %q: no error", path)
		}
	}
}

func TestBadBaseURL(t *testing.T) {
	for _, tt := range []struct{ base, want string }{
		{"", "begin with http://"},
		{"ftp://127.0.0.1", "begin with http://"},
		{"http://", "has no host"},
		{"http://:80", "has no host"},
		{"http://127.0.0.1/?x", "remove the query"},
		{"http://me:secret@127.0.0.1:bad", "base URL"},
		{"127.0.0.1:8000", "begin with http://"},
		{"ftp://me:secret@127.0.0.1", "xxxxx"},
		{"unix://relative.sock", "absolute"},
	} {
		_, err := New(Options{BaseURL: tt.base})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v, want %q in it", tt.base, err, tt.want)
		}
	}
}

func TestTLSConfigErrors(t *testing.T) {
	_, certFile, keyFile := identity(t)
	empty := filepath.Join(t.TempDir(), "empty.pem")
	must.Do(t, os.WriteFile(empty, nil, 0o600))
	for _, o := range []TLSOptions{
		{CAFile: "missing.pem"},
		{CAFile: empty},
		{CertFile: certFile},
		{KeyFile: keyFile},
		{CertFile: keyFile, KeyFile: certFile},
	} {
		_, err := TLSConfig(o)
		if err == nil || !strings.Contains(err.Error(), ".pem") {
			t.Errorf("%+v: %v, want an error that names the file", o, err)
		}
	}
	endless := filepath.Join(t.TempDir(), "endless.pem")
	must.Do(t, os.WriteFile(endless, make([]byte, 2<<20), 0o600))
	for _, o := range []TLSOptions{{CAFile: endless}, {CertFile: endless, KeyFile: keyFile}, {CertFile: certFile, KeyFile: endless}} {
		if _, err := TLSConfig(o); err == nil || !strings.Contains(err.Error(), "endless.pem is larger than 1 MiB") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// The resolver drops an address that does not answer and rotates among the rest.
func TestResolverForgetsTheDead(t *testing.T) {
	_, port, _ := net.SplitHostPort(rawServer(t, func(net.Conn, *bufio.Reader) {}))
	dead, good := netip.MustParseAddr("::1"), netip.MustParseAddr("127.0.0.1")
	r := &resolver{addrs: map[string][]netip.Addr{"server": {dead, good}}}
	r.dialer.Control = func(_, address string, _ syscall.RawConn) error {
		if address == net.JoinHostPort(dead.String(), port) {
			return syscall.ECONNREFUSED
		}
		return nil
	}
	for range 4 {
		nc := must.Get(r.dial(t.Context(), "tcp", "server:"+port))(t)
		nc.Close()
	}
	if got := r.addrs["server"]; len(got) != 1 || got[0] != good {
		t.Errorf("addresses kept: %v, want %v", got, good)
	}
	r.addrs["server"] = []netip.Addr{dead, good}
	turns := map[netip.Addr]int{}
	for range 4 {
		addrs, err := r.lookup(t.Context(), "server")
		if err != nil || len(addrs) != 2 {
			t.Fatal(addrs, err)
		}
		turns[addrs[0]]++
	}
	if turns[dead] != 2 || turns[good] != 2 {
		t.Errorf("turns %v, want two each", turns)
	}
}
