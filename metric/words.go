package metric

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Unknown is printed in place of a number that is not known.
const Unknown = "n/a"

// Brief formats a measured number for people, with three significant digits and all digits before the
// point. Screens, tables and sentences use it, and pages use the same rule (numbers.js).
func Brief(v float64) string { return rounded(v, 3) }

// Setting formats a number that a user or a search chose, such as a load, with six significant digits.
func Setting(v float64) string { return rounded(v, 6) }

// Signed formats a difference like Brief, with its sign. An error of the computation is no difference.
func Signed(v float64) string {
	switch {
	case math.Abs(v) < 1e-9:
		return "0"
	case v > 0:
		return "+" + Brief(v)
	}
	return Brief(v)
}

// Beside formats a number like Brief, with as many more digits as it takes to differ from a limit.
func Beside(v, limit float64) string {
	const exact = 12 // digits without errors of the computation
	for digits := 3; digits < exact; digits++ {
		if text := rounded(v, digits); v == limit || text != rounded(limit, exact) {
			return text
		}
	}
	return rounded(v, exact)
}

// rounded formats a number without zeros at the end. Halves are rounded away from zero.
func rounded(v float64, digits int) string {
	switch {
	case math.IsNaN(v):
		return Unknown
	case math.IsInf(v, 0):
		return strings.TrimPrefix(strings.ToLower(strconv.FormatFloat(v, 'f', -1, 64)), "+")
	case v == 0:
		return "0"
	}
	_, exponent, _ := strings.Cut(strconv.FormatFloat(v, 'e', digits-1, 64), "e")
	power, _ := strconv.Atoi(exponent) // FormatFloat wrote it
	exact, suffix := new(big.Rat).SetFloat64(v), ""
	if power < -4 || math.Abs(v) >= 1e9 {
		scale, _ := new(big.Rat).SetString("1e" + exponent)
		exact.Quo(exact, scale)
		power, suffix = 0, fmt.Sprintf("e%+03d", power)
	}
	text := exact.FloatString(max(digits-1-power, 0))
	if strings.Contains(text, ".") {
		text = strings.TrimRight(strings.TrimRight(text, "0"), ".")
	}
	return thousands(text) + suffix
}

// Integer formats an integer with commas between thousands.
func Integer(n int) string { return thousands(strconv.Itoa(n)) }

// thousands adds commas to the digits before the point.
func thousands(text string) string {
	whole, fraction, point := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0 && whole[i-1] != '-'; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if point {
		whole += "." + fraction
	}
	return whole
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
