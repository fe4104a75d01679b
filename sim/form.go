package sim

import (
	"encoding/json"
	"slices"
	"strings"

	"tacho/wire/openai"
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

	hold     int  // bytes of text kept back, for a stop string might begin in them
	cutShort bool // a stop string comes at stopAt
	cut      int  // bytes of text before it
}

// count is how many tokens n tokens of each choice are.
func (f *form) count(n int) int { return n * max(1, f.choices) }

// end has the answer stop with token n of it, unless it ends before.
func (a *ask) end(n int, silent bool, reason any) {
	if n > a.limit {
		return
	}
	a.limit, a.stopAt, a.silent = n, n, silent
	if reason != nil {
		a.reason = appendJSON(nil, reason)
	}
}

// say has the answer be a text, in tokens of a few characters. Nothing ends it
// earlier; a model that must go on has blanks to say.
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

// stops has the answer end at the first of some strings or tokens that appears
// after min tokens.
func (a *ask) stops(at openai.Stop, ids []int32, include bool, min int) {
	if a.script != nil || a.fx.hostile != nil {
		return // these say what they say
	}
	longest := 0
	for _, s := range at {
		longest = max(longest, len(s))
	}
	if !include && longest > 0 {
		a.hold = longest - 1
	}
	var tail string // of what was said: enough to find a stop string in
	for k := range a.limit {
		if slices.Contains(ids, a.tokenID(k)) && k >= min {
			a.end(k+1, true, a.tokenID(k))
			return
		}
		tail += tokenText(a.tokenID(k))
		if keep := longest + wordBytes; len(tail) > keep {
			tail = tail[len(tail)-keep:]
		}
		begin, found := firstOf(tail, at)
		if found == "" || k < min {
			continue
		}
		a.cut = (k+1)*wordBytes - len(tail) + begin
		if include {
			a.cut += len(found)
		}
		a.cutShort = true
		a.end(k+1, false, found)
		return
	}
}

// firstOf finds the first of some strings in a text.
func firstOf(text string, of []string) (begin int, found string) {
	for _, s := range of {
		if i := strings.Index(text, s); i >= 0 && (found == "" || i < begin) {
			begin, found = i, s
		}
	}
	return begin, found
}

// shown is how many bytes of text have been told with the first k tokens.
func (a *ask) shown(k int) int {
	n := k * wordBytes
	if !a.isLast(k) {
		return max(0, n-a.hold)
	}
	if a.eos {
		n -= wordBytes
	}
	if a.cutShort && a.output == a.stopAt {
		return a.cut
	}
	return n
}

// piece appends the bytes of text from one to another.
func (a *ask) piece(b []byte, from, to int) []byte {
	for from < to {
		word := tokenText(outputID(a.seed, from/wordBytes))[from%wordBytes:]
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
