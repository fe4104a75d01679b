package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An uplink hands the records of a spool over to JetStream. It reads the disk
// and waits for nobody but the network, so that a slow link delays no request.
type uplink struct {
	js     jetstream.JetStream
	spool  *spool
	handed atomic.Int64 // bytes that JetStream has confirmed

	flying []flight // sent, and not confirmed yet, in order
	failed int      // times in a row
}

// A flight is a message that JetStream has not confirmed yet.
type flight struct {
	end   int64 // offset behind it
	paper jetstream.PubAckFuture
}

const (
	chunkBytes = 256 << 10
	mostFlying = 16
	ackTimeout = 5 * time.Second
	retryPause = 200 * time.Millisecond

	mostDoubled = 4                     // times that the pause doubles
	gather      = 10 * time.Millisecond // for which records wait for others, so that a message is not spent on each
)

// run hands over all that comes, until the spool has ended or ctx is done. What
// is not confirmed is sent again; JetStream and the coordinator know it by its
// offset.
func (u *uplink) run(ctx context.Context) error {
	buffer := make([]byte, chunkBytes)
	next := u.spool.kept
	u.handed.Store(next)
	for ctx.Err() == nil {
		size, over := u.spool.size()
		if next < size && len(u.flying) < mostFlying {
			n, err := u.spool.read(next, buffer)
			if err != nil {
				return err
			}
			if err := u.send(next, buffer[:n]); err != nil {
				next = u.again(ctx)
			} else {
				next += int64(n)
			}
			continue
		}
		switch {
		case len(u.flying) > 0:
			if !u.land(ctx) {
				next = u.again(ctx)
			}
		case over && next == size:
			return nil
		default:
			u.await(ctx)
		}
	}
	return ctx.Err()
}

// await waits for more to hand over.
func (u *uplink) await(ctx context.Context) {
	select {
	case <-u.spool.more:
		pause(ctx, gather)
	case <-ctx.Done():
	}
}

func (u *uplink) send(offset int64, body []byte) error {
	return u.publish(offset, offset+int64(len(body)), append([]byte(nil), body...), nil)
}

func (u *uplink) publish(offset, end int64, body []byte, more nats.Header) error {
	a := u.spool.about
	m := nats.NewMsg(recordSubject(a.Run, a.Try, a.Share))
	if more != nil {
		m.Header = more
	}
	m.Header.Set(offsetHeader, strconv.FormatInt(offset, 10))
	m.Data = body
	paper, err := u.js.PublishMsgAsync(m, jetstream.WithStallWait(ackTimeout))
	if err == nil {
		u.flying = append(u.flying, flight{end, paper})
	}
	return err
}

// land waits for the first in flight; false if it has to be sent again.
func (u *uplink) land(ctx context.Context) bool {
	f := u.flying[0]
	select {
	case <-f.paper.Ok():
		u.flying, u.failed = u.flying[1:], 0
		u.handed.Store(f.end)
		u.spool.handedOver(f.end)
		return true
	case <-f.paper.Err():
	case <-time.After(ackTimeout):
	case <-ctx.Done():
	}
	return false
}

// again forgets what is in flight, and says from where to send anew.
func (u *uplink) again(ctx context.Context) int64 {
	u.flying = nil
	pause(ctx, retryPause<<min(u.failed, mostDoubled))
	u.failed++
	return u.handed.Load()
}

// farewell ends the stream, once all of it is handed over.
func (u *uplink) farewell(ctx context.Context, f farewell) error {
	size, _ := u.spool.size()
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		h := nats.Header{}
		h.Set(endHeader, "1")
		if err := u.publish(size, size, text, h); err == nil && u.land(ctx) {
			return nil
		}
		u.again(ctx)
	}
	return fmt.Errorf("the last words were not handed over: %w", ctx.Err())
}

// pause waits, unless ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
