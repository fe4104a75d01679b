package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"tacho/metric"
	"tacho/run"
)

// A standing is how a level stands. It is kept beside the records, so that another
// coordinator can go on with the level when this one dies: the agents send on, and
// all records of the level are still in the stream.
type standing struct {
	Level  int             `json:"level"`
	Try    string          `json:"try"`
	Epoch  int64           `json:"epoch"` // nanoseconds since 1970, by the coordinator's clock
	Shares []standingShare `json:"shares"`
}

// A standingShare is what cannot be learned of a share from its records.
type standingShare struct {
	K      int           `json:"k"`
	N      int           `json:"n"`
	Taken  bool          `json:"taken,omitempty"`
	Left   bool          `json:"left,omitempty"`
	Until  int64         `json:"until,omitempty"`
	Taker  string        `json:"taker,omitempty"`
	Lost   string        `json:"lost,omitempty"`
	Agent  hello         `json:"agent"`
	Offset time.Duration `json:"offset"`
}

// try is the name of the level that stands so; empty is none.
func (s *standing) try() string {
	if s == nil {
		return ""
	}
	return s.Try
}

// rank is 0 for agents that have a share, and 1 for others.
func (s *standing) rank(agent string) int {
	if s != nil && slices.ContainsFunc(s.Shares, func(h standingShare) bool { return h.Agent.ID == agent }) {
		return 0
	}
	return 1
}

// keepStanding writes down how the level stands. What NATS does not take now is
// written down later.
func (c *Coordinator) keepStanding(ctx context.Context, l *levelRun) {
	now := standing{Level: l.task.Index, Try: l.try, Epoch: l.epoch.UnixNano()}
	for _, s := range l.shares {
		now.Shares = append(now.Shares, standingShare{
			K: s.k, N: s.n, Taken: s.taken, Left: s.left, Until: s.until, Taker: s.taker, Lost: s.lost, Agent: s.by.hello, Offset: s.offset,
		})
	}
	text, err := json.Marshal(&now)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, askTimeout)
		defer cancel()
		_, err = c.js.Publish(ctx, standSubject(c.Run), text)
	}
	l.stale = err != nil
}

// readStanding learns how the last level stood, where somebody wrote it down.
func (c *Coordinator) readStanding(ctx context.Context) error {
	return c.persist(ctx, func(ctx context.Context) error {
		m, err := c.stream.GetLastMsgForSubject(ctx, standSubject(c.Run))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		c.found, err = parseStanding(m.Data)
		return err
	})
}

// parseStanding reads a standing.
func parseStanding(text []byte) (*standing, error) {
	var s standing
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("how the level stood cannot be read: %w", err)
	}
	for _, h := range s.Shares {
		if h.N < 1 || h.K < 0 || h.K >= h.N {
			return nil, errors.New("the level stood with a share that is none")
		}
	}
	if !plainName.MatchString(s.Try) || s.Try == "" {
		return nil, errors.New("the level that stood has no name")
	}
	return &s, nil
}

// UnderWay implements run.Agents.
func (c *Coordinator) UnderWay(ctx context.Context, level int) (bool, error) {
	if err := c.gather(ctx); err != nil {
		return false, err
	}
	return c.found != nil && c.found.Level == level, nil
}

// pickUp goes on with a level that a coordinator before this one has begun. All
// records are read again from the first on.
func (c *Coordinator) pickUp(ctx context.Context, t *run.Task) (err error) {
	was := c.found
	c.found = nil
	l := &levelRun{task: t, try: was.Try, epoch: monotonic(was.Epoch), taken: make(chan takeover, mostTakeovers), begun: true}
	for _, h := range was.Shares {
		s := c.newShare(l, h.K, h.N, c.memberOf(h.Agent))
		s.taken, s.left, s.until, s.taker, s.lost, s.offset = h.Taken, h.Left, h.Until, h.Taker, h.Lost, h.Offset
	}
	if err := c.persist(ctx, func(ctx context.Context) (err error) {
		l.behind, err = c.lastOf(ctx, triesOf(c.Run, l.try))
		return err
	}); err != nil {
		return fmt.Errorf("NATS does not say what it has of the level: %w", err)
	}
	l.known = append(l.known, metric.Reason{Code: "coordinator-restarted", Severity: metric.Note, Text: fmt.Sprintf(
		"the coordinator was started again %.1f s after the level had begun: agents went on meanwhile, and their records are here; the server's metrics were not read before",
		time.Since(l.epoch).Seconds())})
	if l.in, err = c.openIntake(ctx, l.try); err == nil {
		c.level = l
	}
	return err
}

// memberOf is an agent that had a share. One that is not there is not heard, and
// lost after a while.
func (c *Coordinator) memberOf(h hello) *member {
	for _, m := range c.members() {
		if m.ID == h.ID {
			m.Name = h.Name // as its records have it
			return m
		}
	}
	return &member{hello: h, heard: time.Now(), clock: clock{same: h.Boot != "" && h.Boot == bootID()}}
}

// lastOf is the number of the last message of some subjects; 0 is none.
func (c *Coordinator) lastOf(ctx context.Context, subjects string) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), askTimeout) // what has finished is wanted even if the run was stopped
	defer cancel()
	m, err := c.stream.GetLastMsgForSubject(ctx, subjects)
	switch {
	case errors.Is(err, jetstream.ErrMsgNotFound):
		return 0, nil
	case err != nil:
		return 0, err
	}
	return m.Sequence, nil
}

// goOn has the agents hear that somebody leads the level again, and begins shares
// that did not hear of their start.
func (c *Coordinator) goOn(ctx context.Context, l *levelRun) {
	var g sync.WaitGroup
	for _, s := range l.shares {
		if s.lost == "" && slices.Contains(c.members(), s.by) {
			g.Go(func() { c.startOne(ctx, l, s) })
		}
	}
	g.Wait()
}
