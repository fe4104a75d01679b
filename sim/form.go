package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"tacho/sim/words"
)

// A form is what a request wants of the text of its answer. The zero value is
// as many words as the model likes.
type form struct {
	choices int      // answers asked for; all say the same, at the same time. 0 is one
	before  string   // stands before the answer
	script  []string // the text of each token, in place of words

	stopAt int             // so many tokens and no more: something stops the answer there; 0 is nothing
	silent bool            // the token that stops it has no text
	reason json.RawMessage // what stopped it, if the request named it

	hold     int      // bytes of text that are held back, for a stop string might begin in them
	begins   []string // hold back only what begins one of these, and send no event without text; nil: hold back always
	stopText string   // the stop string that comes at stopAt; empty if none does
	cut      int      // bytes of text that are told until then
}

// stops are what a request names to end its answer.
type stops struct {
	strings []string
	ids     []int32
	min     int  // tokens that come in any case
	include bool // the string that ends the answer is part of it
	always  bool // hold back as much text as the longest string has, whatever it says, and send an event for every token
	atEnd   bool // a string counts only where a token ends with it, and not in the last token that is allowed
}

// count is how many tokens n tokens of each choice are.
func (f *form) count(n int) int { return n * max(1, f.choices) }

// end makes the answer stop with its token n, unless it ends earlier.
func (a *ask) end(n int, silent bool, reason any) {
	if n > a.limit {
		return
	}
	a.limit, a.stopAt, a.silent = n, n, silent
	if reason != nil {
		a.reason = appendJSON(nil, reason)
	}
}

// say makes the answer a given text, in tokens of a few characters. Nothing ends
// it earlier. Where the end of sequence is ignored, blanks follow it.
func (a *ask) say(text string) {
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
func (a *ask) stopAtFirst(of stops) {
	if len(of.strings)+len(of.ids) == 0 || a.script != nil || a.fx.hostile != nil {
		return // nothing stops it, or it says what it says
	}
	longest := 0
	for _, s := range of.strings {
		longest = max(longest, len(s))
	}
	if !of.include && longest > 0 {
		a.hold = longest - 1
		if !of.always {
			a.begins = of.strings
		}
	}
	var tail string // of what was said: enough to find a stop string in
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

// find finds the first of the strings in a text.
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

// stoppedBy is the stop string at which the answer ended, empty if it ended at
// something else.
func (a *ask) stoppedBy() string {
	if a.output != a.stopAt {
		return ""
	}
	return a.stopText
}

// shown is how many bytes of text have been told with the first k tokens.
func (a *ask) shown(k int) int {
	n := k * words.Bytes
	switch {
	case !a.isLast(k) && a.begins != nil:
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

// begun is how many of the last of n bytes of text could begin a stop string.
func (a *ask) begun(n int) int {
	tail := string(a.piece(nil, max(0, n-a.hold), n))
	for tail != "" && !slices.ContainsFunc(a.begins, func(s string) bool { return strings.HasPrefix(s, tail) }) {
		tail = tail[1:]
	}
	return len(tail)
}

// unheard is whether tokens from up to but not including to tell nothing,
// because all their text is held back or is the string that ends the answer.
func (a *ask) unheard(from, to int) bool {
	return a.begins != nil && a.shown(from) >= a.shown(to)
}

// piece appends the bytes of text from one to another.
func (a *ask) piece(b []byte, from, to int) []byte {
	for from < to {
		word := words.Text(words.Output(a.Seed, from/words.Bytes))[from%words.Bytes:]
		word = word[:min(len(word), to-from)]
		b = append(b, word...)
		from += len(word)
	}
	return b
}

// quoted appends a text as it stands inside a JSON string.
func quoted(b []byte, text string) []byte {
	j := appendJSON(nil, text)
	return append(b, j[1:len(j)-1]...)
}
