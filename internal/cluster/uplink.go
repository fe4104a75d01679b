package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// An uplink delivers the records of a spool to the coordinator in batches. It sends a batch again until the coordinator
// acknowledges it. It reads from disk, so a slow network delays no request.
type uplink struct {
	nats      *nats.Conn
	spool     *spool
	key       *Identity // signs the records
	leader    func() string
	confirmed atomic.Int64 // bytes that the coordinator has acknowledged
}

// An ack is the coordinator's answer to a batch.
type ack struct {
	Received int64 `json:"received"`           // bytes of the stream that the coordinator has
	Unwanted bool  `json:"unwanted,omitempty"` // the coordinator needs no records of this share
}

const (
	batchBytes = 512 << 10 // NATS accepts 1 MiB by default
	retryPause = 200 * time.Millisecond

	maxDoublings = 4                     // bounds the pause after failures
	batchDelay   = 10 * time.Millisecond // collects records into fewer messages
)

// errUnwanted means that the coordinator needs no records of a share, because another agent sends it or the level is
// complete.
var errUnwanted = errors.New("the coordinator does not need these records")

// run delivers all records until the spool ends or ctx is done.
func (u *uplink) run(ctx context.Context) error {
	buffer := make([]byte, batchBytes)
	u.confirmed.Store(u.spool.start())
	for ctx.Err() == nil {
		at := u.confirmed.Load()
		if size, over := u.spool.size(); at >= size {
			if over {
				return nil
			}
			select {
			case <-u.spool.added:
				pause(ctx, batchDelay)
			case <-ctx.Done():
			}
			continue
		}
		n, err := u.spool.read(at, buffer)
		if err == nil {
			err = u.deliver(ctx, at, buffer[:n], "")
		}
		if err != nil {
			return err
		}
	}
	return ctx.Err()
}

// sendFinal ends the stream after all records are acknowledged.
func (u *uplink) sendFinal(ctx context.Context, f finalMessage) error {
	text, err := json.Marshal(f)
	if err != nil {
		return err
	}
	size, _ := u.spool.size()
	return u.deliver(ctx, size, text, "1")
}

// deliver sends a batch until the coordinator acknowledges bytes.
func (u *uplink) deliver(ctx context.Context, offset int64, body []byte, end string) error {
	a := u.spool.info
	m := nats.NewMsg(recordSubject(a.Run, a.Attempt, u.key.Public(), a.Share))
	m.Header.Set(offsetHeader, strconv.FormatInt(offset, 10))
	m.Header.Set(endHeader, end)
	m.Data = body
	if err := u.key.sign(m); err != nil {
		return err
	}
	for failures := 0; ; failures++ {
		answer, err := u.request(ctx, m)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("deliver records: %w", ctx.Err())
		case err == nil && answer.Unwanted:
			return errUnwanted
		case err == nil:
			u.confirmed.Store(answer.Received)
			u.spool.confirm(answer.Received)
			return nil
		}
		pause(ctx, retryPause<<min(failures, maxDoublings))
	}
}

func (u *uplink) request(ctx context.Context, m *nats.Msg) (a ack, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	m.Header.Set(leaderHeader, u.leader())
	answer, err := u.nats.RequestMsgWithContext(ctx, m)
	if err != nil {
		return a, err
	}
	return a, json.Unmarshal(answer.Data, &a)
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}
