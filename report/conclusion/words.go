package conclusion

import (
	"math"
	"strconv"
	"strings"

	"tacho/metric"
	"tacho/outcome"
)

// loadWords say a number of each option that is a load.
var loadWords = map[string]string{"request-rate": "req/s", "max-concurrency": "requests at a time", "num-prompts": "requests at once"}

// loadOf is a load in words.
func loadOf(option, value string) string {
	word := loadWords[option]
	if value == "1" {
		word = strings.Replace(word, "requests", "request", 1)
	}
	return value + " " + word
}

// named is a level in words.
func named(l *outcome.Level) string {
	var words []string
	for _, flag := range l.Flags() {
		option, value := flag.Name, flag.Value
		if n, err := strconv.Atoi(value); err == nil {
			value = whole(n)
		}
		if loadWords[option] != "" {
			words = append(words, loadOf(option, value))
		} else {
			words = append(words, option+" "+value)
		}
	}
	if len(words) == 0 {
		return clip(l.Name, mostName)
	}
	return clip(strings.Join(words, ", "), mostName)
}

// Names and messages that others wrote have no bound, and a page has.
const (
	mostName     = 120 // characters of a level
	mostSentence = 600 // characters of a sentence
	mostNamed    = 6   // levels that a sentence names
)

// someOf lists the first levels and counts the others.
func someOf(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], "; ")
	if more := len(names) - mostNamed; more > 0 {
		text += " and " + whole(more) + " more"
	}
	return text
}

// clip cuts a text that is too long.
func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// Brief has three significant digits at most.
func Brief(v float64) string {
	if v >= 10_000 {
		return Brief(v/1000) + "k"
	}
	scale := math.Pow(10, max(2-math.Floor(math.Log10(max(v, 1))), 0))
	return strconv.FormatFloat(math.Round(v*scale)/scale, 'f', -1, 64)
}

// percent is a share that is not 0 with three significant digits at most.
func percent(share float64) string {
	if share < 0.0001 {
		return "less than 0.01 %"
	}
	return Brief(100*share) + " %"
}

// Millis is a time in milliseconds or seconds, with three significant digits at most.
func Millis(ms float64) string {
	if ms >= 1000 {
		return Brief(ms/1000) + " s"
	}
	return Brief(ms) + " ms"
}

// inUnit is a value in words. A time is in milliseconds or seconds.
func inUnit(v float64, unit string) string {
	if unit == string(metric.Millis) {
		return Millis(v)
	}
	return Brief(v)
}

// whole has commas between thousands.
func whole(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}
