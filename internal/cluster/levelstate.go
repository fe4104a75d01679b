package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
)

// A levelState lets another coordinator continue the level if this one dies. The journal contains the state and the
// received records.
type levelState struct {
	Level   int          `json:"level"`
	Attempt string       `json:"try"`
	Epoch   int64        `json:"epoch"` // nanoseconds since 1970, by the coordinator's clock
	Shares  []shareState `json:"shares"`
}

// rank returns 0 for agents with a share and 1 for others.
func (s *levelState) rank(agent string) int {
	if slices.ContainsFunc(s.Shares, func(h shareState) bool { return h.Agent.ID == agent }) {
		return 0
	}
	return 1
}

// saveLevelState adds the state of the level to the journal.
func (c *Coordinator) saveLevelState(l *levelRun) {
	now := levelState{Level: l.task.Index, Attempt: l.attempt, Epoch: l.epoch.UnixNano()}
	for _, s := range l.shares {
		now.Shares = append(now.Shares, s.shareState)
	}
	_ = c.journal.add(entry{State: &now}) // check returns the error
}

// check returns an error if a state is invalid.
func (s *levelState) check() error {
	for _, h := range s.Shares {
		if h.Parts < 1 || h.Part < 0 || h.Part >= h.Parts {
			return errors.New("the stored state of the level has an invalid share")
		}
	}
	if !plainName.MatchString(s.Attempt) || s.Attempt == "" {
		return errors.New("the stored state of the level has no name")
	}
	return nil
}

// UnderWay implements run.Agents.
func (c *Coordinator) UnderWay(ctx context.Context, level int) (bool, error) {
	err := c.assemble(ctx)
	return err == nil && c.resumeState.Attempt != "" && c.resumeState.Level == level, err
}

// resumeLevel continues a level of an earlier coordinator.
func (c *Coordinator) resumeLevel(t *run.Task) {
	was := c.resumeState
	c.resumeState = levelState{}
	l := newLevelRun(t, was.Attempt)
	l.epoch, l.resumed, l.lease = monotonic(was.Epoch), true, c.lease(len(was.Shares))
	for _, h := range was.Shares {
		c.newShare(l, h.Part, h.Parts, c.memberOf(h.Agent)).shareState = h
	}
	l.reasons = append(l.reasons, metric.Reason{Code: "coordinator-restarted", Severity: metric.Note, Text: fmt.Sprintf(
		"the coordinator restarted %s into the level, so server metrics before that are missing, but no records: repeat the level if they matter",
		metric.Duration(1e3*time.Since(l.epoch).Seconds()))})
	c.level = l
}

// memberOf returns the agent that has a share. An agent that did not answer becomes lost after the timeout.
func (c *Coordinator) memberOf(h agentInfo) *member {
	for _, m := range c.members() {
		if m.ID == h.ID {
			m.Name = h.Name // as in its records
			return m
		}
	}
	m := newMember(h)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.agents = append(c.agents, m)
	return m
}

// resumeShares stores the records in the journal, contacts the agents again, and starts shares whose start command was
// lost.
func (c *Coordinator) resumeShares(ctx context.Context, l *levelRun, d *run.Drive) error {
	err := c.journal.read(func(e entry) error {
		if e.State != nil || e.Share < 0 || e.Share >= len(l.shares) {
			return nil
		}
		return l.shares[e.Share].add(e.End, e.Body, d.Sink)
	})
	if err == nil {
		each(l.shares, func(s *share) {
			if s.Lost == "" {
				c.startShare(ctx, l, s)
			}
		})
	}
	return err
}
