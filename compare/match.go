package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tacho/outcome"
)

// A group is the levels that are at one place, by side. Several of a side are
// repeats.
type group struct {
	name   string
	levels [][]*outcome.Level
}

// sides is how many sides have a level here.
func (g *group) sides() int {
	n := 0
	for _, levels := range g.levels {
		if len(levels) > 0 {
			n++
		}
	}
	return n
}

// A place is a level and the side it is of.
type place struct {
	side  int
	run   *outcome.Run
	level *outcome.Level
}

// match puts levels of the same place together, in the order of the first side
// that has them. Rate and concurrency are the place, and every other option that
// was a list. The number of prompts is part of it where there is neither rate nor
// limit, or where a side has several; the length of prompts only where a side has
// levels that nothing else tells apart.
func match(sides []Side) []group {
	var all []place
	for s := range sides {
		for r := range sides[s].Runs {
			run := &sides[s].Runs[r]
			for l := range run.Levels {
				all = append(all, place{s, run, &run.Levels[l]})
			}
		}
	}
	var out []group
	for _, byLoad := range split(all, loadKey) {
		parts := [][]place{byLoad}
		if isBurst(byLoad[0].level) || anySideHasTwo(byLoad, promptsKey) {
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

func newGroup(places []place, sides int) group {
	first := slices.MinFunc(places, func(a, b place) int { return cmp.Compare(a.side, b.side) })
	g := group{name: placeName(first.level), levels: make([][]*outcome.Level, sides)}
	for _, p := range places {
		g.levels[p.side] = append(g.levels[p.side], p.level)
	}
	return g
}

// placeName is what a level is called, without what tells repeats apart.
func placeName(l *outcome.Level) string {
	name := l.Name
	if l.Repeat > 0 {
		name = strings.TrimSpace(strings.TrimSuffix(name, fmt.Sprintf("repeat %d", l.Repeat)))
	}
	name = strings.TrimSpace(strings.ReplaceAll(name, "--", ""))
	return cmp.Or(name, loadName(l))
}

// loadName is the load in words, of a run that has but one level.
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

func isBurst(l *outcome.Level) bool { return l.Rate <= 0 && l.Concurrency <= 0 }

// loadKey is the place but for the number of prompts. What a list names is in
// the level's own fields too, for those that have no coordinates.
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

// split groups places by a key, in the order the keys come up.
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

// anySideHasTwo says whether some side has levels with different keys.
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

// lengthsDiffer is how many times longer prompts are that are not of one length.
const lengthsDiffer = 1.25

// splitLengths parts levels whose prompts are of different lengths, where a side
// has several such.
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

// nothingInCommon tells what each side has, where no two have the same.
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
