package report

import (
	"slices"

	"github.com/tacho-bench/tacho/metric"
)

// where writes the stages of the latency and the bottleneck.
func (p *printer) where(w *metric.Breakdown) {
	if w == nil {
		return
	}
	p.section("Where the Time Goes")
	if !p.brief {
		p.parts(&w.All, "mean ms")
	}
	p.sentence(w.Sentence)
	p.sentence(w.Note)
	if w.Slowest != nil && w.Tail != "" {
		if !p.brief {
			p.parts(w.Slowest, "slowest 1 % ms")
		}
		p.sentence(w.Tail)
	}
}

func (p *printer) sentence(text string) {
	if text != "" {
		p.wrapped("", safe(text), "")
	}
}

// parts writes a table of stages without the stages of 0 ms.
func (p *printer) parts(t *metric.TimeSplit, what string) {
	more := slices.ContainsFunc(t.Parts, func(p metric.TimePart) bool { return p.MoreMillis != nil })
	row := func(ms, percent, longer, part string) []string {
		if more {
			return []string{ms, percent, longer, part}
		}
		return []string{ms, percent, part}
	}
	table := [][]string{row(what, "%", "vs mean of all", "stage of end-to-end latency (source)")}
	for i := range t.Parts {
		if part := &t.Parts[i]; fixed(&part.Millis) != fixed(new(float64)) {
			table = append(table, row(fixed(&part.Millis), share(&part.Share), fixed(part.MoreMillis), part.Title()+" ("+part.Source+")"))
		}
	}
	one := 1.0
	p.table(append(table, row(fixed(&t.Millis), share(&one), "", "total")))
}

// whereColumns returns the bottleneck, and every stage of any level: for all requests,
// and for the slowest.
func whereColumns(r *Report) []source[levelRow] {
	limit := textColumn("bottleneck", func(p levelRow) string { return whereOf(p).Bottleneck })
	return slices.Concat([]source[levelRow]{limit},
		partColumns(r, "where_", func(w metric.Breakdown) *metric.TimeSplit { return &w.All }),
		partColumns(r, "slowest_where_", func(w metric.Breakdown) *metric.TimeSplit { return w.Slowest }))
}

func partColumns(r *Report, prefix string, of func(metric.Breakdown) *metric.TimeSplit) []source[levelRow] {
	parts := func(p levelRow) []metric.TimePart {
		if split := of(whereOf(p)); split != nil {
			return split.Parts
		}
		return nil
	}
	var keys []string
	for _, level := range r.levels() {
		for _, part := range parts(levelRow{level: level}) {
			if !slices.Contains(keys, part.Key()) {
				keys = append(keys, part.Key())
			}
		}
	}
	var out []source[levelRow]
	for _, key := range keys {
		out = append(out, number(prefix+key+"_ms", func(p levelRow) *float64 {
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

func whereOf(p levelRow) metric.Breakdown {
	if w := p.level.Summary.Where; w != nil {
		return *w
	}
	return metric.Breakdown{}
}
