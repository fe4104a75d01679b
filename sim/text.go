package sim

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The simulator's tokenizer: a token is one word together with the white space
// before it. Counting is therefore counting words, every token the simulator
// writes is a space and a word, and joining tokens never changes their number.
//
// The vocabulary has vocabSize words of two syllables. A word outside it is
// hashed onto it, as an unknown word is in a small vocabulary.
const (
	consonants = "bdfghjklmnprstvz"
	vowels     = "aeio"
	syllables  = len(consonants) * len(vowels)
	vocabSize  = syllables * syllables
	wordBytes  = 5 // a space and two syllables
)

// vocabulary is every token's text, one after another.
var vocabulary = func() string {
	b := make([]byte, 0, vocabSize*wordBytes)
	for id := range vocabSize {
		b = append(b, ' ')
		for _, s := range [2]int{id / syllables, id % syllables} {
			b = append(b, consonants[s/len(vowels)], vowels[s%len(vowels)])
		}
	}
	return string(b)
}()

// tokenText is the text of one token, with its leading space.
func tokenText(id int32) string {
	at := int(uint32(id)%uint32(vocabSize)) * wordBytes
	return vocabulary[at : at+wordBytes]
}

// tokenID is the token of a word without white space around it.
func tokenID(word string) int32 {
	if len(word) == wordBytes-1 {
		first, ok1 := syllable(word[:2])
		second, ok2 := syllable(word[2:])
		if ok1 && ok2 {
			return int32(first*syllables + second)
		}
	}
	return int32(hashWord(word) % uint64(vocabSize))
}

func syllable(s string) (int, bool) {
	c, v := strings.IndexByte(consonants, s[0]), strings.IndexByte(vowels, s[1])
	return c*len(vowels) + v, c >= 0 && v >= 0
}

// hashWord is FNV-1a: the same in every process, so that ids can be compared
// between runs.
func hashWord(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// A span is one token of a text: text[start:stop] is its word.
type span struct{ start, stop int }

// words yields the words of a text, in order.
func words(text string) func(yield func(span) bool) {
	return func(yield func(span) bool) {
		start := -1
		for i, r := range text {
			switch space := isSpace(r); {
			case space && start >= 0:
				if !yield(span{start, i}) {
					return
				}
				start = -1
			case !space && start < 0:
				start = i
			}
		}
		if start >= 0 {
			yield(span{start, len(text)})
		}
	}
}

func isSpace(r rune) bool {
	if r < utf8.RuneSelf {
		return r == ' ' || r-'\t' < 5 && r >= '\t'
	}
	return unicode.IsSpace(r)
}

// countTokens is the length of a text in tokens.
func countTokens(text string) int {
	n := 0
	for range words(text) {
		n++
	}
	return n
}

// encode is a text as token ids.
func encode(text string) []int32 {
	var ids []int32
	for w := range words(text) {
		ids = append(ids, tokenID(text[w.start:w.stop]))
	}
	return ids
}

// decode is the text of token ids.
func decode(ids []int32) string {
	b := make([]byte, 0, len(ids)*wordBytes)
	for _, id := range ids {
		b = append(b, tokenText(id)...)
	}
	return string(b)
}

// eosID is the end of sequence: a token without text, outside the vocabulary.
const eosID = int32(vocabSize)

// hostileTexts are what a model might say to hurt whoever shows it, each one
// token and ready to stand inside a JSON string.
var hostileTexts = map[string][]string{
	"html": {
		` <script>alert(\"x\")</script>`, ` </td></table></style></script>`, ` <img/src=x/onerror=alert(1)>`,
		` &lt;b&gt;&amp;`, ` '\"><svg/onload=alert(1)>`, ` {{7*7}}`, ` <!--`, ` ]]>`,
	},
	"control": {
		` \u0000\u0001`, ` \u001b[31mred\u001b[0m`, ` \u001b]0;title\u0007`, ` \u202egnp.exe`, ` \u200b\ufeff`,
		` =cmd|'/c'!A1`, ` \ud83d\ude00`, ` |pipe|`, ` %s%n`,
	},
	"utf8": {
		" \xff\xfe", " \xc3(", " \xe2\x82", " \xf0\x9f\x98", " \xed\xa0\x80", ` \ud800`, " \ufffd",
	},
}

// hostileTokens are the hostile texts of one kind, or of all.
func hostileTokens(kind string) ([]string, error) {
	if texts, ok := hostileTexts[kind]; ok {
		return texts, nil
	}
	if kind != "all" {
		return nil, fmt.Errorf("%q is none of html, control, utf8, all", kind)
	}
	return slices.Concat(hostileTexts["html"], hostileTexts["control"], hostileTexts["utf8"]), nil
}

// outputID is the k-th token of the answer to a prompt with the given seed:
// the same prompt gets the same answer, as greedy decoding would give.
func outputID(seed uint64, k int) int32 {
	z := seed + uint64(k+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return int32((z ^ z>>31) % uint64(vocabSize))
}
