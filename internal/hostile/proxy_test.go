// Package hostile tests tacho against misbehaving servers. A proxy in front of the simulator, or of a recording, bends each response
// into one of many shapes. tacho must terminate, count every request, and report the right cause.
package hostile

import (
	"bufio"
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/recorded"
	"github.com/tacho-bench/tacho/sim"
)

// mark is the prefix of the ids of measured requests. Other requests get correct responses.
const mark = "m-"

// A tcpConn is a connection with a reset.
type tcpConn interface {
	net.Conn
	SetLinger(seconds int) error
}

// A proxy answers in place of a server.
type proxy struct {
	ln     net.Listener
	server http.Handler // the simulator, or a recording if the simulator does not emulate the server
	shape  *shape
	all    bool // also bend the responses to queries

	running sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	over  bool
}

func newProxy(t testing.TB, ln net.Listener, tr *trial) *proxy {
	t.Helper()
	p := &proxy{ln: ln, server: recorded.Open(tr.kind.Name), shape: tr.shape, all: tr.all, conns: map[net.Conn]bool{}}
	if p.server.(recorded.Server) == nil {
		engine := cmp.Or(emulated[tr.kind.Name], tr.kind.Name)
		s := must.Get(sim.New(sim.Options{Engine: engine, Model: "m", TTFT: time.Microsecond, ITL: time.Microsecond, ForgetTruth: true}))(t)
		p.server = s
	}
	p.running.Go(p.serve)
	return p
}

func (p *proxy) serve() {
	for {
		nc, err := p.ln.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		p.conns[nc] = true
		over := p.over
		p.mu.Unlock()
		if over {
			nc.Close()
		}
		p.running.Go(func() { p.talk(nc.(tcpConn)) })
	}
}

func (p *proxy) close() {
	p.ln.Close()
	p.mu.Lock()
	p.over = true
	for nc := range p.conns {
		nc.Close()
	}
	p.mu.Unlock()
	if s, ok := p.server.(io.Closer); ok {
		_ = s.Close()
	}
	p.running.Wait()
}

func (p *proxy) talk(nc tcpConn) {
	defer func() {
		nc.Close()
		p.mu.Lock()
		delete(p.conns, nc)
		p.mu.Unlock()
	}()
	r := bufio.NewReader(nc)
	for {
		req, err := http.ReadRequest(r)
		if err != nil {
			return
		}
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return
		}
		req.Body = io.NopCloser(bytes.NewReader(body))
		w := httptest.NewRecorder()
		p.server.ServeHTTP(w, req)
		o := &out{conn: nc, in: r, answer: newAnswer(w.Result())}
		if id, measured := strings.CutPrefix(req.Header.Get("X-Request-Id"), mark); p.all || measured && id != "" && id[0] >= '0' && id[0] <= '9' {
			p.shape.bend(o)
		} else {
			o.send(o.body)
		}
		if !o.keep {
			return
		}
	}
}

// An answer is the response of the server.
type answer struct {
	status int
	typ    string
	body   []byte
	events [][]byte // the body, split after each event
}

func newAnswer(resp *http.Response) *answer {
	body, _ := io.ReadAll(resp.Body)
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")) // one shape restores them
	a := &answer{status: resp.StatusCode, typ: resp.Header.Get("Content-Type"), body: body}
	end := "\n\n"
	switch {
	case strings.HasPrefix(a.typ, "application/json"):
		end = "\x00" // one document
	case !bytes.Contains(body, []byte("data:")):
		end = "\n"
	}
	a.events = bytes.SplitAfter(body, []byte(end))
	if n := len(a.events); len(a.events[n-1]) == 0 {
		a.events = a.events[:n-1]
	}
	return a
}

// An out writes the response to the client. The connection is closed unless the shape sets keep.
type out struct {
	*answer
	conn tcpConn
	in   *bufio.Reader
	keep bool
}

func (o *out) raw(s string) bool {
	_, err := io.WriteString(o.conn, s)
	return err == nil
}

// head starts a chunked response with additional header lines.
func (o *out) head(lines ...string) {
	o.raw(fmt.Sprintf("HTTP/1.1 %d %s\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n", o.status, http.StatusText(o.status), o.typ))
	for _, l := range lines {
		o.raw(l + "\r\n")
	}
	o.raw("\r\n")
}

func (o *out) chunk(b []byte) bool {
	return len(b) == 0 || o.raw(fmt.Sprintf("%x\r\n", len(b))) && o.raw(string(b)) && o.raw("\r\n")
}

func (o *out) end() { o.raw("0\r\n\r\n") }

// send sends a correct response with the given body.
func (o *out) send(body []byte, lines ...string) {
	o.head(lines...)
	o.chunk(body)
	o.end()
	o.keep = true
}

// flood sends a piece repeatedly in chunks, up to the given number of bytes or until the client closes the
// connection.
func (o *out) flood(piece string, bytes int) {
	for sent := 0; sent < bytes; sent += len(piece) {
		if !o.chunk([]byte(piece)) {
			return
		}
	}
	o.end()
}

// stall sends nothing until the client closes the connection.
func (o *out) stall() { _, _ = io.Copy(io.Discard, o.in) }

// reset resets the connection.
func (o *out) reset() {
	time.Sleep(5 * time.Millisecond) // let the written bytes arrive first
	_ = o.conn.SetLinger(0)
	o.conn.Close()
}
