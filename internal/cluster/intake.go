package cluster

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// An intake reads the records of a level from JetStream in order. It reopens its reader after
// the last message if the reader stops although more messages exist, for example because its
// NATS server died.
type intake struct {
	messages  chan incoming
	lastSeq   uint64 // stream sequence number of the last received message
	checkedAt time.Time
	reader    *reader
}

// A reader is one consumer of the stream.
type reader struct {
	closed   chan struct{}
	broken   atomic.Bool // a message is missing, so the reader is unusable
	consumer jetstream.ConsumeContext
}

// incoming is a message with records.
type incoming struct {
	subject string
	header  nats.Header
	body    []byte
	seq     uint64
}

// openIntake starts to read.
func (c *Coordinator) openIntake(ctx context.Context, try string) (*intake, error) {
	in := &intake{messages: make(chan incoming, 64), checkedAt: time.Now()}
	err := c.retry(ctx, func(ctx context.Context) (err error) { in.reader, err = c.openReader(ctx, in, try); return err })
	if err != nil {
		return nil, fmt.Errorf("read records from NATS: %w", err)
	}
	return in, nil
}

// retry repeats do until it succeeds, because a NATS cluster that lost a server needs time to
// elect a leader.
func (c *Coordinator) retry(ctx context.Context, do func(context.Context) error) (err error) {
	for end := time.Now().Add(c.Timeout); ; pause(ctx, retryPause) {
		short, cancel := context.WithTimeout(ctx, requestTimeout)
		err = do(short)
		cancel()
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// openReader reads the messages after the last received one.
func (c *Coordinator) openReader(ctx context.Context, in *intake, try string) (*reader, error) {
	consumer, err := c.js.CreateConsumer(ctx, streamName(c.Run), jetstream.ConsumerConfig{
		Name: nuid.Next(), FilterSubject: levelSubjects(c.Run, try), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: in.lastSeq + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	r := &reader{closed: make(chan struct{})}
	next := uint64(1)
	r.consumer, err = consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Consumer != next {
			r.broken.Store(true)
		}
		if r.broken.Load() {
			return
		}
		next++
		r.deliver(in, incoming{m.Subject(), m.Headers(), m.Data(), meta.Sequence.Stream})
	}, jetstream.PullMaxMessages(64))
	return r, err
}

// deliver passes a message on unless the reader is closed. A closed reader delivers nothing,
// because a new reader delivers the same messages.
func (r *reader) deliver(in *intake, m incoming) {
	select {
	case <-r.closed:
		return
	default:
	}
	select {
	case in.messages <- m:
	case <-r.closed:
	}
}

// checkInterval is how often an idle stream is checked.
const checkInterval = time.Second

// checkIntake reopens the reader if it is silent although the stream has more messages.
func (c *Coordinator) checkIntake(ctx context.Context, l *levelRun) {
	in := l.intake
	if time.Since(in.checkedAt) < checkInterval || len(in.messages) > 0 {
		return
	}
	in.checkedAt = time.Now()
	last, err := c.lastSeq(ctx, levelSubjects(c.Run, l.attempt))
	if err != nil || !in.reader.broken.Load() && last <= in.lastSeq {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if again, err := c.openReader(ctx, in, l.attempt); err == nil {
		in.close()
		in.reader = again
	}
}

// advance notes that a message was received.
func (in *intake) advance(m incoming) { in.lastSeq, in.checkedAt = max(in.lastSeq, m.seq), time.Now() }

func (in *intake) close() {
	close(in.reader.closed)
	in.reader.consumer.Stop()
}
