package cluster

import (
	"maps"
	"slices"
	"time"

	"tacho/session"
)

// recalls are what an agent is told of shares that it is to take over, by the names
// of their tries and their numbers.
type recalls map[shareName]*recalled

type shareName struct {
	try   string
	share int
}

// recalled is what is done of a share.
type recalled struct {
	skip map[uint64]bool
	half map[uint64]map[int]session.Over // by session and turn, for a piece may come twice
	now  time.Duration
}

// add takes a piece.
func (all *recalls) add(o *order) {
	if *all == nil {
		*all = recalls{}
	}
	name := shareName{o.Try, o.Share}
	r := (*all)[name]
	if r == nil {
		r = &recalled{skip: map[uint64]bool{}, half: map[uint64]map[int]session.Over{}}
		(*all)[name] = r
	}
	for _, id := range o.Skip {
		r.skip[id] = true
	}
	for _, b := range o.Begun {
		if r.half[b.ID] == nil {
			r.half[b.ID] = map[int]session.Over{}
		}
		for _, over := range b.Over {
			r.half[b.ID][over.Turn] = over
		}
	}
	r.now = max(r.now, o.Now)
}

// of is what was told of the share of an order, which is told once; nil is nothing.
func (all recalls) of(o *order) *recalled {
	name := shareName{o.Try, o.Share}
	r := all[name]
	delete(all, name)
	return r
}

// begun are the sessions that are under way, in order.
func (r *recalled) begun() (out []session.Begun) {
	for _, id := range slices.Sorted(maps.Keys(r.half)) {
		b := session.Begun{ID: id}
		for _, turn := range slices.Sorted(maps.Keys(r.half[id])) {
			b.Over = append(b.Over, r.half[id][turn])
		}
		out = append(out, b)
	}
	return out
}
