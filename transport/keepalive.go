package transport

import (
	"sync/atomic"
	"time"
)

// keptFor is how long after a response a server must keep a connection that it promised to
// keep. It is short, because a server may close idle connections.
const keptFor = time.Second

// serverKeepAlive records how a server keeps its promise to keep connections open. Some
// servers close each connection after a streamed response, so that the next request fails.
type serverKeepAlive struct {
	kept     atomic.Bool   // a connection served a second request
	broken   atomic.Bool   // connections were closed after a response, and none was kept
	onBroken func()        // called once
	window   time.Duration // keptFor; tests over sockets set a longer one
}

// breaks notes that the server closed a connection. The first time it calls onBroken,
// unless some connection was kept: then the server does not always close them.
func (k *serverKeepAlive) breaks() {
	if !k.kept.Load() && k.broken.CompareAndSwap(false, true) {
		k.onBroken()
	}
}

// connKeepAlive records how the peer keeps a connection open.
type connKeepAlive struct {
	server   *serverKeepAlive
	wrote    atomic.Int64 // bytes sent, including a write in progress
	promised atomic.Int64 // end of the last response that left the connection open; 0 if none
	broken   atomic.Bool  // the peer closed or reset the connection
	ended    atomic.Bool  // the peer closed the connection
	taken    atomic.Int64 // once ended: upper limit of our bytes received by the peer
}

// answered notes the end of a response that left the connection open.
func (l *connKeepAlive) answered() {
	if l.promised.Swap(now()) != 0 {
		l.server.kept.Store(true)
	}
	// The close may be noticed before or after the end of the response. The later call
	// counts it.
	if l.broken.Load() {
		l.server.breaks()
	}
}

// end notes that the peer closed the connection. taken is the number of our bytes it
// received, or negative if unknown.
func (l *connKeepAlive) end(taken int64) {
	if l.ended.Load() {
		return
	}
	if taken < 0 {
		taken = l.wrote.Load()
	}
	l.taken.Store(taken)
	l.ended.Store(true)
}

// cut notes that the connection broke. silent reports whether no response was in progress.
func (l *connKeepAlive) cut(silent bool) {
	l.broken.Store(true)
	if silent && l.fresh() {
		l.server.breaks()
	}
}

// fresh reports whether the server promised just now to keep the connection.
func (l *connKeepAlive) fresh() bool {
	at := l.promised.Load()
	return at != 0 && now()-at < int64(l.server.window)
}

// unreceived reports whether the peer received no byte after the first before bytes: it
// had closed the connection by then, or it never reads after a response.
func (l *connKeepAlive) unreceived(before int64) bool {
	return l.ended.Load() && l.taken.Load() <= before ||
		l.broken.Load() && l.fresh() && l.server.broken.Load()
}

// Keeps reports whether the server keeps connections open. It is false once the server
// closed connections right after responses despite its promise. Each request then uses a
// new connection.
func (c *Client) Keeps() bool { return !c.keepAlive.broken.Load() }
