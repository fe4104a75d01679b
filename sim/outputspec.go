package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/sim/words"
)

// An outputSpec describes the text that a request wants. The zero value leaves the
// text to the model.
type outputSpec struct {
	choices int      // number of choices, all with the same text at the same time; 0: one
	prefix  string   // text before the answer
	script  []string // the text of each token, instead of words

	stopAt int             // number of tokens after which a stop string or token ends the answer; 0: none
	silent bool            // the token that stops the answer has no text
	reason json.RawMessage // stop_reason, if the request named the stop

	hold         int      // bytes of text to hold back, because a stop string might begin in them
	holdPrefixes []string // hold back only prefixes of these and send no event without text; nil: always hold back
	stopText     string   // the stop string found at stopAt; empty if there is none
	cut          int      // bytes of text sent up to stopAt
}

// stops are the stop conditions of a request.
type stops struct {
	strings []string
	ids     []int32
	min     int  // minimum number of tokens
	include bool // the stop string is part of the answer
	always  bool // always hold back the length of the longest string, and send an event for every token
	atEnd   bool // a string counts only at the end of a token, and not in the last allowed token
}

// count is the number of tokens of all choices if each has n tokens.
func (f *outputSpec) count(n int) int { return n * max(1, f.choices) }

// end makes the answer stop with its token n, unless it ends earlier.
func (a *generation) end(n int, silent bool, reason any) {
	if n > a.limit {
		return
	}
	a.limit, a.stopAt, a.silent = n, n, silent
	if reason != nil {
		a.reason = appendJSON(nil, reason)
	}
}

// setScript sets the text of the answer, in tokens of a few characters. Stop
// conditions do not apply. If the end of sequence is ignored, blanks follow the
// text.
func (a *generation) setScript(text string) {
	const size = 4
	a.script = []string{}
	for runes := range slices.Chunk([]rune(text), size) {
		a.script = append(a.script, string(runes))
	}
	if a.ignoreEOS {
		for len(a.script) < a.limit {
			a.script = append(a.script, " ")
		}
		return
	}
	a.ignoreEOS = true
	a.end(len(a.script)+1, true, nil)
}

// stopAtFirst makes the answer end at the first stop string or token.
func (a *generation) stopAtFirst(of stops) {
	if len(of.strings)+len(of.ids) == 0 || a.script != nil || a.fx.hostile != nil {
		return // no stop conditions, or a fixed text
	}
	longest := 0
	for _, s := range of.strings {
		longest = max(longest, len(s))
	}
	if !of.include && longest > 0 {
		a.hold = longest - 1
		if !of.always {
			a.holdPrefixes = of.strings
		}
	}
	var tail string // end of the text, long enough to contain a stop string
	for k := range a.limit {
		if slices.Contains(of.ids, a.tokenID(k)) && k >= of.min {
			a.end(k+1, true, a.tokenID(k))
			return
		}
		tail += words.Text(a.tokenID(k))
		if keep := longest + words.Bytes; len(tail) > keep {
			tail = tail[len(tail)-keep:]
		}
		begin, found := of.find(tail)
		if found == "" || k < of.min || of.atEnd && k+1 == a.limit {
			continue
		}
		a.cut = (k+1)*words.Bytes - len(tail) + begin
		if of.include {
			a.cut += len(found)
		}
		a.stopText = found
		a.end(k+1, false, found)
		return
	}
}

// find returns the first of the strings in a text.
func (of *stops) find(text string) (begin int, found string) {
	index := strings.Index
	if of.atEnd {
		index = strings.LastIndex
	}
	for _, s := range of.strings {
		i := index(text, s)
		if i < 0 || of.atEnd && i+len(s) < len(text) {
			continue
		}
		if found == "" || i < begin {
			begin, found = i, s
		}
	}
	return begin, found
}

// stoppedBy returns the stop string that ended the answer, or an empty string.
func (a *generation) stoppedBy() string {
	if a.output != a.stopAt {
		return ""
	}
	return a.stopText
}

// visibleBytes is the number of text bytes sent with the first k tokens.
func (a *generation) visibleBytes(k int) int {
	n := k * words.Bytes
	switch {
	case !a.isLast(k) && a.holdPrefixes != nil:
		return n - a.begun(n)
	case !a.isLast(k):
		return max(0, n-a.hold)
	case a.stoppedBy() != "":
		return a.cut
	case a.eos:
		return n - words.Bytes
	}
	return n
}

// begun is the number of trailing bytes among the first n that could begin a stop
// string.
func (a *generation) begun(n int) int {
	tail := string(a.piece(nil, max(0, n-a.hold), n))
	for tail != "" && !slices.ContainsFunc(a.holdPrefixes, func(s string) bool { return strings.HasPrefix(s, tail) }) {
		tail = tail[1:]
	}
	return len(tail)
}

// noVisibleText reports whether tokens from up to but not including to add no text,
// because all of it is held back or part of the stop string.
func (a *generation) noVisibleText(from, to int) bool {
	return a.holdPrefixes != nil && a.visibleBytes(from) >= a.visibleBytes(to)
}

// piece appends the bytes of text from from to to.
func (a *generation) piece(b []byte, from, to int) []byte {
	for from < to {
		word := words.Text(words.Output(a.Seed, from/words.Bytes))[from%words.Bytes:]
		word = word[:min(len(word), to-from)]
		b = append(b, word...)
		from += len(word)
	}
	return b
}

// quoted appends a text, escaped for a JSON string.
func quoted(b []byte, text string) []byte {
	j := appendJSON(nil, text)
	return append(b, j[1:len(j)-1]...)
}
