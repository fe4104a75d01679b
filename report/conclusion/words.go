package conclusion

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// loadWords maps each load option to the format of its value.
var loadWords = map[string]string{"request-rate": "%s req/s", "max-concurrency": "concurrency %s", "num-prompts": "burst of %s"}

// allAtOnce names the load of an infinite rate.
const allAtOnce = "all at once"

// loadOf names a load, for example "concurrency 8".
func loadOf(option, value string) string {
	if value == "inf" {
		return allAtOnce
	}
	return fmt.Sprintf(loadWords[option], value)
}

// inSentence is the name of a load as it reads in a sentence.
func inSentence(name string) string {
	if strings.HasPrefix(name, "burst") {
		return "a " + name
	}
	if name == allAtOnce {
		return "an infinite rate"
	}
	return name
}

// loadRange names the range between two loads.
func loadRange(option, low, high string) string {
	switch option {
	case "max-concurrency":
		return "concurrency " + low + " and " + high
	case "num-prompts":
		return "bursts of " + low + " and " + high
	}
	return low + " and " + loadOf(option, high)
}

// NameOf names a level by its flags, such as "concurrency 8".
func NameOf(l *outcome.Level) string {
	var words []string
	flags := l.Flags()
	for _, flag := range flags {
		option, value := flag.Name, flag.Value
		if option == "request-rate" && value == "inf" && len(flags) > 1 {
			continue // the other options are the load
		}
		if n, err := strconv.Atoi(value); err == nil {
			value = metric.Integer(n)
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

// Names and messages from servers and users have no length limit, but a page does.
const (
	mostName     = 120 // characters of the name of a level
	mostSentence = 600 // characters of a sentence
	mostNamed    = 6   // maximum number of levels named in a sentence
)

// someOf lists the first names and counts the others.
func someOf(names []string) string {
	text := strings.Join(names[:min(len(names), mostNamed)], "; ")
	if more := len(names) - mostNamed; more > 0 {
		text += " and " + metric.Integer(more) + " more"
	}
	return text
}

// clip shortens a text to most characters.
func clip(text string, most int) string {
	if r := []rune(text); len(r) > most {
		return string(r[:most]) + "…"
	}
	return text
}

// inUnit formats a value with its unit. A time is in milliseconds or seconds.
func inUnit(v float64, unit string) string {
	if unit == string(metric.Millis) {
		return metric.Duration(v)
	}
	return metric.Brief(v)
}
