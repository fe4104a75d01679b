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

// An intake reads the records of a level from JetStream, in order. It is opened
// anew behind the last message whenever it falls silent though there is more, as
// when the NATS server dies that hands the records out.
type intake struct {
	messages chan incoming
	done     uint64 // the last one that was taken in, by its number in the stream
	looked   time.Time
	from     *reader
}

// A reader is one connection of an intake to the stream.
type reader struct {
	over   chan struct{}
	broken atomic.Bool // something is missing, so that nothing is read any more
	read   jetstream.ConsumeContext
}

// incoming is a message with records.
type incoming struct {
	subject string
	header  nats.Header
	body    []byte
	seq     uint64
}

// openIntake begins to read.
func (c *Coordinator) openIntake(ctx context.Context, try string) (*intake, error) {
	in := &intake{messages: make(chan incoming, 64), looked: time.Now()}
	err := c.persist(ctx, func(ctx context.Context) (err error) { in.from, err = c.read(ctx, in, try); return err })
	if err != nil {
		return nil, fmt.Errorf("NATS does not hand out the records: %w", err)
	}
	return in, nil
}

// persist does something that NATS may not be ready for: it has lost a server, and
// agrees on what to do without it.
func (c *Coordinator) persist(ctx context.Context, do func(context.Context) error) (err error) {
	for end := time.Now().Add(c.Timeout); ; pause(ctx, retryPause) {
		short, cancel := context.WithTimeout(ctx, askTimeout)
		err = do(short)
		cancel()
		if err == nil || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
	}
}

// read reads what is behind the last message that was taken in.
func (c *Coordinator) read(ctx context.Context, in *intake, try string) (*reader, error) {
	consumer, err := c.js.CreateConsumer(ctx, streamOf(c.Run), jetstream.ConsumerConfig{
		Name: nuid.Next(), FilterSubject: triesOf(c.Run, try), DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: in.done + 1,
		AckPolicy: jetstream.AckNonePolicy, MemoryStorage: true, Replicas: 1, InactiveThreshold: time.Minute,
	})
	if err != nil {
		return nil, err
	}
	r := &reader{over: make(chan struct{})}
	next := uint64(1)
	r.read, err = consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil || meta.Sequence.Consumer != next {
			r.broken.Store(true)
		}
		if r.broken.Load() {
			return
		}
		next++
		r.pass(in, incoming{m.Subject(), m.Headers(), m.Data(), meta.Sequence.Stream})
	}, jetstream.PullMaxMessages(64))
	return r, err
}

// pass passes a message on, until somebody else reads. From then on it passes nothing:
// what it has left out would be missed behind a later one.
func (r *reader) pass(in *intake, m incoming) {
	select {
	case <-r.over:
		return
	default:
	}
	select {
	case in.messages <- m:
	case <-r.over:
	}
}

// lookEvery is how often the stream is looked at while nothing comes.
const lookEvery = time.Second

// look opens the intake anew where it has fallen silent though there is more.
func (c *Coordinator) look(ctx context.Context, l *levelRun) {
	in := l.in
	if time.Since(in.looked) < lookEvery || len(in.messages) > 0 {
		return
	}
	in.looked = time.Now()
	last, err := c.lastOf(ctx, triesOf(c.Run, l.try))
	if err != nil || !in.from.broken.Load() && last <= in.done {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout)
	defer cancel()
	if again, err := c.read(ctx, in, l.try); err == nil {
		in.close()
		in.from = again
	}
}

// took notes that a message was taken in.
func (in *intake) took(m incoming) { in.done, in.looked = max(in.done, m.seq), time.Now() }

func (in *intake) close() {
	close(in.from.over)
	in.from.read.Stop()
}
