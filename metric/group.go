package metric

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"tacho"
)

// A Group is the part of the records that have something in common: the turn
// they are of their conversation, or the value of a label.
type Group struct {
	By        string `json:"by"` // "turn", or the key of the label
	Value     string `json:"value"`
	Requests  int    `json:"requests"`
	Completed int    `json:"completed"`
	Failed    int    `json:"failed"`
	Input     int    `json:"input_tokens"` // of the completed
	Output    int    `json:"output_tokens"`
	Cached    int    `json:"cached_tokens"` // of Input, by the server
	Dists     []Dist `json:"metrics"`       // one for each of Classic, in order
}

// CachedShare is the part of the input that came from the server's cache; nil
// where nothing was counted.
func (g *Group) CachedShare() *float64 {
	if g.Input == 0 {
		return nil
	}
	share := float64(g.Cached) / float64(g.Input)
	return &share
}

// Dist is the distribution of one of the classic metrics.
func (g *Group) Dist(m *Metric) Dist {
	i := slices.IndexFunc(g.Dists, func(d Dist) bool { return d.Name == m.Name })
	if i < 0 {
		return Dist{Name: m.Name, Unit: m.Unit}
	}
	return g.Dists[i]
}

// turnKey is what groups of turns are by.
const turnKey = "turn"

// mostGroups is how many values a label may have to be worth splitting by.
const mostGroups = 1000

// groups splits the records by turn, where there are conversations, and by
// every label that has more than one value.
func groups(records []tacho.Record, percentiles []float64) []Group {
	type key struct{ by, value string }
	parts := map[key]*Accumulator{}
	values := map[string]int{}
	add := func(k key, r tacho.Record) {
		if parts[k] == nil {
			parts[k] = &Accumulator{}
			values[k.by]++
		}
		parts[k].records = append(parts[k].records, r)
	}
	turns := slices.ContainsFunc(records, func(r tacho.Record) bool { return r.Turn > 0 })
	for i := range records {
		r := &records[i]
		if turns {
			add(key{turnKey, strconv.Itoa(r.Turn + 1)}, *r)
		}
		for _, l := range r.Labels {
			add(key{l.Key, l.Value}, *r)
		}
	}
	var out []Group
	for k, part := range parts {
		if n := values[k.by]; n < 2 || n > mostGroups {
			continue
		}
		out = append(out, newGroup(k.by, k.value, part, percentiles))
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

func newGroup(by, value string, part *Accumulator, percentiles []float64) Group {
	var s Summary
	s.count(part.records)
	t := tokens(part.records)
	g := Group{
		By: by, Value: value, Requests: len(part.records), Completed: s.Completed, Failed: s.Failed,
		Input: t.Input, Output: t.Output, Cached: t.Cached,
	}
	for _, m := range Classic {
		g.Dists = append(g.Dists, newDist(m, part.values(m), percentiles))
	}
	return g
}

// Sessions are the conversations of a stage. A session that was cut short has
// turns that were never sent, or that failed.
type Sessions struct {
	Begun     int `json:"begun"`
	Completed int `json:"completed"`
	CutShort  int `json:"cut_short"`
	Unsent    int `json:"unsent_turns"` // turns of those that were never sent
}

// sessions is nil where no session has more than one turn.
func sessions(records []tacho.Record) *Sessions {
	type progress struct{ planned, sent, ok int }
	all := map[uint64]*progress{}
	for i := range records {
		r := &records[i]
		if r.Turns < 2 {
			continue
		}
		p := all[r.Session]
		if p == nil {
			p = &progress{planned: r.Turns}
			all[r.Session] = p
		}
		p.sent++
		if r.OK() {
			p.ok++
		}
	}
	if len(all) == 0 {
		return nil
	}
	s := &Sessions{Begun: len(all)}
	for p := range maps.Values(all) {
		if p.ok == p.planned {
			s.Completed++
			continue
		}
		s.CutShort++
		s.Unsent += p.planned - p.sent
	}
	return s
}
