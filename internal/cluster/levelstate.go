package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/metric"
)

// A levelState lets another coordinator continue the level if this one dies. It is stored in
// the stream of the records. Agents continue to send, and the stream has all records of the
// level.
type levelState struct {
	Level   int          `json:"level"`
	Attempt string       `json:"try"`
	Epoch   int64        `json:"epoch"` // nanoseconds since 1970, by the coordinator's clock
	Shares  []shareState `json:"shares"`
}

// A shareState holds the state of a share that its records do not contain.
type shareState struct {
	Part       int           `json:"k"`
	Parts      int           `json:"n"`
	TakenOver  bool          `json:"taken,omitempty"`
	Superseded bool          `json:"left,omitempty"`
	Cutoff     int64         `json:"until,omitempty"`
	Taker      string        `json:"taker,omitempty"`
	Lost       string        `json:"lost,omitempty"`
	Agent      agentInfo     `json:"agent"`
	Offset     time.Duration `json:"offset"`
}

// attempt returns the name of the attempt, or "" for no state.
func (s *levelState) attempt() string {
	if s == nil {
		return ""
	}
	return s.Attempt
}

// rank returns 0 for agents with a share and 1 for others.
func (s *levelState) rank(agent string) int {
	if s != nil && slices.ContainsFunc(s.Shares, func(h shareState) bool { return h.Agent.ID == agent }) {
		return 0
	}
	return 1
}

// saveLevelState stores the state of the level. If NATS does not accept it now, a later check
// stores it.
func (c *Coordinator) saveLevelState(ctx context.Context, l *levelRun) {
	now := levelState{Level: l.task.Index, Attempt: l.attempt, Epoch: l.epoch.UnixNano()}
	for _, s := range l.shares {
		now.Shares = append(now.Shares, shareState{
			Part: s.part, Parts: s.parts, TakenOver: s.takenOver, Superseded: s.superseded, Cutoff: s.cutoff, Taker: s.taker, Lost: s.lossReason, Agent: s.member.agentInfo, Offset: s.offset,
		})
	}
	text, err := json.Marshal(&now)
	if err == nil {
		ctx, cancel := context.WithTimeout(ctx, requestTimeout)
		defer cancel()
		m := nats.NewMsg(levelStateSubject(c.Run))
		m.Data = text
		if err = c.Identity.sign(m); err == nil {
			_, err = c.js.PublishMsg(ctx, m)
		}
	}
	l.unsaved = err != nil
}

// loadLevelState loads the state that an earlier coordinator stored.
func (c *Coordinator) loadLevelState(ctx context.Context) error {
	return c.retry(ctx, func(ctx context.Context) error {
		m, err := c.stream.GetLastMsgForSubject(ctx, levelStateSubject(c.Run))
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			return nil
		} else if err != nil {
			return err
		}
		if !signedBy(c.Identity.Public(), m.Subject, m.Header, m.Data) {
			return errors.New("the stored state of the level is not signed with this coordinator's key: resume with the key that the run was started with")
		}
		c.resumeState, err = parseLevelState(m.Data)
		return err
	})
}

// parseLevelState decodes and checks a state.
func parseLevelState(text []byte) (*levelState, error) {
	var s levelState
	if err := json.Unmarshal(text, &s); err != nil {
		return nil, fmt.Errorf("decode the stored state of the level: %w", err)
	}
	for _, h := range s.Shares {
		if h.Parts < 1 || h.Part < 0 || h.Part >= h.Parts {
			return nil, errors.New("the stored state of the level has an invalid share")
		}
	}
	if !plainName.MatchString(s.Attempt) || s.Attempt == "" {
		return nil, errors.New("the stored state of the level has no name")
	}
	return &s, nil
}

// UnderWay implements run.Agents.
func (c *Coordinator) UnderWay(ctx context.Context, level int) (bool, error) {
	if err := c.assemble(ctx); err != nil {
		return false, err
	}
	return c.resumeState != nil && c.resumeState.Level == level, nil
}

// resumeLevel continues a level of an earlier coordinator. It reads all records again from the
// first.
func (c *Coordinator) resumeLevel(ctx context.Context, t *run.Task) (err error) {
	was := c.resumeState
	c.resumeState = nil
	l := &levelRun{task: t, attempt: was.Attempt, epoch: monotonic(was.Epoch), takeovers: make(chan takeover, maxTakeovers), resumed: true}
	for _, h := range was.Shares {
		s := c.newShare(l, h.Part, h.Parts, c.memberOf(h.Agent))
		s.takenOver, s.superseded, s.cutoff, s.taker, s.lossReason, s.offset = h.TakenOver, h.Superseded, h.Cutoff, h.Taker, h.Lost, h.Offset
	}
	if err := c.retry(ctx, func(ctx context.Context) (err error) {
		l.resumeSeq, err = c.lastSeq(ctx, levelSubjects(c.Run, l.attempt))
		return err
	}); err != nil {
		return fmt.Errorf("query the records of the level in NATS: %w", err)
	}
	l.reasons = append(l.reasons, metric.Reason{Code: "coordinator-restarted", Severity: metric.Note, Text: fmt.Sprintf(
		"the coordinator restarted %.1f s into the level, so server metrics before that are missing, but no records: repeat the level if they matter",
		time.Since(l.epoch).Seconds())})
	if l.intake, err = c.openIntake(ctx, l.attempt); err == nil {
		c.level = l
	}
	return err
}

// memberOf returns the agent that has a share. An agent that did not answer becomes lost after
// the timeout.
func (c *Coordinator) memberOf(h agentInfo) *member {
	for _, m := range c.members() {
		if m.ID == h.ID {
			m.Name = h.Name // as in its records
			return m
		}
	}
	return &member{agentInfo: h, lastHeard: time.Now(), clock: clock{same: h.Boot != "" && h.Boot == bootID()}}
}

// lastSeq returns the sequence number of the last message of some subjects, or 0.
func (c *Coordinator) lastSeq(ctx context.Context, subjects string) (uint64, error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout) // a stopped run still needs finished records
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

// resumeShares contacts the agents again, and starts shares whose start command was lost.
func (c *Coordinator) resumeShares(ctx context.Context, l *levelRun) {
	var g sync.WaitGroup
	for _, s := range l.shares {
		if s.lossReason == "" && slices.Contains(c.members(), s.member) {
			g.Go(func() { c.startShare(ctx, l, s) })
		}
	}
	g.Wait()
}
