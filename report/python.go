package report

import (
	"math"
	"strconv"
	"unicode/utf8"
)

// Python programs write the classic report and its JSON, and scripts that read them
// expect Python's spelling of numbers and strings.

// pythonFixed formats v like Python's '%.2f'.
func pythonFixed(v float64) string {
	if s, special := pythonSpecial(v, "nan", "inf"); special {
		return s
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}

// pythonFloat formats v like Python's repr(v): the shortest digits that parse back to v,
// always recognizable as a float, with an exponent below 1e-4 and from 1e16 on.
func pythonFloat(v float64) string {
	if s, special := pythonSpecial(v, "nan", "inf"); special {
		return s
	}
	if a := math.Abs(v); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(v, 'e', -1, 64)
	}
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if v == math.Trunc(v) {
		s += ".0"
	}
	return s
}

// pythonJSONFloat formats v like Python's json.dump.
func pythonJSONFloat(v float64) string {
	if s, special := pythonSpecial(v, "NaN", "Infinity"); special {
		return s
	}
	return pythonFloat(v)
}

func pythonSpecial(v float64, nan, inf string) (string, bool) {
	switch {
	case math.IsNaN(v):
		return nan, true
	case math.IsInf(v, 1):
		return inf, true
	case math.IsInf(v, -1):
		return "-" + inf, true
	}
	return "", false
}

// percentileWord formats a percentile like the classic report: 99, 99.9.
func percentileWord(p float64) string {
	if p == math.Trunc(p) && math.Abs(p) < 1e15 {
		return strconv.FormatFloat(p, 'f', 0, 64)
	}
	return pythonFloat(p)
}

var shortEscapes = map[rune]byte{'"': '"', '\\': '\\', '\n': 'n', '\r': 'r', '\t': 't', '\f': 'f', '\b': 'b'}

// appendPythonString appends s like Python's json.dump: ASCII only, with surrogate pairs
// for characters beyond the basic plane. Invalid UTF-8 becomes U+FFFD.
func appendPythonString(b []byte, s string) []byte {
	b = append(b, '"')
	for _, r := range s {
		switch letter, hasShort := shortEscapes[r]; {
		case hasShort:
			b = append(b, '\\', letter)
		case r >= ' ' && r <= '~':
			b = utf8.AppendRune(b, r)
		case r > 0xffff:
			b = appendUnit(appendUnit(b, 0xd800+(r-0x10000)>>10), 0xdc00+(r-0x10000)&0x3ff)
		default:
			b = appendUnit(b, r)
		}
	}
	return append(b, '"')
}

// appendUnit appends one UTF-16 code unit as \uXXXX.
func appendUnit(b []byte, unit rune) []byte {
	const hex = "0123456789abcdef"
	return append(b, '\\', 'u', hex[unit>>12&15], hex[unit>>8&15], hex[unit>>4&15], hex[unit&15])
}
