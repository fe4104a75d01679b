package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/outcome"
)

// A group contains the levels at one place, by side. Several levels of a side are repeats.
type group struct {
	name   string
	levels [][]*outcome.Level
}

// sides returns the number of sides with a level in the group.
func (g *group) sides() int {
	n := 0
	for _, levels := range g.levels {
		if len(levels) > 0 {
			n++
		}
	}
	return n
}

// A place is a level and its side.
type place struct {
	side  int
	level *outcome.Level
}

// match groups the levels at the same place, in the order of the first side that has them. The place is
// the rate, the concurrency and every other list option. The number of prompts counts if there is
// neither rate nor limit, or if a side has several numbers. The length of prompts counts only if a side
// has levels that differ in nothing else.
func match(sides []Side) []group {
	var all []place
	for s := range sides {
		for r := range sides[s].Runs {
			run := &sides[s].Runs[r]
			for l := range run.Levels {
				all = append(all, place{s, &run.Levels[l]})
			}
		}
	}
	var out []group
	for _, byLoad := range split(all, loadKey) {
		parts := [][]place{byLoad}
		if l := byLoad[0].level; l.Rate <= 0 && l.Concurrency <= 0 || anySideHasTwo(byLoad, promptsKey) {
			parts = split(byLoad, promptsKey)
		}
		for _, part := range parts {
			for _, same := range splitLengths(part) {
				out = append(out, newGroup(same, len(sides)))
			}
		}
	}
	return out
}

// matchInOrder groups the first level of every side, then the second, and so on. Repeats of a level
// count as one level.
func matchInOrder(sides []Side) []group {
	var out []group
	for s := range sides {
		var seen []string
		for r := range sides[s].Runs {
			run := &sides[s].Runs[r]
			for l := range run.Levels {
				level := &run.Levels[l]
				name := placeName(level)
				i := slices.Index(seen, name)
				if i < 0 {
					i, seen = len(seen), append(seen, name)
				}
				if i == len(out) {
					out = append(out, group{levels: make([][]*outcome.Level, len(sides))})
				}
				out[i].add(s, level)
			}
		}
	}
	return out
}

// add adds a level of a side and names the group after all its different levels.
func (g *group) add(side int, level *outcome.Level) {
	g.levels[side] = append(g.levels[side], level)
	if name := placeName(level); !slices.Contains(strings.Split(g.name, orderSeparator), name) {
		g.name = strings.TrimPrefix(g.name+orderSeparator+name, orderSeparator)
	}
}

// unequalLoads warns about groups with levels of different loads.
func unequalLoads(groups []group) (out []string) {
	for _, g := range groups {
		if strings.Contains(g.name, orderSeparator) && g.sides() > 1 {
			out = append(out, "different loads are compared: "+g.name)
		}
	}
	return out
}

// orderSeparator stands between the names of levels that were matched in order.
const orderSeparator = " against "

func newGroup(places []place, sides int) group {
	first := slices.MinFunc(places, func(a, b place) int { return cmp.Compare(a.side, b.side) })
	g := group{name: placeName(first.level), levels: make([][]*outcome.Level, sides)}
	for _, p := range places {
		g.levels[p.side] = append(g.levels[p.side], p.level)
	}
	return g
}

// placeName returns the name of a level without the repeat number.
func placeName(l *outcome.Level) string {
	name := l.Name
	if l.Repeat > 0 {
		name = strings.TrimSpace(strings.TrimSuffix(name, fmt.Sprintf("repeat %d", l.Repeat)))
	}
	name = strings.TrimSpace(strings.ReplaceAll(name, "--", ""))
	return cmp.Or(name, loadName(l))
}

// loadName describes the load of a run with a single level.
func loadName(l *outcome.Level) string {
	var words []string
	if l.Rate > 0 {
		words = append(words, fmt.Sprintf("request-rate %g", l.Rate))
	}
	if l.Concurrency > 0 {
		words = append(words, fmt.Sprintf("max-concurrency %d", l.Concurrency))
	}
	if len(words) == 0 {
		words = append(words, fmt.Sprintf("num-prompts %d", l.Prompts))
	}
	return strings.Join(words, " ")
}

// loadKey is the place without the number of prompts. Rate and concurrency come from the level's own
// fields, because some levels have no coordinates.
func loadKey(p place) string {
	key := []string{fmt.Sprintf("%g %d", p.level.Rate, p.level.Concurrency)}
	for _, c := range p.level.Coordinates {
		if !slices.Contains([]string{"request-rate", "max-concurrency", "num-prompts", "input-len"}, c.Name) {
			key = append(key, c.Name+"="+c.Value)
		}
	}
	return strings.Join(key, " ")
}

func promptsKey(p place) string { return fmt.Sprint(p.level.Prompts) }

// split groups places by a key, in the order of the first occurrence.
func split(places []place, key func(place) string) [][]place {
	var out [][]place
	at := map[string]int{}
	for _, p := range places {
		k := key(p)
		i, seen := at[k]
		if !seen {
			i = len(out)
			at[k] = i
			out = append(out, nil)
		}
		out[i] = append(out[i], p)
	}
	return out
}

// anySideHasTwo reports whether some side has levels with different keys.
func anySideHasTwo(places []place, key func(place) string) bool {
	seen := map[int]string{}
	for _, p := range places {
		if before, ok := seen[p.side]; ok && before != key(p) {
			return true
		}
		seen[p.side] = key(p)
	}
	return false
}

// lengthsDiffer is the ratio of prompt lengths, or of numbers of requests, above which levels differ.
const lengthsDiffer = 1.25

// splitLengths splits levels by prompt length if a side has several lengths.
func splitLengths(places []place) [][]place {
	several := false
	for _, a := range places {
		for _, b := range places {
			several = several || a.side == b.side && length(b) > lengthsDiffer*max(length(a), 1)
		}
	}
	if !several {
		return [][]place{places}
	}
	sorted := slices.Clone(places)
	slices.SortStableFunc(sorted, func(a, b place) int { return cmp.Compare(length(a), length(b)) })
	var out [][]place
	for i, p := range sorted {
		if i == 0 || length(p) > lengthsDiffer*max(length(sorted[i-1]), 1) {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], p)
	}
	return out
}

func length(p place) float64 { return p.level.Summary.MeanInput() }

// nothingInCommon lists the levels of each side.
func nothingInCommon(sides []Side, alone []Alone) string {
	var words []string
	for i, s := range sides {
		var names []string
		for _, a := range alone {
			if a.Side == i {
				names = append(names, a.Name)
			}
		}
		const most = 5
		if len(names) > most {
			names = append(names[:most], "...")
		}
		words = append(words, fmt.Sprintf("%s has %s", s.Name, cmp.Or(strings.Join(names, "; "), "nothing")))
	}
	return strings.Join(words, ", and ")
}
