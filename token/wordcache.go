package token

import (
	"strings"
	"sync/atomic"
)

const (
	wordCacheSlots = 1 << 16
	maxCachedWord  = 64 // bytes; longer words rarely repeat
)

// wordCache caches the ids of words in a direct-mapped table. A new word replaces the
// previous word in its slot, so the cache never grows and readers take no lock. The zero
// value is ready to use.
type wordCache struct {
	slots [wordCacheSlots]atomic.Pointer[cachedWord]
}

type cachedWord struct {
	word string
	ids  []int32
}

func (c *wordCache) get(word string, hash uint64) ([]int32, bool) {
	w := c.slots[hash%wordCacheSlots].Load()
	if w == nil || w.word != word {
		return nil, false
	}
	return w.ids, true
}

func (c *wordCache) put(word string, hash uint64, ids []int32) {
	c.slots[hash%wordCacheSlots].Store(&cachedWord{strings.Clone(word), append([]int32(nil), ids...)})
}
