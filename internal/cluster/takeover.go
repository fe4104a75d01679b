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
	pieces, err := done.commands()
	for _, o := range pieces {
		o.Attempt, o.Share = l.attempt, s.id
		now, answered := c.sendUntilAnswered(ctx, s.member, o)
		switch {
		case !answered:
			return errors.New("the agent did not receive the progress of the share")
		case now.Refused != "":
			return s.member.refused(now)
		}
	}
	if err != nil {
		return err
	}
	o := s.prepareCommand(l)
	o.Piece = len(pieces)
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

// commands returns the progress in pieces.
func (p *shareProgress) commands() (out []command, err error) {
	text, err := json.Marshal(p)
	for piece := range slices.Chunk(text, maxProgressBytes) {
		out = append(out, command{Kind: cmdProgress, Piece: len(out), Progress: piece})
	}
	return out, err
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
		busy, failed := 0, s.isLost() || s.member.lost.Load() || s.member.hasStopped()
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

// progressByShare holds the pieces of the progress of shares that the agent will take over.
type progressByShare map[shareKey]map[int][]byte

type shareKey struct {
	try   string
	share int
}

// add keeps a piece. It may arrive twice.
func (all *progressByShare) add(o *command) {
	if *all == nil {
		*all = progressByShare{}
	}
	name := shareKey{o.Attempt, o.Share}
	if (*all)[name] == nil {
		(*all)[name] = map[int][]byte{}
	}
	(*all)[name][o.Piece] = o.Progress
}

// take returns and removes the progress of a command's share. It is nil if the share is new.
func (all progressByShare) take(o *command) (*shareProgress, error) {
	if o.Piece == 0 {
		return nil, nil
	}
	name := shareKey{o.Attempt, o.Share}
	var text []byte
	for i := range o.Piece {
		text = append(text, all[name][i]...)
	}
	delete(all, name)
	p := &shareProgress{}
	return p, json.Unmarshal(text, p)
}
