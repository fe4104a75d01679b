package token

// A trie finds which of its keys are prefixes of a text. Nodes are numbers and
// all edges live in one open-addressed table.
type trie struct {
	edges  []uint64 // (node<<8 | byte)+1 in the high bits, child in the low 32
	values []int32  // by node; noToken where no key ends
	used   int
}

const trieChildBits = 24

func newTrie() *trie {
	return &trie{edges: make([]uint64, 1<<10), values: []int32{noToken}}
}

func edgeKey(node uint32, b byte) uint64 { return (uint64(node)<<8 | uint64(b)) + 1 }

// child is the node that b leads to, or 0: no edge leads back to the root.
func (t *trie) child(node uint32, b byte) uint32 {
	key := edgeKey(node, b)
	mask := uint64(len(t.edges) - 1)
	for i := mix(key) & mask; ; i = (i + 1) & mask {
		switch e := t.edges[i]; {
		case e>>trieChildBits == key:
			return uint32(e & (1<<trieChildBits - 1))
		case e == 0:
			return 0
		}
	}
}

// insert sets the value of a key that is not empty.
func (t *trie) insert(key string, value int32) {
	node := uint32(0)
	for i := range len(key) {
		next := t.child(node, key[i])
		if next == 0 {
			next = uint32(len(t.values))
			t.values = append(t.values, noToken)
			t.addEdge(edgeKey(node, key[i]), next)
		}
		node = next
	}
	t.values[node] = value
}

func (t *trie) addEdge(key uint64, child uint32) {
	if t.used++; 2*t.used > len(t.edges) {
		old := t.edges
		t.edges = make([]uint64, 2*len(old))
		for _, e := range old {
			if e != 0 {
				t.place(e)
			}
		}
	}
	t.place(key<<trieChildBits | uint64(child))
}

func (t *trie) place(edge uint64) {
	mask := uint64(len(t.edges) - 1)
	i := mix(edge>>trieChildBits) & mask
	for t.edges[i] != 0 {
		i = (i + 1) & mask
	}
	t.edges[i] = edge
}

// longest is the value of the longest key that text starts with, and its
// length; the length is 0 when there is none.
func (t *trie) longest(text string) (value int32, length int) {
	node := uint32(0)
	for i := range len(text) {
		if node = t.child(node, text[i]); node == 0 {
			break
		}
		if v := t.values[node]; v != noToken {
			value, length = v, i+1
		}
	}
	return value, length
}
