package sim

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strconv"
	"strings"
	"sync"
)

// sums matches the questions of the dataset arithmetic. The simulated model answers these questions, most of them right.
var sums = regexp.MustCompile(`What is (\d{1,6}) \* (\d{1,6}) ([+-]) (\d{1,6})\?`)

// wrongShare is the share of sums that the simulated model gets wrong, whatever the load.
const wrongShare = 0.1

// solve answers a question, if the prompt contains one. The answer depends on the prompt alone.
func solve(prompt string, seed uint64) (text string, ok bool) {
	m := sums.FindStringSubmatch(prompt)
	if m == nil {
		return "", false
	}
	a, _ := strconv.Atoi(m[1]) // digits, as the others
	b, _ := strconv.Atoi(m[2])
	c, _ := strconv.Atoi(m[4])
	product := a * b
	if rng := rand.New(rand.NewPCG(seed, 0x73756d)); rng.Float64() < wrongShare {
		product += 1 + rng.IntN(9)
	}
	result, verb := product+c, "add"
	if m[3] == "-" {
		result, verb = product-c, "subtract"
	}
	return fmt.Sprintf("I multiply %d by %d first, which makes %d. Then I have to %s %d, so the number that I get in the end is %d.\n#### %d",
		a, b, product, verb, c, result, result), true
}

// answerTo makes the model answer a question that it knows.
func (a *generation) answerTo(prompt string) {
	if a.script != nil {
		return
	}
	if text, ok := solve(prompt, a.Seed); ok {
		a.setScript(text)
	}
}

// A lastAnswer is the newest answer of other requests, which a fault sends to the wrong client.
type lastAnswer struct {
	mu     sync.Mutex
	script []string
	seed   uint64
}

func (l *lastAnswer) replace(a *generation) (script []string, seed uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	script, seed = l.script, l.seed
	l.script, l.seed = a.script, a.Seed
	return script, seed
}

// corrupt applies faults that change the text of an answer above a load.
func (s *Server) corrupt(a *generation) {
	script, seed := s.last.replace(a)
	above := func(limit int) bool { return limit >= 0 && s.counters.inFlight.Load() > int64(limit) }
	fx := &a.fx
	switch {
	case above(fx.swapAbove) && script != nil && a.script != nil:
		a.rewrite(strings.Join(script, ""))
	case above(fx.swapAbove) && seed != 0 && a.script == nil:
		a.Seed = seed
	case a.script == nil:
	case above(fx.digitAbove):
		a.rewrite(otherDigit(strings.Join(a.script, ""), a.Seed))
	case above(fx.cutTextAbove):
		text := strings.Join(a.script, "")
		a.rewrite(text[:len(text)/2])
	case above(fx.schemaAbove):
		a.rewrite(otherType(strings.Join(a.script, "")))
	case above(fx.rewordAbove):
		a.rewrite(reworded(strings.Join(a.script, ""), s.faults.draw()))
	}
}

// rewrite replaces the text of a scripted answer.
func (a *generation) rewrite(text string) {
	if a.limit == a.stopAt { // the limit was the end of the old text
		a.limit = a.asked
	}
	a.stopAt, a.ignoreEOS = 0, a.asksExact
	a.setScript(strings.ToValidUTF8(text, ""))
}

// otherDigit changes one digit and everything computed from it: all numbers from there on.
func otherDigit(text string, seed uint64) string {
	places := regexp.MustCompile(`\d+`).FindAllStringIndex(text, -1)
	if len(places) < 3 {
		return text
	}
	from := places[2+int(seed%uint64(len(places)-2))][0]
	return text[:from] + regexp.MustCompile(`\d`).ReplaceAllStringFunc(text[from:], func(d string) string {
		return string('0' + (d[0]-'0'+1)%10)
	})
}

// otherType gives the first value of a JSON object another type.
func otherType(text string) string {
	before, after, found := strings.Cut(text, `": `)
	if !found {
		return "[]"
	}
	end := strings.IndexAny(after, ",}")
	if end < 0 {
		return "[]"
	}
	return before + `": {"value": null}` + after[end:]
}

// reworded changes words that do not matter, as models do if the order of additions changes.
func reworded(text string, draw float64) string {
	pairs := [][2]string{{"which makes", "which gives"}, {"Then I have to", "Next I have to"}, {"in the end", "at the end"}, {"first,", "at first,"}}
	p := pairs[int(draw*float64(len(pairs)))%len(pairs)]
	return strings.Replace(text, p[0], p[1], 1)
}
