package cluster

import (
	"context"
	"fmt"
	"slices"
)

// takeOver has another agent make ready what is left of a lost one's share. What
// the lost one hands over from now on is left out: it is sent again.
func (c *Coordinator) takeOver(ctx context.Context, l *levelRun, s *share) {
	by := l.freest()
	if by == nil {
		return
	}
	next := &share{id: len(l.shares), k: s.k, n: s.n, by: by, closed: s.closed, taken: true}
	next.skip = slices.Concat(s.skip, s.done)
	slices.Sort(next.skip)
	next.skip = slices.Compact(next.skip)
	next.offset, _ = by.offset()
	s.left, s.until, s.taker = true, s.at, by.Name
	l.shares = append(l.shares, next)
	c.keepStanding(ctx, l)
	go func() { l.taken <- takeover{next, c.ready(ctx, next, next.prepare(l))} }()
}

// A takeover is a share that another agent has made ready, or could not.
type takeover struct {
	*share
	err error
}

// mostTakeovers bounds those that wait to be looked at.
const mostTakeovers = 1000

// takenOver starts a share that was taken over.
func (c *Coordinator) takenOver(ctx context.Context, l *levelRun, t takeover) {
	if t.err != nil {
		t.lost = "it could not take the share over: " + t.err.Error()
		return
	}
	c.Say(fmt.Sprintf("Agent %s takes over share %d.", t.by.Name, t.k+1))
	go c.startOne(ctx, l, t.share)
}

// freest is the agent that has the least to do; nil if none is left.
func (l *levelRun) freest() *member {
	var best *member
	least := 0
	for _, s := range l.shares {
		if s.lost != "" || s.by.gone {
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
