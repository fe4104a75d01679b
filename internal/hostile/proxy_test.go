// Package hostile holds the tests against servers that do everything wrong: a
// proxy in front of the simulator bends each answer into one of many shapes, and
// tacho must end, count every request, and name the right cause.
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

	"tacho/sim"
)

// mark begins the ids of the measured requests: the others are answered well.
const mark = "m-"

// A tcpConn is a connection that can be reset.
type tcpConn interface {
	net.Conn
	SetLinger(seconds int) error
}

// A proxy answers in the simulator's stead.
type proxy struct {
	ln    net.Listener
	sim   *sim.Server
	shape *shape
	all   bool // bend the answers to questions too

	running sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]bool
	over  bool
}

func newProxy(t testing.TB, ln net.Listener, tr *trial) *proxy {
	t.Helper()
	engine := cmp.Or(poses[tr.kind.Name], tr.kind.Name)
	engineSim, err := sim.New(sim.Options{Engine: engine, Model: "m", TTFT: time.Microsecond, ITL: time.Microsecond, ForgetTruth: true})
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{ln: ln, sim: engineSim, shape: tr.shape, all: tr.all, conns: map[net.Conn]bool{}}
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
	_ = p.sim.Close()
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
		p.sim.ServeHTTP(w, req)
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

// An answer is what the simulator said.
type answer struct {
	status int
	typ    string
	body   []byte
	events [][]byte // the body, cut behind each event
}

func newAnswer(resp *http.Response) *answer {
	body, _ := io.ReadAll(resp.Body)
	body = bytes.ReplaceAll(body, []byte("\r\n"), []byte("\n")) // one shape puts them back
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

// An out is the way back to the client. A shape that leaves keep unset has its
// connection closed.
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

// head begins an answer in chunks, with further lines of header.
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

// send is an answer as it should be, with this body.
func (o *out) send(body []byte, lines ...string) {
	o.head(lines...)
	o.chunk(body)
	o.end()
	o.keep = true
}

// flood sends a piece again and again in chunks until so many bytes have gone,
// or nobody takes them.
func (o *out) flood(piece string, bytes int) {
	for sent := 0; sent < bytes; sent += len(piece) {
		if !o.chunk([]byte(piece)) {
			return
		}
	}
	o.end()
}

// stall says no more until the client is gone.
func (o *out) stall() { _, _ = io.Copy(io.Discard, o.in) }

// reset breaks the connection in the rudest way.
func (o *out) reset() {
	time.Sleep(5 * time.Millisecond) // what was written arrives first
	_ = o.conn.SetLinger(0)
	o.conn.Close()
}
