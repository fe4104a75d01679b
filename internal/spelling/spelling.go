// Package spelling suggests the nearest valid name for a misspelled one.
package spelling

import (
	"fmt"
	"slices"
	"strings"
)

// Unknown returns the error for a word not in names. The error suggests the nearest name and lists all names.
func Unknown(what, written string, names []string) error {
	return fmt.Errorf("unknown %s %q%s (have %s)", what, written, DidYouMean(written, names), strings.Join(names, ", "))
}

// DidYouMean returns a question with the nearest name, or "" if no name is near.
func DidYouMean(written string, names []string) string {
	if nearest := Nearest(written, names); nearest != "" {
		return fmt.Sprintf(", did you mean %q?", nearest)
	}
	return ""
}

// lettersPerTypo is the number of letters a word needs for each wrong letter. With a smaller number, short words
// match names with little in common.
const lettersPerTypo = 4

// Nearest returns the name nearest to written, or "" if no name is near.
func Nearest(written string, names []string) string {
	nearest, least := "", max(1, len(written)/lettersPerTypo)+1
	for _, name := range names {
		d := distance(written, name)
		if strings.Contains(written, "-") && hasWords(name, written) {
			d = 1 // a missing word is the most common mistake
		}
		if d < least {
			nearest, least = name, d
		}
	}
	return nearest
}

// hasWords reports whether name contains all words of part.
func hasWords(name, part string) bool {
	words := strings.Split(name, "-")
	for w := range strings.SplitSeq(part, "-") {
		if !slices.Contains(words, w) {
			return false
		}
	}
	return true
}

// distance returns the number of letters to insert, delete, replace or swap with a neighbour to turn a into b.
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
