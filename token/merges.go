package token

// mergeTable maps a pair of tokens to the rank of its merge and the merged token. Like
// vocabulary, it is flat and open-addressed: one read or write moves it from or to a
// cache file, and the garbage collector has nothing to scan.
type mergeTable struct {
	keys   []uint64 // left<<32 | right, plus 1 because 0 is empty
	values []uint64 // rank<<32 | merged id
}

func newMergeTable(n int) mergeTable {
	size := tableSize(n)
	return mergeTable{keys: make([]uint64, size), values: make([]uint64, size)}
}

func pairKey(left, right int32) uint64 { return uint64(uint32(left))<<32 | uint64(uint32(right)) + 1 }

// set adds a merge. A later rank for the same pair replaces the earlier rank, as in the
// reference implementation.
func (m *mergeTable) set(left, right, rank, merged int32) {
	key := pairKey(left, right)
	mask := uint64(len(m.keys) - 1)
	at := mix(key)
	for n := range uint64(maxProbes) {
		i := (at + n) & mask
		if k := m.keys[i]; k == 0 || k == key {
			m.keys[i], m.values[i] = key, uint64(uint32(rank))<<32|uint64(uint32(merged))
			return
		}
	}
	beyond("merges: more than %d with neighbouring hashes", maxProbes)
}

// check limits the time of a lookup.
func (m *mergeTable) check() {
	checkTable("merges", len(m.keys), func(i int) bool { return m.keys[i] != 0 })
}

// noMerge sorts after every merge.
const noMerge = ^uint64(0)

// get returns rank<<32 | merged id of a pair, or noMerge.
func (m *mergeTable) get(left, right int32) uint64 {
	key := pairKey(left, right)
	mask := uint64(len(m.keys) - 1)
	for i := mix(key) & mask; ; i = (i + 1) & mask {
		switch m.keys[i] {
		case key:
			return m.values[i]
		case 0:
			return noMerge
		}
	}
}

// involves reports whether some merge uses or produces one of the tokens.
func (m *mergeTable) involves(ids []int32) bool {
	wanted := map[int32]bool{}
	for _, id := range ids {
		wanted[id] = id != noToken
	}
	for i, key := range m.keys {
		if key == 0 {
			continue
		}
		key--
		if wanted[int32(key>>32)] || wanted[int32(uint32(key))] || wanted[int32(uint32(m.values[i]))] {
			return true
		}
	}
	return false
}
