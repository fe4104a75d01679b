package token

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dlclark/regexp2/v2"
)

// span is a match in a text, or the text between two matches.
type span struct {
	start, end int
	match      bool
}

// finder divides a text into consecutive spans.
type finder func(w *work, spans []span, s string) []span

// appendSpan appends s[start:end] as a match, preceded by the text since done.
func appendSpan(spans []span, done, start, end int) []span {
	if done < start {
		spans = append(spans, span{done, start, false})
	}
	return append(spans, span{start, end, true})
}

// findRunes matches single characters.
func findRunes(is func(rune) bool) finder {
	return func(_ *work, spans []span, s string) []span {
		done := 0
		for i, r := range s {
			if is(r) {
				end := i + utf8.RuneLen(r)
				spans = appendSpan(spans, done, i, end)
				done = end
			}
		}
		return appendRest(spans, done, s)
	}
}

// findText matches a fixed text.
func findText(text string) finder {
	return func(_ *work, spans []span, s string) []span {
		done := 0
		for text != "" {
			i := strings.Index(s[done:], text)
			if i < 0 {
				break
			}
			spans = appendSpan(spans, done, done+i, done+i+len(text))
			done += i + len(text)
		}
		return appendRest(spans, done, s)
	}
}

// findExpr matches a regular expression.
func findExpr(expr string) (finder, error) {
	if p, err := parsePattern(expr); err == nil {
		return p.spans, nil
	}
	if err := checkLength("expression", len(expr), maxExpression); err != nil {
		return nil, err
	}
	re, err := regexp2.Compile(expr, regexp2.Unicode, regexp2.OptionMaxBacktrackingStackSize(maxStack))
	if err != nil {
		return nil, fmt.Errorf("expression %q: %w", expr, err)
	}
	re.MatchTimeout = maxMatch
	return func(w *work, spans []span, s string) []span { return regexpSpans(re, w, spans, s) }, nil
}

func (p *pattern) spans(w *work, spans []span, s string) []span {
	done := 0
	for {
		start, end := p.find(s, done, w)
		if start == len(s) {
			return appendRest(spans, done, s)
		}
		spans = appendSpan(spans, done, start, end)
		done = end
	}
}

// regexpSpans handles expressions that parsePattern does not support. The engine counts
// in characters.
func regexpSpans(re *regexp2.Regexp, w *work, spans []span, s string) []span {
	done, runes, bytes := 0, 0, 0
	advance := func(to int) int {
		for ; runes < to; runes++ {
			bytes += runeSize(s, bytes)
		}
		return bytes
	}
	from := time.Now() //nolint:forbidigo // a limit for hostile files, not a measurement
	m, err := re.FindStringMatch(s)
	for m != nil {
		start := advance(m.RuneIndex)
		end := advance(m.RuneIndex + m.RuneLength)
		if start < end {
			spans = appendSpan(spans, done, start, end)
			done = end
		}
		if m, err = re.FindNextMatch(m); time.Since(from) > w.search { //nolint:forbidigo // as above
			break
		}
	}
	w.search -= time.Since(from) //nolint:forbidigo // as above
	if err != nil || w.search < 0 {
		beyond("the expression %.100q takes more time or memory for a text than a tokenizer may use", re.String())
	}
	return appendRest(spans, done, s)
}

func appendRest(spans []span, done int, s string) []span {
	if done < len(s) {
		spans = append(spans, span{done, len(s), false})
	}
	return spans
}

// behavior defines how split treats the matches.
type behavior string

const (
	removed            behavior = "Removed"
	isolated           behavior = "Isolated"
	mergedWithPrevious behavior = "MergedWithPrevious"
	mergedWithNext     behavior = "MergedWithNext"
	contiguous         behavior = "Contiguous"
)

var behaviors = []behavior{removed, isolated, mergedWithPrevious, mergedWithNext, contiguous}

// apply joins and removes spans in place.
func (b behavior) apply(spans []span) []span {
	switch b {
	case removed:
		return slices.DeleteFunc(spans, func(s span) bool { return s.match })
	case mergedWithPrevious:
		return joinSpans(spans, func(s span, before bool) bool { return s.match && !before })
	case mergedWithNext:
		slices.Reverse(spans)
		spans = joinSpans(spans, func(s span, before bool) bool { return s.match && !before })
		slices.Reverse(spans)
		return spans
	case contiguous:
		return joinSpans(spans, func(s span, before bool) bool { return s.match == before })
	}
	return spans
}

// joinSpans joins a span to the previous span if join returns true. before tells join
// whether the previous span was a match.
func joinSpans(spans []span, join func(s span, before bool) bool) []span {
	out := spans[:0]
	before := false
	for _, s := range spans {
		if n := len(out); n > 0 && join(s, before) {
			out[n-1].start = min(out[n-1].start, s.start)
			out[n-1].end = max(out[n-1].end, s.end)
		} else {
			out = append(out, s)
		}
		before = s.match
	}
	return out
}
