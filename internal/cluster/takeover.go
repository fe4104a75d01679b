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

// takeOver prepares the rest of a lost share on another agent, which continues unfinished sessions. Records that the lost
// agent delivers from now on are ignored, because their requests are sent again.
func (c *Coordinator) takeOver(ctx context.Context, l *levelRun, s *share) {
	by := l.leastBusy(s.Part)
	if by == nil {
		return
	}
	done := l.progressCommands(s.Part, time.Since(l.epoch))
	next := c.newShare(l, s.Part, s.Parts, by)
	next.Offset, _ = by.offset()
	c.saveLevelState(l)
	go func() { l.takeovers <- takeover{next, c.handOver(ctx, l, next, done)} }()
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

// maxProgressBytes bounds the content of a cmdProgress. NATS accepts messages of 1 MiB by default, and JSON enlarges
// answers.
const maxProgressBytes = 200 << 10

// progressCommands returns the finished work of a part of the level, by all its agents, as commands.
func (l *levelRun) progressCommands(k int, now time.Duration) (out []command) {
	half := map[uint64]*partialSession{}
	var done []uint64
	for _, s := range l.shares {
		if s.Part != k {
			continue
		}
		done = append(done, s.done...)
		for id, h := range s.partial {
			if half[id] == nil {
				half[id] = &partialSession{turns: h.turns}
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

// finishTakeover starts a share that was taken over. If the agent failed to prepare it, another agent takes over.
func (c *Coordinator) finishTakeover(ctx context.Context, l *levelRun, t takeover) {
	switch {
	case t.Lost != "": // the agent was lost meanwhile, and another one has the share
	case t.err != nil:
		t.lose(l, "it could not take the share over: "+t.err.Error())
		c.saveLevelState(l)
		c.Say(fmt.Sprintf("Agent %s could not take over share %d: %v.", t.member.Name, t.Part+1, t.err))
		if ctx.Err() == nil {
			c.takeOver(ctx, l, t.share)
		}
	default:
		c.Say(fmt.Sprintf("Agent %s takes over share %d.", t.member.Name, t.Part+1))
		go c.startShare(ctx, l, t.share)
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

// progressByShare holds the commands with the progress of shares that the agent will take over.
type progressByShare map[shareKey][]*command

type shareKey struct {
	try   string
	share int
}

// shareProgress lists the finished work of a share.
type shareProgress struct {
	skip    map[uint64]bool
	partial []session.Partial // unfinished sessions
	elapsed time.Duration
}

// add keeps a command.
func (all *progressByShare) add(o *command) {
	if *all == nil {
		*all = progressByShare{}
	}
	name := shareKey{o.Attempt, o.Share}
	(*all)[name] = append((*all)[name], o)
}

// take returns and removes the progress of a command's share, or returns nil. A command may have arrived twice.
func (all progressByShare) take(o *command) *shareProgress {
	name := shareKey{o.Attempt, o.Share}
	pieces := all[name]
	if pieces == nil {
		return nil
	}
	delete(all, name)
	r := &shareProgress{skip: map[uint64]bool{}}
	turns := map[uint64]map[int]session.FinishedTurn{}
	for _, piece := range pieces {
		r.elapsed = max(r.elapsed, piece.Elapsed)
		for _, id := range piece.Skip {
			r.skip[id] = true
		}
		for _, b := range piece.Partial {
			if turns[b.ID] == nil {
				turns[b.ID] = map[int]session.FinishedTurn{}
			}
			for _, over := range b.Finished {
				turns[b.ID][over.Turn] = over
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(turns)) {
		b := session.Partial{ID: id}
		for _, turn := range slices.Sorted(maps.Keys(turns[id])) {
			b.Finished = append(b.Finished, turns[id][turn])
		}
		r.partial = append(r.partial, b)
	}
	return r
}
