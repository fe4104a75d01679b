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

// An uplink delivers the records of a spool to JetStream. It reads from disk, so a slow
// network delays no request.
type uplink struct {
	js        jetstream.JetStream
	spool     *spool
	key       *Identity    // signs the records
	confirmed atomic.Int64 // bytes that JetStream has confirmed

	unconfirmed []publication // in order
	failures    int           // consecutive failures
}

// A publication is a message that JetStream has not confirmed yet.
type publication struct {
	end int64 // offset after its last byte
	ack jetstream.PubAckFuture
}

const (
	chunkBytes     = 256 << 10
	maxUnconfirmed = 16
	ackTimeout     = 5 * time.Second
	retryPause     = 200 * time.Millisecond

	maxDoublings = 4                     // bounds the pause after failures
	batchDelay   = 10 * time.Millisecond // collects records into fewer messages
)

// run delivers all records until the spool ends or ctx is done. It repeats messages without
// confirmation. JetStream and the coordinator recognize duplicates by their offset.
func (u *uplink) run(ctx context.Context) error {
	buffer := make([]byte, chunkBytes)
	next := u.spool.start
	u.confirmed.Store(next)
	for ctx.Err() == nil {
		size, over := u.spool.size()
		if next < size && len(u.unconfirmed) < maxUnconfirmed {
			n, err := u.spool.read(next, buffer)
			if err != nil {
				return err
			}
			if err := u.send(next, buffer[:n]); err != nil {
				next = u.rewind(ctx)
			} else {
				next += int64(n)
			}
			continue
		}
		switch {
		case len(u.unconfirmed) > 0:
			if !u.awaitAck(ctx) {
				next = u.rewind(ctx)
			}
		case over && next == size:
			return nil
		default:
			u.awaitRecords(ctx)
		}
	}
	return ctx.Err()
}

// awaitRecords waits for new records.
func (u *uplink) awaitRecords(ctx context.Context) {
	select {
	case <-u.spool.added:
		pause(ctx, batchDelay)
	case <-ctx.Done():
	}
}

func (u *uplink) send(offset int64, body []byte) error {
	return u.publish(offset, offset+int64(len(body)), append([]byte(nil), body...), nil)
}

func (u *uplink) publish(offset, end int64, body []byte, more nats.Header) error {
	a := u.spool.info
	m := nats.NewMsg(recordSubject(a.Run, a.Attempt, u.key.Public(), a.Share))
	if more != nil {
		m.Header = more
	}
	m.Header.Set(offsetHeader, strconv.FormatInt(offset, 10))
	m.Data = body
	if err := u.key.sign(m); err != nil {
		return err
	}
	paper, err := u.js.PublishMsgAsync(m, jetstream.WithStallWait(ackTimeout))
	if err == nil {
		u.unconfirmed = append(u.unconfirmed, publication{end, paper})
	}
	return err
}

// awaitAck waits for the confirmation of the first message, and reports whether it came.
func (u *uplink) awaitAck(ctx context.Context) bool {
	f := u.unconfirmed[0]
	select {
	case <-f.ack.Ok():
		u.unconfirmed, u.failures = u.unconfirmed[1:], 0
		u.confirmed.Store(f.end)
		u.spool.confirm(f.end)
		return true
	case <-f.ack.Err():
	case <-time.After(ackTimeout):
	case <-ctx.Done():
	}
	return false
}

// rewind discards unconfirmed messages and returns the offset to continue from.
func (u *uplink) rewind(ctx context.Context) int64 {
	u.unconfirmed = nil
	pause(ctx, retryPause<<min(u.failures, maxDoublings))
	u.failures++
	return u.confirmed.Load()
}

// sendFinal ends the stream after all records are confirmed.
func (u *uplink) sendFinal(ctx context.Context, f finalMessage) error {
	size, _ := u.spool.size()
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		h := nats.Header{}
		h.Set(endHeader, "1")
		if err := u.publish(size, size, text, h); err == nil && u.awaitAck(ctx) {
			return nil
		}
		u.rewind(ctx)
	}
	return fmt.Errorf("deliver the final message: %w", ctx.Err())
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
