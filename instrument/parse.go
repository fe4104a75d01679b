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
	labels string // as they are written, in their braces
	value  float64
}

// label is the value of a label that needs no quoting, or empty.
func (r *reading) label(name string) string {
	for _, before := range []string{"{", ",", " "} {
		if _, rest, found := strings.Cut(r.labels, before+name+`="`); found {
			value, _, _ := strings.Cut(rest, `"`)
			return value
		}
	}
	return ""
}

// errNoMetrics says that a page is something else.
var errNoMetrics = errors.New("not a metrics page")

// parse reads a page in the text format of Prometheus (and in that of
// OpenMetrics, as far as it matters here) and hands each reading on. Lines that
// make no sense are passed over while others do: a page is other people's.
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

// labelsEnd is the offset behind the labels that text begins with, or -1. A
// brace in quotes ends nothing.
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
