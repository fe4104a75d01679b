// Package words is the vocabulary and the tokenizer of the simulated model, and
// generates its answers.
package words

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The simulator's tokenizer: a token is one word with the white space before it.
// Counting tokens is counting words, every generated token is a space and a word,
// and joining tokens never changes their number.
//
// The vocabulary has Size words of two syllables. A word outside the vocabulary is
// hashed onto a word of the vocabulary.
const (
	consonants = "bdfghjklmnprstvz"
	vowels     = "aeio"
	syllables  = len(consonants) * len(vowels)
	Size       = syllables * syllables
	Bytes      = 5 // a space and two syllables
)

// vocabulary is the concatenated text of all tokens.
var vocabulary = func() string {
	b := make([]byte, 0, Size*Bytes)
	for id := range Size {
		b = append(b, ' ')
		for _, s := range [2]int{id / syllables, id % syllables} {
			b = append(b, consonants[s/len(vowels)], vowels[s%len(vowels)])
		}
	}
	return string(b)
}()

// Text returns the text of one token, with its leading space.
func Text(id int32) string {
	at := int(uint32(id)%uint32(Size)) * Bytes
	return vocabulary[at : at+Bytes]
}

// ID returns the token of a word without surrounding white space.
func ID(word string) int32 {
	if len(word) == Bytes-1 {
		first, ok1 := syllable(word[:2])
		second, ok2 := syllable(word[2:])
		if ok1 && ok2 {
			return int32(first*syllables + second)
		}
	}
	return int32(Hash(word) % uint64(Size))
}

func syllable(s string) (int, bool) {
	c, v := strings.IndexByte(consonants, s[0]), strings.IndexByte(vowels, s[1])
	return c*len(vowels) + v, c >= 0 && v >= 0
}

// Hash is FNV-1a. It is the same in every process, so ids can be compared between
// runs.
func Hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// A Span is one token of a text: text[Start:Stop] is its word.
type Span struct{ Start, Stop int }

// Each yields the words of a text in order.
func Each(text string) func(yield func(Span) bool) {
	return func(yield func(Span) bool) {
		start := -1
		for i, r := range text {
			switch space := isSpace(r); {
			case space && start >= 0:
				if !yield(Span{start, i}) {
					return
				}
				start = -1
			case !space && start < 0:
				start = i
			}
		}
		if start >= 0 {
			yield(Span{start, len(text)})
		}
	}
}

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || r-'\t' < 5 && r >= '\t'
	}
	return unicode.IsSpace(r)
}

// Count returns the length of a text in tokens.
func Count(text string) int {
	n := 0
	for range Each(text) {
		n++
	}
	return n
}

// Encode converts a text to token ids.
func Encode(text string) []int32 {
	var ids []int32
	for w := range Each(text) {
		ids = append(ids, ID(text[w.Start:w.Stop]))
	}
	return ids
}

// Decode converts token ids to text.
func Decode(ids []int32) string {
	b := make([]byte, 0, len(ids)*Bytes)
	for _, id := range ids {
		b = append(b, Text(id)...)
	}
	return string(b)
}

// EOS is the end of sequence, a token without text outside the vocabulary.
const EOS = int32(Size)

// Output returns the k-th token of the answer to a prompt with the given seed. The
// same prompt gets the same answer, as with greedy decoding.
func Output(seed uint64, k int) int32 {
	z := seed + uint64(k+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int32((z ^ z>>31) % uint64(Size))
}
