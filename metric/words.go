package metric

import (
	"math"
	"strconv"
	"strings"
)

// Unknown is printed in place of a number that is not known.
const Unknown = "n/a"

// Brief formats a number for people, with three significant digits and all digits before the point.
func Brief(v float64) string {
	switch a := math.Abs(v); {
	case math.IsNaN(v):
		return Unknown
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'f', -1, 64)), "+")
	case a >= 99.95 && a < 1e9:
		return Integer(int(math.Round(v)))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}

// Integer formats an integer with commas between thousands.
func Integer(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0 && text[i-1] != '-'; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// Percent formats a share like Brief.
func Percent(share float64) string {
	if share > 0 && share < 0.0001 {
		return "less than 0.01 %"
	}
	return Brief(100*share) + " %"
}

// Duration formats a time in milliseconds or seconds like Brief.
func Duration(millis float64) string {
	if math.Abs(millis) >= 999.5 && !math.IsInf(millis, 0) {
		return Brief(millis/1000) + " s"
	}
	return Brief(millis) + " ms"
}
