package cluster

import (
	"context"
	"errors"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/nats-io/nats.go"
)

// lease returns how long an agent sends without contact. It ends before the coordinator counts the agent as lost and
// another one takes over. It is 0 if no agent can take over.
func (c *Coordinator) lease(agents int) time.Duration {
	if !c.reassigns() || agents < 2 {
		return 0
	}
	return c.Timeout * 9 / 10
}

// contact is the last time at which no other agent could take over: the coordinator answered a heartbeat that was sent
// then, or there was certainly no coordinator.
type contact struct {
	epoch time.Time    // makes times monotonic
	last  atomic.Int64 // since the epoch
}

// now is the time since the epoch. Answers to heartbeats name it.
func (c *contact) now() int64 { return int64(time.Since(c.epoch)) }

func (c *contact) at(t int64) {
	for last := c.last.Load(); t > last && !c.last.CompareAndSwap(last, t); last = c.last.Load() {
	}
}

// age returns the time since the last contact.
func (c *contact) age() time.Duration { return time.Duration(c.now() - c.last.Load()) }

// watch returns a dialer that counts a refused connection as a contact: the coordinator with its NATS server has ended,
// or a NATS server of the user without which no coordinator hears an agent.
func (c *contact) watch(dial dialer) dialer {
	if dial == nil {
		dial = (&net.Dialer{Timeout: connectTimeout}).Dial
	}
	return func(network, address string) (net.Conn, error) {
		began := c.now()
		conn, err := dial(network, address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			c.at(began)
		}
		return conn, err
	}
}

// handleLease handles the answer to a heartbeat. NATS answers if no coordinator listens.
func (a *agent) handleLease(m *nats.Msg) {
	sent, err := strconv.ParseInt(m.Subject[strings.LastIndexByte(m.Subject, '.')+1:], 10, 64)
	lost, gone := string(m.Data) == takenOver, m.Header.Get("Status") != ""
	if err == nil && !lost {
		a.contact.at(sent)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if err == nil && !gone {
		a.lastHeard = time.Now()
	}
	for _, w := range a.shares {
		if lost && w.command.Lease > 0 {
			w.stop()
		}
	}
}

// hold waits while the agent may send nothing.
func (w *localShare) hold(ctx context.Context, c *contact) error {
	if w.command.Lease == 0 || c.age() <= w.command.Lease {
		return nil
	}
	began := time.Now()
	if w.holding.Add(1) == 1 {
		defer func() { w.paused.Add(int64(time.Since(began))) }()
	}
	defer w.holding.Add(-1)
	for c.age() > w.command.Lease && ctx.Err() == nil {
		pause(ctx, leasePause)
	}
	return ctx.Err()
}

// leasePause is how often a held request checks the lease.
const leasePause = 10 * time.Millisecond
