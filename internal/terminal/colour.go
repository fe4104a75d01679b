package terminal

import (
	"regexp"

	"github.com/tacho-bench/tacho/internal/termtext"
)

// coloured are the words that get a colour on a terminal: verdicts, differences of
// compare, results of conditions, and the program's name before an error. A colour only
// repeats its word, so text without colours says the same.
var coloured = []struct {
	words *regexp.Regexp // the first group gets the colour
	style termtext.Style
}{
	{regexp.MustCompile(`(?m)^(tacho:)`), termtext.Red},
	{regexp.MustCompile(`\b(INVALID)\b`), termtext.Red},
	{regexp.MustCompile(`\b(DEGRADED)\b`), termtext.Yellow},
	{regexp.MustCompile(`\b(VALID)\b`), termtext.Green},
	{regexp.MustCompile(`\b(PREDICTED|NOT JUDGED)\b`), termtext.Cyan},
	{regexp.MustCompile(`(?m) (worse)$`), termtext.Red},
	{regexp.MustCompile(`(?m) (better)$`), termtext.Green},
	{regexp.MustCompile(`(?m)^(FAILED)\b`), termtext.Red},
	{regexp.MustCompile(`(?m)^(PASSED)\b`), termtext.Green},
}

// paint adds colours to text for a terminal.
func paint(text string) string {
	for _, c := range coloured {
		text = c.words.ReplaceAllStringFunc(text, func(match string) string {
			at := c.words.FindStringSubmatchIndex(match)
			if at == nil { // the words at the start or the end of a line only
				return match
			}
			return match[:at[2]] + "\x1b[" + string(c.style) + "m" + match[at[2]:at[3]] + "\x1b[0m" + match[at[3]:]
		})
	}
	return text
}
