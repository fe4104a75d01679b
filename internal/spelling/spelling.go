// Package spelling finds the name that somebody meant.
package spelling

import (
	"fmt"
	"slices"
	"strings"
)

// Unknown is the error for a word that is none of the names there are: it says
// which may have been meant, and lists them.
func Unknown(what, written string, names []string) error {
	return fmt.Errorf("unknown %s %q%s (have %s)", what, written, Meant(written, names), strings.Join(names, ", "))
}

// Meant asks whether the nearest name was meant; it is empty if none is near.
func Meant(written string, names []string) string {
	if nearest := Nearest(written, names); nearest != "" {
		return fmt.Sprintf(", did you mean %q?", nearest)
	}
	return ""
}

// lettersPerSlip is how many letters a word has for each letter that may be
// wrong. With fewer, short words are taken for names that have little in common
// with them.
const lettersPerSlip = 4

// Nearest is the name nearest to what was written, empty if none is near.
func Nearest(written string, names []string) string {
	nearest, least := "", max(1, len(written)/lettersPerSlip)+1
	for _, name := range names {
		d := distance(written, name)
		if strings.Contains(written, "-") && hasWords(name, written) {
			d = 1 // a word left out is the likeliest slip
		}
		if d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// hasWords says whether all the words of part are among those of name.
func hasWords(name, part string) bool {
	words := strings.Split(name, "-")
	for w := range strings.SplitSeq(part, "-") {
		if !slices.Contains(words, w) {
			return false
		}
	}
	return true
}

// distance is the number of letters to add, drop, change or swap with their
// neighbour to get from a to b.
func distance(a, b string) int {
	rows := [3][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := range len(a) {
		before, prev, row := rows[(i+2)%3], rows[i%3], rows[(i+1)%3]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(prev[j+1]+1, row[j]+1, prev[j]+cost)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return rows[len(a)%3][len(b)]
}
