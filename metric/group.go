package metric

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho"
)

// A Group summarizes records with the same turn number or the same value of a label.
type Group struct {
	By        string           `json:"by"` // "turn", or the key of the label
	Value     string           `json:"value"`
	Requests  int              `json:"requests"`
	Completed int              `json:"completed"`
	Failed    int              `json:"failed"`
	Input     int              `json:"input_tokens"` // of completed requests
	Output    int              `json:"output_tokens"`
	Cached    int              `json:"cached_tokens"` // part of Input, as reported by the server
	Dists     `json:"metrics"` // one for each of Classic, in order
}

// CachedShare returns the share of the input from the server's cache, or nil if there is no input.
func (g *Group) CachedShare() *float64 {
	if g.Input == 0 {
		return nil
	}
	share := float64(g.Cached) / float64(g.Input)
	return &share
}

// Keys of groups. The key of a label is prefixed by labelKey.
const (
	turnKey     = "turn"
	endpointKey = "endpoint"
	labelKey    = "label "
)

// maxGroups is the largest number of values of a label that is split into groups.
const maxGroups = 1000

// A groupKey identifies a group.
type groupKey struct{ by, value string }

// mostInGroup is the number of observations of a metric kept individually in a group. It is small
// because there may be many groups.
const mostInGroup = 1 << 14

// groupLimit returns the limit for the groups of p.
func (p *part) groupLimit() int { return min(cmp.Or(p.digests[0].Limit, mostInGroup), mostInGroup) }

// parts splits the records by turn, by server and by the value of each label.
type parts struct {
	by      map[groupKey]*part
	keys    []groupKey      // keys of the record being added
	values  map[string]int  // number of groups by each key
	tooMany map[string]bool // keys with too many values
	turns   bool            // there are conversations; until then all records are first turns
}

// add adds a record. v are its values of the classic metrics, and whole is the sum of all records
// before it.
func (p *parts) add(r *tacho.Record, v values, whole *part) {
	p.splitTurns(r.Turn > 0, whole)
	keys := append(p.keys[:0], groupKey{endpointKey, r.Endpoint})
	if p.turns {
		keys = append(keys, groupKey{turnKey, strconv.Itoa(r.Turn + 1)})
	}
	for _, l := range r.Labels {
		keys = append(keys, groupKey{labelKey + l.Key, l.Value})
	}
	p.keys = keys
	for _, k := range keys {
		if to := p.part(k); to != nil {
			to.add(r, v, whole.groupLimit())
		}
	}
}

// splitTurns starts to split by turn if there are later turns.
func (p *parts) splitTurns(there bool, whole *part) {
	if there && !p.turns {
		p.turns = true
		p.firstTurns(whole)
	}
}

// firstTurns adds records that are all first turns.
func (p *parts) firstTurns(all *part) {
	if all.Requests == 0 {
		return
	}
	if to := p.part(groupKey{turnKey, "1"}); to != nil {
		to.ready(classicCount, all.groupLimit())
		to.merge(&part{Counts: all.Counts, tokens: all.tokens, digests: all.digests[:classicCount]})
	}
}

// part returns the part of a group, or nil if there are too many groups.
func (p *parts) part(k groupKey) *part {
	if p.tooMany[k.by] {
		return nil
	}
	if found := p.by[k]; found != nil {
		return found
	}
	if p.by == nil {
		p.by, p.values, p.tooMany = map[groupKey]*part{}, map[string]int{}, map[string]bool{}
	}
	if p.values[k.by]++; p.values[k.by] > maxGroups {
		p.dropGroups(k.by)
		return nil
	}
	p.by[k] = &part{}
	return p.by[k]
}

// dropGroups stops splitting by a key with too many values.
func (p *parts) dropGroups(by string) {
	p.tooMany[by] = true
	maps.DeleteFunc(p.by, func(k groupKey, _ *part) bool { return k.by == by })
}

// merge merges o. whole and others are the sums before they are merged.
func (p *parts) merge(o *parts, whole, others *part) {
	p.splitTurns(o.turns, whole)
	if p.turns && !o.turns {
		p.firstTurns(others)
	}
	for k, from := range o.by {
		if to := p.part(k); to != nil {
			to.merge(from)
		}
	}
	for by := range o.tooMany {
		p.dropGroups(by)
	}
}

// groups returns the groups by turn, if there are conversations, and by every label with more than one
// value.
func (p *parts) groups(percentiles []float64) []Group {
	var out []Group
	for k, part := range p.by {
		label, ok := strings.CutPrefix(k.by, labelKey)
		if !ok && (k.by != turnKey || !p.turns) || p.values[k.by] < 2 {
			continue
		}
		out = append(out, Group{
			By: label, Value: k.value, Requests: part.Requests, Completed: part.Completed, Failed: part.Failed,
			Input: part.tokens.Input, Output: part.tokens.Output, Cached: part.tokens.Cached, Dists: part.summarize(Classic, percentiles, nil, balanced{}),
		})
	}
	slices.SortFunc(out, func(a, b Group) int {
		if a.By == turnKey && b.By == turnKey {
			x, _ := strconv.Atoi(a.Value)
			y, _ := strconv.Atoi(b.Value)
			return x - y
		}
		return cmp.Or(cmp.Compare(a.By, b.By), cmp.Compare(a.Value, b.Value))
	})
	return out
}

// Sessions counts the conversations of a stage. A session is cut short if turns failed or were never
// sent.
type Sessions struct {
	Begun     int `json:"begun"`
	Completed int `json:"completed"`
	CutShort  int `json:"cut_short"`
	Unsent    int `json:"unsent_turns"`            // turns never sent in the sessions cut short
	Refused   int `json:"refused_turns,omitempty"` // of Unsent: an earlier turn of the session failed
}

// sessions tracks conversations. Finished conversations are counted and removed.
type sessions struct {
	Sessions
	open map[uint64]progress
}

type progress struct{ planned, sent, ok int }

func (s *sessions) add(r *tacho.Record) {
	if r.Turns < 2 {
		return
	}
	one := progress{planned: r.Turns, sent: 1}
	if r.OK() {
		one.ok = 1
	}
	s.note(r.Session, one)
}

func (s *sessions) note(id uint64, p progress) {
	before, seen := s.open[id]
	if !seen {
		s.Begun++
	}
	p.sent, p.ok = p.sent+before.sent, p.ok+before.ok
	switch {
	case p.ok == p.planned:
		s.Completed++
	case p.sent == p.planned:
		s.CutShort++
	default:
		if s.open == nil {
			s.open = map[uint64]progress{}
		}
		s.open[id] = p
		return
	}
	delete(s.open, id)
}

func (s *sessions) merge(o *sessions) {
	s.Begun += o.Begun - len(o.open) // open sessions are counted by note below
	s.Completed += o.Completed
	s.CutShort += o.CutShort
	for id, p := range o.open {
		s.note(id, p)
	}
}

// summary returns nil if no session has more than one turn.
func (s *sessions) summary() *Sessions {
	if s.Begun == 0 {
		return nil
	}
	out := s.Sessions
	out.CutShort += len(s.open)
	for _, p := range s.open {
		out.Unsent += p.planned - p.sent
		if p.ok < p.sent {
			out.Refused += p.planned - p.sent
		}
	}
	return &out
}
