package token

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// maxTokenID bounds ids, so that a broken file cannot ask for all the memory.
const maxTokenID = 1<<24 - 1

// A vocabulary is the tokens of a model, by id and by text. It is flat (one
// run of bytes, offsets, one open-addressed table), so that it is written to
// and read from a cache in one piece and costs the garbage collector nothing.
type vocabulary struct {
	blob    []byte
	offsets []uint32 // token i is blob[offsets[i]:offsets[i+1]]
	slots   []uint32 // id+1 by hash of its text; 0 is empty
}

// A vocabEntry is a token on its way into a vocabulary.
type vocabEntry struct {
	text   []byte
	id     int32
	hidden bool // has an id but is not found by its text
}

// newVocabulary lays out entries. Where two share a text the later wins the
// lookup; where two share an id the later is its text.
func newVocabulary(entries []vocabEntry) (vocabulary, error) {
	last := int32(-1)
	size := 0
	sorted := true
	for _, e := range entries {
		sorted = sorted && e.id > last
		last = max(last, e.id)
		size += len(e.text)
	}
	if int(last) > 8*len(entries)+1<<20 {
		return vocabulary{}, fmt.Errorf("the highest id is %d, for %d tokens", last, len(entries))
	}
	if !sorted {
		entries = slices.Clone(entries)
		slices.SortStableFunc(entries, func(a, b vocabEntry) int { return cmp.Compare(a.id, b.id) })
	}
	v := vocabulary{
		blob:    make([]byte, 0, size),
		offsets: make([]uint32, 1, int(last)+2),
		slots:   make([]uint32, tableSize(len(entries))),
	}
	for i, e := range entries {
		if i+1 < len(entries) && entries[i+1].id == e.id {
			continue
		}
		for len(v.offsets) <= int(e.id) {
			v.offsets = append(v.offsets, uint32(len(v.blob)))
		}
		v.blob = append(v.blob, e.text...)
		v.offsets = append(v.offsets, uint32(len(v.blob)))
		if !e.hidden {
			v.insert(e.id)
		}
	}
	return v, nil
}

// tableSize is a power of two that leaves at least three eighths of a table of
// n entries empty, so that searches end soon.
func tableSize(n int) int { return 1 << bits.Len(uint(n*8/5+1)) }

func (v *vocabulary) insert(id int32) {
	text := v.text(id)
	mask := uint64(len(v.slots) - 1)
	for i := hashString(string(text)) & mask; ; i = (i + 1) & mask {
		if s := v.slots[i]; s == 0 || string(v.text(int32(s-1))) == string(text) {
			v.slots[i] = uint32(id) + 1
			return
		}
	}
}

// size is one more than the highest id.
func (v *vocabulary) size() int { return max(len(v.offsets)-1, 0) }

// text is the text of a token, empty for an id that has none.
func (v *vocabulary) text(id int32) []byte {
	if id < 0 || int(id) >= v.size() {
		return nil
	}
	return v.blob[v.offsets[id]:v.offsets[id+1]]
}

// lookup finds the id of a text.
func (v *vocabulary) lookup(text string) (int32, bool) {
	return v.lookupHash(text, hashString(text))
}

func (v *vocabulary) lookupHash(text string, hash uint64) (int32, bool) {
	if len(v.slots) == 0 {
		return 0, false
	}
	mask := uint64(len(v.slots) - 1)
	for i := hash & mask; ; i = (i + 1) & mask {
		s := v.slots[i]
		if s == 0 {
			return 0, false
		}
		if string(v.blob[v.offsets[s-1]:v.offsets[s]]) == text {
			return int32(s - 1), true
		}
	}
}

const (
	hashSeed  = 0x9e3779b97f4a7c15
	hashPrime = 0xd6e8feb86659fd93
)

// hashString is a fast hash that is the same in every process, as a table in
// a cache file needs. It is no defence against chosen keys: keys come from
// the model.
func hashString(s string) uint64 {
	h := uint64(hashSeed) ^ uint64(len(s))
	for len(s) >= 8 {
		w := uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 |
			uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
		h = mix(h ^ w)
		s = s[8:]
	}
	var w uint64
	if len(s) >= 4 {
		w = uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
		n := len(s)
		w |= (uint64(s[n-4]) | uint64(s[n-3])<<8 | uint64(s[n-2])<<16 | uint64(s[n-1])<<24) << 32
	} else if len(s) > 0 {
		w = uint64(s[0]) | uint64(s[len(s)/2])<<8 | uint64(s[len(s)-1])<<16
	}
	return mix(h ^ w)
}

func mix(x uint64) uint64 {
	hi, lo := bits.Mul64(x, hashPrime)
	return hi ^ lo
}
