package report

import (
	"slices"

	"tacho/metric"
)

// where writes where the time went, and what limits.
func (p printer) where(w *metric.Where) {
	if w == nil {
		return
	}
	p.line(centre("Where the Time Goes", "-", blockWidth))
	p.parts(&w.All, "mean ms")
	p.sentence(w.Sentence)
	p.sentence(w.Note)
	if w.Slowest != nil && w.Tail != "" {
		p.parts(w.Slowest, "slowest 1 % ms")
		p.sentence(w.Tail)
	}
}

func (p printer) sentence(text string) {
	if text != "" {
		p.line(text)
	}
}

// parts writes a table of parts, without those that are nothing.
func (p printer) parts(t *metric.TimeSplit, what string) {
	more := slices.ContainsFunc(t.Parts, func(p metric.TimePart) bool { return p.MoreMillis != nil })
	row := func(ms, percent, longer, part string) []string {
		if more {
			return []string{ms, percent, longer, part}
		}
		return []string{ms, percent, part}
	}
	table := [][]string{row(what, "%", "more than all", "of E2EL from due (told by)")}
	for i := range t.Parts {
		if part := &t.Parts[i]; fixed(&part.Millis) != fixed(new(float64)) {
			table = append(table, row(fixed(&part.Millis), share(&part.Share), fixed(part.MoreMillis), part.Title()+" ("+part.Source+")"))
		}
	}
	one := 1.0
	p.table(append(table, row(fixed(&t.Millis), share(&one), "", "all")))
}

// whereColumns has what limits, and every part that some level has: of all its
// requests, and of the slowest.
func whereColumns(r *Report) []source[place] {
	limit := words("bottleneck", func(p place) string { return whereOf(p).Bottleneck })
	return slices.Concat([]source[place]{limit},
		partColumns(r, "where_", func(w metric.Where) *metric.TimeSplit { return &w.All }),
		partColumns(r, "slowest_where_", func(w metric.Where) *metric.TimeSplit { return w.Slowest }))
}

func partColumns(r *Report, prefix string, of func(metric.Where) *metric.TimeSplit) []source[place] {
	parts := func(p place) []metric.TimePart {
		if split := of(whereOf(p)); split != nil {
			return split.Parts
		}
		return nil
	}
	var keys []string
	for _, level := range r.levels() {
		for _, part := range parts(place{level: level}) {
			if !slices.Contains(keys, part.Key()) {
				keys = append(keys, part.Key())
			}
		}
	}
	var out []source[place]
	for _, key := range keys {
		out = append(out, number(prefix+key+"_ms", func(p place) *float64 {
			for _, part := range parts(p) {
				if part.Key() == key {
					return &part.Millis
				}
			}
			return nil
		}))
	}
	return out
}

func whereOf(p place) metric.Where {
	if w := p.level.Summary.Where; w != nil {
		return *w
	}
	return metric.Where{}
}
