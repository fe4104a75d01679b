package transport

import (
	"sync/atomic"
	"time"
)

// keptFor is how long after an answer a server may not close a connection that
// it said it would keep. It is short: to close one that is idle is its right.
const keptFor = time.Second

// keeping is what is known of how a server keeps the connections that it says
// it keeps. Some close each of them right behind a streamed answer, so that
// the next request meets a closed door.
type keeping struct {
	kept     atomic.Bool   // a connection has served a second request
	broken   atomic.Bool   // connections are closed after an answer, and none was ever kept
	onBroken func()        // called once
	window   time.Duration // keptFor; tests over sockets set a longer one
}

// breaks notes a connection that was not kept. It says so once, unless another
// connection was kept: then the server does not close them as a rule.
func (k *keeping) breaks() {
	if !k.kept.Load() && k.broken.CompareAndSwap(false, true) {
		k.onBroken()
	}
}

// A lease is how long the peer holds a connection open.
type lease struct {
	keeping  *keeping
	wrote    atomic.Int64 // bytes that we sent, or are about to
	promised atomic.Int64 // when an answer was over that left the connection open; 0: none was
	broken   atomic.Bool  // it broke: the peer has closed it, or reset it
	ended    atomic.Bool  // the peer has closed it
	taken    atomic.Int64 // once it has: no more of our bytes than these had reached it
}

// answered notes that an answer is over and the connection left open.
func (l *lease) answered() {
	if l.promised.Swap(now()) != 0 {
		l.keeping.kept.Store(true)
	}
	// The end may have been seen before this, or after: whoever is later tells.
	if l.broken.Load() {
		l.keeping.breaks()
	}
}

// end notes that the peer has closed the connection. taken is negative where
// nobody knows what reached it: not more than what was sent.
func (l *lease) end(taken int64) {
	if l.ended.Load() {
		return
	}
	if taken < 0 {
		taken = l.wrote.Load()
	}
	l.taken.Store(taken)
	l.ended.Store(true)
}

// cut notes that the connection broke. silent says that no answer was under way.
func (l *lease) cut(silent bool) {
	l.broken.Store(true)
	if silent && l.fresh() {
		l.keeping.breaks()
	}
}

// fresh says whether the promise to keep the connection was made just now.
func (l *lease) fresh() bool {
	at := l.promised.Load()
	return at != 0 && now()-at < int64(l.keeping.window)
}

// untaken says whether the peer has not got a byte of what was sent after the
// first so many: because it had closed the connection by then, or because it
// never reads on behind an answer.
func (l *lease) untaken(before int64) bool {
	return l.ended.Load() && l.taken.Load() <= before ||
		l.broken.Load() && l.fresh() && l.keeping.broken.Load()
}

// Keeps is false once it has shown that the server closes connections behind
// an answer although it said that it would keep them. Each request has a
// connection of its own from then on.
func (c *Client) Keeps() bool { return !c.keeping.broken.Load() }
