package score

import (
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/tacho-bench/tacho"
)

// choiceOf scores letters of a range in three tiers. An answer in the last tier is unparsed.
func choiceOf(letters string) func(*Answer, *tacho.Request) Result {
	says := regexp.MustCompile(`answer is \(?([` + letters + `])\)?`)
	label := regexp.MustCompile(`(?s).*[aA]nswer:\s*([` + letters + `])`)
	single := regexp.MustCompile(`\b[` + letters + `]\b`)
	last := func(re *regexp.Regexp, text string) string {
		all := re.FindAllStringSubmatch(text, -1)
		if len(all) == 0 {
			return ""
		}
		return all[len(all)-1][len(all[len(all)-1])-1]
	}
	return func(a *Answer, q *tacho.Request) Result {
		found, unparsed := "", false
		for i, re := range []*regexp.Regexp{says, label, single} {
			if found = last(re, a.Content); found != "" {
				unparsed = i == 2
				break
			}
		}
		want := strings.Trim(strings.TrimSpace(q.Reference), "()")
		r := markOf(found != "" && strings.EqualFold(found, want))
		r.Unparsed = unparsed || found == ""
		return r
	}
}

func exactText(a *Answer, q *tacho.Request) Result {
	return markOf(strings.TrimSpace(a.Content) == strings.TrimSpace(q.Reference))
}

func containsText(a *Answer, q *tacho.Request) Result {
	return markOf(strings.Contains(strings.ToLower(a.Content), strings.ToLower(strings.TrimSpace(q.Reference))))
}

func matchesRegex(a *Answer, q *tacho.Request) Result {
	re, err := regexp.Compile(q.Reference)
	if err != nil {
		return Result{Mark: LeftOut, Why: "the reference is no regular expression"}
	}
	if instructions(q.Reference)*len(a.Content) > maxMatch {
		return Result{Mark: LeftOut, Why: "the match takes too long"}
	}
	return markOf(re.MatchString(a.Content))
}

// maxMatch bounds the time of a match: the instructions of a regular expression, times the bytes of the answer. At most
// all instructions run at each byte.
const maxMatch = 100_000_000

// instructions returns the size of a valid regular expression.
func instructions(expression string) int {
	parsed, err := syntax.Parse(expression, syntax.Perl)
	if err != nil {
		return 0
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return 0
	}
	return len(program.Inst)
}
