package instrument

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A reading is one line of a metrics page.
type reading struct {
	name   string
	labels string // as written, including the braces
	value  float64
}

// label returns the value of a label without escapes, or an empty string.
func (r *reading) label(name string) string {
	for _, before := range []string{"{", ",", " "} {
		if _, rest, found := strings.Cut(r.labels, before+name+`="`); found {
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
	}
	return ""
}

// errNoMetrics is returned for a page in another format.
var errNoMetrics = errors.New("not a metrics page")

// parse reads a page in the Prometheus text format (and OpenMetrics, as far as
// needed) and calls each for every reading. Invalid lines are skipped if there are
// valid lines as well.
func parse(page []byte, each func(reading)) error {
	good, bad := 0, 0
	var first string
	for line := range bytes.Lines(page) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		r, ok := parseLine(string(line))
		if !ok {
			if bad++; bad == 1 {
				first = string(line[:min(len(line), 80)])
			}
			continue
		}
		good++
		each(r)
	}
	if good == 0 && bad > 0 {
		return fmt.Errorf("%w: it begins with %q", errNoMetrics, first)
	}
	return nil
}

// parseLine reads name{labels} value [timestamp].
func parseLine(line string) (reading, bool) {
	end := strings.IndexAny(line, "{ \t")
	if end <= 0 {
		return reading{}, false
	}
	r := reading{name: line[:end]}
	rest := line[end:]
	if rest[0] == '{' {
		n := labelsEnd(rest)
		if n < 0 {
			return reading{}, false
		}
		r.labels, rest = rest[:n], rest[n:]
	}
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		return reading{}, false
	}
	v, err := strconv.ParseFloat(fields[0], 64)
	r.value = v
	return r, err == nil
}

// labelsEnd returns the offset after the labels at the beginning of text, or -1. A
// brace in quotes does not count.
func labelsEnd(text string) int {
	quoted := false
	for i := 1; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == '}' && !quoted:
			return i + 1
		}
	}
	return -1
}
