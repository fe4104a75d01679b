package transport

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/tacho-bench/tacho"
)

// exchangeOver sends a request to a server that writes reply in pieces of the given size
// and closes.
func exchangeOver(t *testing.T, reply []byte, piece int) (body []byte, status int, cause tacho.Cause) {
	c := newClient(t, Options{BaseURL: "http://mem", Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go func() {
			defer far.Close()
			r := bufio.NewReader(far)
			if readHead(r) != nil {
				return
			}
			for rest := reply; len(rest) > 0; {
				n := min(piece, len(rest))
				if _, err := far.Write(rest[:n]); err != nil {
					return
				}
				rest = rest[n:]
			}
		}()
		return near, nil
	}})
	var x Exchange
	sink := new(collector)
	var live bytes.Buffer
	err := c.Do(t.Context(), ready(t, c, "GET", "/", ""), &x, sink, func(p []byte, _ int64) { live.Write(p) })
	if sink.fault != "" || !bytes.Equal(live.Bytes(), sink.data) {
		t.Errorf("Consume got %q (%s), live %q", sink.data, sink.fault, live.Bytes())
	}
	if x.End == 0 || x.Sent == 0 || x.Conns != 1 {
		t.Errorf("incomplete exchange: %+v", x)
	}
	if f := Classify(err, &x); f != nil {
		cause = f.Cause
	}
	return sink.data, x.Status, cause
}

// Whatever a server sends, the client does not panic or hang, and the body does not depend
// on how the bytes are cut.
func FuzzServer(f *testing.F) {
	log.SetOutput(io.Discard) // net/http logs unsolicited bytes
	for _, reply := range []string{
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
		"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello and more",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nA: b\r\n\r\n",
		"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nzz",
		"HTTP/1.0 200 OK\r\n\r\nhello",
		"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 429 No\r\n\r\nlater",
		"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\nnoise",
		"HTTP/1.1 204 No Content\r\n\r\nx",
		"",
	} {
		f.Add([]byte(reply), byte(1))
	}
	f.Fuzz(func(t *testing.T, reply []byte, piece byte) {
		wholeBody, wholeStatus, wholeCause := exchangeOver(t, reply, len(reply))
		body, status, cause := exchangeOver(t, reply, int(piece)%64+1)
		if !bytes.Equal(body, wholeBody) || status != wholeStatus || cause != wholeCause {
			t.Errorf("whole: %d %q %q; cut: %d %q %q", wholeStatus, wholeBody, wholeCause, status, body, cause)
		}
	})
}

// However TLS records are cut, the decoder returns the same bytes.
func FuzzTLSCuts(f *testing.F) {
	f.Add([]byte("data: a\n\ndata: b\n\n"), byte(3), byte(1))
	f.Add([]byte("x"), byte(1), byte(7))
	f.Fuzz(func(t *testing.T, text []byte, record, piece byte) {
		near, far := net.Pipe()
		codec := &tlsCodec{Conn: near}
		client := tls.Client(codec, &tls.Config{InsecureSkipVerify: true})
		server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{fuzzIdentity()}})
		done := make(chan error, 1)
		go func() { done <- server.Handshake() }()
		if err := errors.Join(client.Handshake(), <-done); err != nil {
			t.Fatal(err)
		}
		codec.tls = client
		var cipher bytes.Buffer
		go func() {
			for rest := text; len(rest) > 0; {
				n := min(int(record)+1, len(rest))
				_, _ = server.Write(rest[:n])
				rest = rest[n:]
			}
			_ = server.CloseWrite()
			_ = far.Close()
		}()
		_, _ = cipher.ReadFrom(near)
		var got []byte
		var err error
		for rest := cipher.Bytes(); len(rest) > 0 && err == nil; {
			p := rest[:min(int(piece)+1, len(rest))]
			for len(p) > 0 && err == nil {
				var used int
				got, used, err = codec.Decode(got, p)
				p, rest = p[used:], rest[used:]
			}
		}
		if !errors.Is(err, io.EOF) || !bytes.Equal(got, text) {
			t.Errorf("%q, %v; want %q", got, err, text)
		}
	})
}

var fuzzIdentity = sync.OnceValue(func() tls.Certificate {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0]
})

// Heads that streamHead reads are read by net/http with the same result.
func FuzzStreamHead(f *testing.F) {
	for _, lines := range []string{
		"Transfer-Encoding: chunked", "content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\nConnection: Keep-Alive",
		"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nContent-Length: 5", "Content-Length: 5",
		"Transfer-Encoding: chunked\r\nX: y\r\n z", "Transfer-Encoding: chunked\r\nConnection: close", "Transfer-Encoding: chunked\nX: y",
		"Transfer-Encoding: chunked\r\nContent-Encoding: gzip", " Transfer-Encoding: chunked", "Transfer-Encoding: chunked\r\nX : y",
	} {
		f.Add([]byte("HTTP/1.1 200 OK\r\n" + lines + "\r\n\r\n5\r\nhello\r\n0\r\n\r\n"))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		size, contentType := streamHead(p)
		if size == 0 {
			return
		}
		in := bufio.NewReader(bytes.NewReader(p))
		want, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%q: %v", p, err)
		}
		defer want.Body.Close()
		var x, y Exchange
		closes, encoding := want.Close, want.TransferEncoding
		x.Status, x.Type = http.StatusOK, contentType
		y.head(want)
		rest, _ := io.ReadAll(in)
		if !reflect.DeepEqual(x, y) || closes || !slices.Equal(encoding, []string{"chunked"}) || string(rest) != string(p[size:]) {
			t.Errorf("%q: %+v, net/http reads %+v, close %v, encoding %v, and leaves %q", p, x, y, closes, encoding, rest)
		}
	})
}
