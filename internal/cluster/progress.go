package cluster

import (
	"maps"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/session"
)

// progressByShare holds the progress of shares that the agent will take over, by attempt and
// number.
type progressByShare map[shareKey]*shareProgress

type shareKey struct {
	try   string
	share int
}

// shareProgress lists the finished work of a share.
type shareProgress struct {
	skip    map[uint64]bool
	turns   map[uint64]map[int]session.FinishedTurn // by session and turn, because a command may arrive twice
	elapsed time.Duration
}

// add adds the content of one command.
func (all *progressByShare) add(o *command) {
	if *all == nil {
		*all = progressByShare{}
	}
	name := shareKey{o.Attempt, o.Share}
	r := (*all)[name]
	if r == nil {
		r = &shareProgress{skip: map[uint64]bool{}, turns: map[uint64]map[int]session.FinishedTurn{}}
		(*all)[name] = r
	}
	for _, id := range o.Skip {
		r.skip[id] = true
	}
	for _, b := range o.Partial {
		if r.turns[b.ID] == nil {
			r.turns[b.ID] = map[int]session.FinishedTurn{}
		}
		for _, over := range b.Finished {
			r.turns[b.ID][over.Turn] = over
		}
	}
	r.elapsed = max(r.elapsed, o.Elapsed)
}

// take returns and removes the progress of a command's share, or returns nil.
func (all progressByShare) take(o *command) *shareProgress {
	name := shareKey{o.Attempt, o.Share}
	r := all[name]
	delete(all, name)
	return r
}

// partialSessions returns the unfinished sessions in order.
func (r *shareProgress) partialSessions() (out []session.Partial) {
	for _, id := range slices.Sorted(maps.Keys(r.turns)) {
		b := session.Partial{ID: id}
		for _, turn := range slices.Sorted(maps.Keys(r.turns[id])) {
			b.Finished = append(b.Finished, r.turns[id][turn])
		}
		out = append(out, b)
	}
	return out
}
