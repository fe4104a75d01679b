package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/session"
)

// takeOver prepares the rest of a lost share on another agent, which continues unfinished
// sessions. Records that the lost agent delivers from now on are ignored, because their
// requests are sent again.
func (c *Coordinator) takeOver(ctx context.Context, l *levelRun, s *share) {
	by := l.leastBusy(s.part)
	l.replaceTaker(s, by)
	if by == nil {
		return
	}
	done := l.progressCommands(s.part, time.Since(l.epoch))
	next := c.newShare(l, s.part, s.parts, by)
	next.takenOver = true
	next.offset, _ = by.offset()
	s.superseded, s.taker, s.lostAt = true, by.Name, time.Now()
	c.saveLevelState(l)
	go func() { l.takeovers <- takeover{next, c.handOver(ctx, l, next, done)} }()
}

// replaceTaker records that a new agent, or none, takes over for the agent of s, if that agent
// had sent nothing of the share.
func (l *levelRun) replaceTaker(s *share, by *member) {
	for _, before := range l.shares {
		if before.part != s.part || before.taker != s.member.Name || s.requests > 0 {
			continue
		}
		if before.taker = ""; by != nil {
			before.taker = by.Name
		}
	}
}

// handOver sends an agent the progress of a share and prepares the rest on it.
func (c *Coordinator) handOver(ctx context.Context, l *levelRun, s *share, done []command) error {
	for _, o := range done {
		o.Attempt, o.Share = l.attempt, s.id
		now, heard := c.sendUntilHeard(ctx, s.member, o)
		if !heard {
			return errors.New("the agent did not receive the progress of the share")
		}
		if now.Refused != "" {
			return s.member.refused(now)
		}
	}
	return c.awaitReady(ctx, s, s.prepareCommand(l))
}

// maxProgressBytes bounds the content of a cmdProgress. NATS accepts messages of 1 MiB by
// default, and encryption and base64 enlarge a command.
const maxProgressBytes = 200 << 10

// progressCommands returns the finished work of a part of the level, by all its agents, as
// commands.
func (l *levelRun) progressCommands(k int, now time.Duration) (out []command) {
	half := map[uint64]*partialSession{}
	var done []uint64
	for _, s := range l.shares {
		if s.part != k {
			continue
		}
		done = append(done, s.done...)
		for id, h := range s.partial {
			if half[id] == nil {
				half[id] = &partialSession{Partial: session.Partial{ID: id}, turns: h.turns}
			}
			half[id].Finished = append(half[id].Finished, h.Finished...)
		}
	}
	slices.Sort(done)
	for piece := range slices.Chunk(slices.Compact(done), maxProgressBytes/20) { // a number has at most 20 digits
		out = append(out, command{Kind: cmdProgress, Skip: piece})
	}
	last, size := command{Kind: cmdProgress, Elapsed: now}, 0
	for _, id := range slices.Sorted(maps.Keys(half)) {
		if len(half[id].Finished) == half[id].turns {
			continue
		}
		for _, o := range half[id].Finished {
			last.Partial = append(last.Partial, session.Partial{ID: id, Finished: []session.FinishedTurn{o}})
			if size += 100 + len(o.Answer.Text); size > maxProgressBytes {
				out = append(out, last)
				last, size = command{Kind: cmdProgress, Elapsed: now}, 0
			}
		}
	}
	return append(out, last)
}

// A takeover is a share that another agent has prepared, or failed to prepare.
type takeover struct {
	*share
	err error
}

// maxTakeovers is the capacity of the queue of takeovers.
const maxTakeovers = 1000

// finishTakeover starts a share that was taken over. If the agent failed to prepare it,
// another agent takes over.
func (c *Coordinator) finishTakeover(ctx context.Context, l *levelRun, t takeover) {
	switch {
	case t.lossReason != "": // the agent was lost meanwhile, and another one has the share
		return
	case t.err != nil:
		t.lossReason = "it could not take the share over: " + t.err.Error()
		c.saveLevelState(l)
		c.Say(fmt.Sprintf("Agent %s could not take over share %d: %v.", t.member.Name, t.part+1, t.err))
		if ctx.Err() == nil {
			c.takeOver(ctx, l, t.share)
		}
		return
	}
	c.Say(fmt.Sprintf("Agent %s takes over share %d.", t.member.Name, t.part+1))
	go c.startShare(ctx, l, t.share)
}

// leastBusy returns the agent with the fewest shares that has not failed with this part
// before, or nil. An agent whose coordinator was silent has not failed.
func (l *levelRun) leastBusy(k int) *member {
	var best *member
	least := 0
	for _, s := range l.shares {
		failed := func(other *share) bool { return other.member == s.member && other.part == k && other.isLost() }
		if s.isLost() || s.member.lost.Load() || s.member.hasStopped() || slices.ContainsFunc(l.shares, failed) {
			continue
		}
		busy := 0
		for _, other := range l.shares {
			if other.member == s.member && !other.ended {
				busy++
			}
		}
		if best == nil || busy < least {
			best, least = s.member, busy
		}
	}
	return best
}

// isLost reports whether the agent cannot send the share any more.
func (s *share) isLost() bool { return s.lossReason != "" && !s.final.Orphaned }
