package metric

import (
	"math"
	"strconv"
)

// Brief formats a number with at most three significant digits, and two decimals.
func Brief(v float64) string {
	if math.IsInf(v, 1) {
		return "inf"
	}
	if v >= 10_000 {
		return Brief(v/1000) + "k"
	}
	scale := math.Pow(10, max(2-math.Floor(math.Log10(max(v, 1))), 0))
	return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
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
	if millis >= 1000 {
		return Brief(millis/1000) + " s"
	}
	return Brief(millis) + " ms"
}
