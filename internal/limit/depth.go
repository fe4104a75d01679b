package limit

import "fmt"

// maxDepth bounds how deep lists and mappings of a file may nest. Parsers need time and memory
// that grow faster than the depth.
const maxDepth = 100

// Depth returns an error if JSON or YAML nests deeper than maxDepth: brackets, or dashes in one
// line. It does not parse strings, so a text with more than maxDepth open brackets is refused too.
func Depth(text []byte) error {
	brackets, dashes := 0, 0
	start := true // only spaces and dashes so far in this line
	for _, c := range text {
		switch c {
		case '[', '{':
			brackets++
		case ']', '}':
			brackets = max(0, brackets-1)
		case '\n':
			dashes, start = 0, true
			continue
		case '-', '?':
			if start {
				dashes++
			}
		}
		start = start && (c == ' ' || c == '-' || c == '?')
		if brackets > maxDepth || dashes > maxDepth && !start || dashes > 10*maxDepth {
			return fmt.Errorf("lists or mappings nest deeper than %d", maxDepth)
		}
	}
	return nil
}
