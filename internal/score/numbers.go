package score

import (
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho"
)

// The rules of lm-eval's task gsm8k and of AIPerf. Their regular expressions mean the same in Go.
var (
	marked       = regexp.MustCompile(`#### (-?[0-9.,]+)`)
	anyNumber    = regexp.MustCompile(`(-?[$0-9.,]{2,})|(-?[0-9]+)`)
	plainNumber  = regexp.MustCompile(`-?[0-9][0-9,]*(?:\.[0-9]+)?`)
	untilMark    = regexp.MustCompile(`(?s).*#### `)
	integer      = regexp.MustCompile(`-?[0-9]+`)
	invalidMatch = "[invalid]"
)

// compared scores by extracting a text from the answer.
func compared(extract func(string) string, equal func(found, reference string) bool) func(*Answer, *tacho.Request) Result {
	return func(a *Answer, q *tacho.Request) Result {
		found := extract(a.Content)
		r := markOf(equal(found, q.Reference))
		r.Unparsed = found == invalidMatch
		return r
	}
}

func strictNumber(text string) string {
	if m := marked.FindStringSubmatch(text); m != nil {
		return strings.TrimSpace(m[1])
	}
	return invalidMatch
}

func flexibleNumber(text string) string {
	all := anyNumber.FindAllString(text, -1)
	if len(all) == 0 {
		return invalidMatch
	}
	return strings.TrimSpace(all[len(all)-1])
}

// exactMatch compares as lm-eval's exact_match of gsm8k does.
func exactMatch(found, reference string) bool { return cleaned(found) == cleaned(reference) }

func cleaned(text string) string {
	text = strings.NewReplacer(",", "", "$", "").Replace(text)
	text = untilMark.ReplaceAllString(text, "")
	// In Python, $ matches before a final newline, too.
	if body, newline := strings.CutSuffix(text, "\n"); newline && strings.HasSuffix(body, ".") {
		text = strings.TrimSuffix(body, ".") + "\n"
	}
	return strings.ToLower(strings.TrimSuffix(text, "."))
}

// numeric compares numbers as AIPerf does.
func numeric(a *Answer, q *tacho.Request) Result {
	found, unparsed := "", true
	if m := marked.FindStringSubmatch(a.Content); m != nil {
		found, unparsed = m[1], false
	} else if all := plainNumber.FindAllString(a.Content, -1); len(all) > 0 {
		found = all[len(all)-1]
	}
	want := q.Reference
	if _, after, has := strings.Cut(want, "#### "); has {
		want = after
	}
	r := markOf(sameNumber(found, want, 1e-6))
	r.Unparsed = unparsed
	return r
}

// sameNumber compares two texts as numbers, or as texts if one is no number.
func sameNumber(a, b string, within float64) bool {
	a, b = strings.TrimSpace(strings.ReplaceAll(a, ",", "")), strings.TrimSpace(strings.ReplaceAll(b, ",", ""))
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	if errX != nil || errY != nil {
		return a == b
	}
	return math.Abs(x-y) <= within
}

// aimeInteger compares the integer in the last box, or the last integer, with the reference.
func aimeInteger(a *Answer, q *tacho.Request) Result {
	found, boxed := lastBox(a.Content)
	if boxed {
		found = found[strings.LastIndex(found, ",")+1:]
	} else if all := integer.FindAllString(a.Content, -1); len(all) > 0 {
		found = all[len(all)-1]
	}
	right := wholeNumber(found) != "" && wholeNumber(found) == wholeNumber(q.Reference)
	return Result{Mark: markOf(right).Mark, Unparsed: !boxed}
}

// wholeNumber returns an integer without leading zeros, or "" if the text is none.
func wholeNumber(text string) string {
	text = strings.Trim(strings.NewReplacer(`\,`, "", "$", "", " ", "", ",", "").Replace(text), ".")
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return ""
	}
	return strconv.FormatInt(n, 10)
}

// lastBox returns the content of the last \boxed or \fbox with balanced braces.
func lastBox(text string) (string, bool) {
	for _, name := range []string{`\boxed`, `\fbox`} {
		at := strings.LastIndex(text, name)
		if at < 0 {
			continue
		}
		rest := text[at+len(name):]
		if !strings.HasPrefix(rest, "{") { // \boxed 42$
			found, _, _ := strings.Cut(strings.TrimSpace(rest), "$")
			return found, found != ""
		}
		depth := 0
		for i, c := range rest {
			switch c {
			case '{':
				depth++
			case '}':
				if depth--; depth == 0 {
					return rest[1:i], true
				}
			}
		}
	}
	return "", false
}
