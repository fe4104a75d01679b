package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/session"
)

// takeOver prepares the rest of a lost share on another agent, which continues unfinished sessions. Records that the lost
// agent delivers from now on are ignored, because their requests are sent again.
func (c *Coordinator) takeOver(ctx context.Context, l *levelRun, s *share) {
	by := l.leastBusy(s.Part)
	if by == nil {
		return
	}
	done := l.progress(s.Part, time.Since(l.epoch))
	next := c.newShare(l, s.Part, s.Parts, by)
	next.Offset, _ = by.offset()
	c.saveLevelState(l)
	go func() {
		err := c.handOver(ctx, l, next, done)
		l.takeovers <- func() { c.finishTakeover(ctx, l, next, err) }
	}()
}

// handOver sends an agent the progress of a share in pieces, and prepares the rest on it.
func (c *Coordinator) handOver(ctx context.Context, l *levelRun, s *share, done *shareProgress) error {
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	o := s.prepareCommand(l)
	for piece := range slices.Chunk(text, maxProgressBytes) {
		now, answered := c.sendUntilAnswered(ctx, s.member, command{Kind: cmdProgress, Attempt: l.attempt, Share: s.id, Offset: o.Offset, Progress: piece})
		switch {
		case !answered:
			return errors.New("the agent did not receive the progress of the share")
		case now.Refused != "":
			return s.member.refused(now)
		}
		o.Offset += len(piece)
	}
	return c.awaitReady(ctx, s, o)
}

// maxProgressBytes bounds the content of a cmdProgress. NATS accepts messages of 1 MiB by default, and JSON enlarges bytes.
const maxProgressBytes = 512 << 10

// shareProgress lists the finished work of a share.
type shareProgress struct {
	Skip    []uint64          `json:"skip,omitempty"`  // sessions that finished or started
	Partial []session.Partial `json:"begun,omitempty"` // finished turns of unfinished sessions
	Elapsed time.Duration     `json:"now"`             // since the start of the level
}

// progress returns the finished work of a part of the level, by all its agents.
func (l *levelRun) progress(k int, now time.Duration) *shareProgress {
	p := &shareProgress{Elapsed: now}
	half := map[uint64]*partialSession{}
	for _, s := range l.shares {
		if s.Part != k {
			continue
		}
		p.Skip = append(p.Skip, s.done...)
		for id, h := range s.partial {
			if half[id] == nil {
				half[id] = &partialSession{session.Partial{ID: id}, h.turns}
			}
			half[id].Finished = append(half[id].Finished, h.Finished...)
		}
	}
	slices.Sort(p.Skip)
	p.Skip = slices.Compact(p.Skip)
	for _, id := range slices.Sorted(maps.Keys(half)) {
		if h := half[id]; len(h.Finished) < h.turns {
			slices.SortFunc(h.Finished, func(a, b session.FinishedTurn) int { return a.Turn - b.Turn })
			p.Partial = append(p.Partial, h.Partial)
		}
	}
	return p
}

// finishTakeover starts a share that was taken over. If the agent failed to prepare it, another agent takes over.
func (c *Coordinator) finishTakeover(ctx context.Context, l *levelRun, s *share, err error) {
	switch {
	case s.Lost != "": // the agent was lost meanwhile, and another one has the share
	case err != nil:
		s.lose(l, "it could not take the share over: "+err.Error())
		c.saveLevelState(l)
		c.Say(fmt.Sprintf("Agent %s could not take over share %d: %v.", s.member.Name, s.Part+1, err))
		if ctx.Err() == nil {
			c.takeOver(ctx, l, s)
		}
	default:
		c.Say(fmt.Sprintf("Agent %s takes over share %d.", s.member.Name, s.Part+1))
		go c.startShare(ctx, l, s)
	}
}

// leastBusy returns the agent with the fewest shares that has not failed with this part before, or nil. An agent whose
// coordinator was silent has not failed.
func (l *levelRun) leastBusy(k int) *member {
	var best *member
	least := 0
	for _, s := range l.shares {
		busy, failed := 0, s.isLost() || s.member.lost.Load() || s.member.stopped.Load()
		for _, other := range l.shares {
			if other.member == s.member {
				failed = failed || other.Part == k && other.isLost()
				if !other.ended {
					busy++
				}
			}
		}
		if !failed && (best == nil || busy < least) {
			best, least = s.member, busy
		}
	}
	return best
}

// addProgress stores a piece of the progress of a share that the agent will take over. A piece may arrive again.
func (a *agent) addProgress(o *command) error {
	before := a.progress[o.Share]
	if o.Offset < 0 || o.Offset > len(before) {
		return errors.New("a piece of the progress is missing")
	}
	if a.progress == nil {
		a.progress = map[int][]byte{}
	}
	a.progress[o.Share] = append(before[:o.Offset], o.Progress...)
	return nil
}

// takeProgress returns and removes the progress of a command's share. It is nil if the share is new.
func (a *agent) takeProgress(o *command) (*shareProgress, error) {
	if o.Offset == 0 {
		return nil, nil
	}
	p, text := &shareProgress{}, a.progress[o.Share]
	delete(a.progress, o.Share)
	return p, json.Unmarshal(text, p)
}
