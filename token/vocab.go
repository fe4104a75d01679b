package token

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// maxTokenID limits ids, so that a corrupt file cannot cause huge allocations.
const maxTokenID = 1<<24 - 1

// vocabulary holds the tokens of a model by id and by text. Its layout is flat (one byte
// slice, offsets, one open-addressed table): one read or write moves it from or to a
// cache file, and the garbage collector has nothing to scan.
type vocabulary struct {
	blob    []byte
	offsets []uint32 // token i is blob[offsets[i]:offsets[i+1]]
	slots   []uint32 // id+1 by hash of the text; 0 is empty
}

// vocabEntry is the input of newVocabulary for one token.
type vocabEntry struct {
	text   []byte
	id     int32
	hidden bool // has an id, but lookup does not find it
}

// newVocabulary builds the tables. If two entries share a text, lookup finds the later
// one. If two entries share an id, the later text wins.
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
		return vocabulary{}, fmt.Errorf("the highest id is %d, but there are only %d tokens", last, len(entries))
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
	checkTable("the vocabulary", len(v.slots), func(i int) bool { return v.slots[i] != 0 })
	return v, nil
}

// tableSize returns a power of two that leaves at least three eighths of a table with n
// entries empty, so that probe sequences stay short.
func tableSize(n int) int { return 1 << bits.Len(uint(n*8/5+1)) }

func (v *vocabulary) insert(id int32) {
	text := v.text(id)
	mask := uint64(len(v.slots) - 1)
	at := hashString(string(text))
	for n := range uint64(maxProbes) {
		i := (at + n) & mask
		if s := v.slots[i]; s == 0 || string(v.text(int32(s-1))) == string(text) {
			v.slots[i] = uint32(id) + 1
			return
		}
	}
	beyond("the vocabulary has more than %d tokens with neighbouring hashes", maxProbes)
}

// size returns the highest id plus 1.
func (v *vocabulary) size() int { return max(len(v.offsets)-1, 0) }

// text returns the text of a token, empty if there is no such id.
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

// hashString is a fast hash with the same result in every process, because cache files
// store tables built with it. It does not resist chosen keys, so checkTable limits the
// time of a lookup.
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
