package cluster

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// An intake reads the records of a level from JetStream, in order.
type intake struct {
	messages chan incoming
	done     uint64 // the last one that was taken in, by its number in the stream
	stop     func()
}

// incoming is a message with records.
type incoming struct {
	subject string
	header  nats.Header
	body    []byte
	seq     uint64
}

// openIntake begins to read.
func (c *Coordinator) openIntake(ctx context.Context, level int) (*intake, error) {
	consumer, err := c.js.OrderedConsumer(ctx, streamOf(c.Run), jetstream.OrderedConsumerConfig{
		FilterSubjects: []string{fmt.Sprintf("%s.%d.*", recordsOf(c.Run), level)}, DeliverPolicy: jetstream.DeliverAllPolicy,
	})
	if err != nil {
		return nil, fmt.Errorf("NATS does not hand out the records: %w", err)
	}
	in := &intake{messages: make(chan incoming, 64)}
	over := make(chan struct{})
	reading, err := consumer.Consume(func(m jetstream.Msg) {
		meta, err := m.Metadata()
		if err != nil {
			return // it is of no stream
		}
		select {
		case in.messages <- incoming{m.Subject(), m.Headers(), m.Data(), meta.Sequence.Stream}:
		case <-over:
		}
	}, jetstream.PullMaxMessages(64))
	if err != nil {
		return nil, fmt.Errorf("NATS does not hand out the records: %w", err)
	}
	in.stop = func() { close(over); reading.Stop() }
	return in, nil
}

func (in *intake) close() { in.stop() }
