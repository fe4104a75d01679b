package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"tacho/session"
)

// takeOver has another agent make ready what is left of a lost one's share, with the
// sessions that it had begun. What the lost one hands over from now on is left out: it
// is sent again.
func (c *Coordinator) takeOver(ctx context.Context, l *levelRun, s *share) {
	by := l.freest(s.k)
	l.passOn(s, by)
	if by == nil {
		return
	}
	done := l.past(s.k, time.Since(l.epoch))
	next := c.newShare(l, s.k, s.n, by)
	next.taken = true
	next.offset, _ = by.offset()
	s.left, s.until, s.taker = true, s.at, by.Name
	c.keepStanding(ctx, l)
	go func() { l.taken <- takeover{next, c.handOn(ctx, l, next, done)} }()
}

// passOn notes that another agent, or nobody, takes over what the agent of s was to,
// if it sent nothing of it.
func (l *levelRun) passOn(s *share, by *member) {
	for _, before := range l.shares {
		if before.k != s.k || before.taker != s.by.Name || s.requests > 0 {
			continue
		}
		if before.taker = ""; by != nil {
			before.taker = by.Name
		}
	}
}

// handOn tells an agent what is done of a share, and has it make the rest ready.
func (c *Coordinator) handOn(ctx context.Context, l *levelRun, s *share, done []order) error {
	for _, o := range done {
		o.Try, o.Share = l.try, s.id
		now, heard := c.insist(ctx, s.by, o)
		if !heard {
			return errors.New("it did not hear what is done of it")
		}
		if now.Refused != "" {
			return s.by.refused(now)
		}
	}
	return c.ready(ctx, s, s.prepare(l))
}

// pieceBytes is about how much an order to recall holds: NATS takes a message of a
// megabyte, unless it is told otherwise, and an order is sealed and written as text.
const pieceBytes = 200 << 10

// past is what is done of a part of the level, whoever did it, as orders to recall
// it.
func (l *levelRun) past(k int, now time.Duration) (out []order) {
	half := map[uint64]*halfDone{}
	var done []uint64
	for _, s := range l.shares {
		if s.k != k {
			continue
		}
		done = append(done, s.done...)
		for id, h := range s.half {
			if half[id] == nil {
				half[id] = &halfDone{Begun: session.Begun{ID: id}, turns: h.turns}
			}
			half[id].Over = append(half[id].Over, h.Over...)
		}
	}
	slices.Sort(done)
	for piece := range slices.Chunk(slices.Compact(done), pieceBytes/20) { // a number has at most so many digits
		out = append(out, order{Kind: recall, Skip: piece})
	}
	last, size := order{Kind: recall, Now: now}, 0
	for _, id := range slices.Sorted(maps.Keys(half)) {
		if len(half[id].Over) == half[id].turns {
			continue
		}
		for _, o := range half[id].Over {
			last.Begun = append(last.Begun, session.Begun{ID: id, Over: []session.Over{o}})
			if size += 100 + len(o.Answer.Text); size > pieceBytes {
				out = append(out, last)
				last, size = order{Kind: recall, Now: now}, 0
			}
		}
	}
	return append(out, last)
}

// A takeover is a share that another agent has made ready, or could not.
type takeover struct {
	*share
	err error
}

// mostTakeovers bounds those that wait to be looked at.
const mostTakeovers = 1000

// takenOver starts a share that was taken over. Where the agent could not, another
// may.
func (c *Coordinator) takenOver(ctx context.Context, l *levelRun, t takeover) {
	switch {
	case t.lost != "": // its agent was lost meanwhile, and the share given to another
		return
	case t.err != nil:
		t.lost, l.stale = "it could not take the share over: "+t.err.Error(), true
		c.Say(fmt.Sprintf("Agent %s could not take over share %d: %v.", t.by.Name, t.k+1, t.err))
		if ctx.Err() == nil {
			c.takeOver(ctx, l, t.share)
		}
		return
	}
	c.Say(fmt.Sprintf("Agent %s takes over share %d.", t.by.Name, t.k+1))
	go c.startOne(ctx, l, t.share)
}

// freest is the agent that has the least to do, of those that did not fail with this
// part of the level before; nil if none is left.
func (l *levelRun) freest(k int) *member {
	var best *member
	least := 0
	for _, s := range l.shares {
		failed := func(other *share) bool { return other.by == s.by && other.k == k && other.lost != "" }
		if s.lost != "" || s.by.gone || s.by.hasLeft() || slices.ContainsFunc(l.shares, failed) {
			continue
		}
		busy := 0
		for _, other := range l.shares {
			if other.by == s.by && !other.ended {
				busy++
			}
		}
		if best == nil || busy < least {
			best, least = s.by, busy
		}
	}
	return best
}
