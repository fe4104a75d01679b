package token

// trie finds the keys that are prefixes of a text. Nodes are numbers, and all edges are
// in one open-addressed table.
type trie struct {
	edges  []uint64 // (node<<8 | byte)+1 in the high bits, child in the low 32
	values []int32  // by node; noToken if no key ends there
	used   int
}

const trieChildBits = 24

func newTrie() *trie {
	return &trie{edges: make([]uint64, 1<<10), values: []int32{noToken}}
}

func edgeKey(node uint32, b byte) uint64 { return (uint64(node)<<8 | uint64(b)) + 1 }

// child returns the child for byte b, or 0 if there is none. The root is node 0, and no
// edge leads back to it.
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

// insert sets the value of a non-empty key.
func (t *trie) insert(key string, value int32) {
	if len(key) > maxTokenBytes {
		beyond("a token of %d bytes, more than %d", len(key), maxTokenBytes)
	}
	node := uint32(0)
	for i := range len(key) {
		next := t.child(node, key[i])
		if next == 0 {
			if next = uint32(len(t.values)); next >= 1<<trieChildBits {
				beyond("the texts of the tokens differ in more than %d bytes", 1<<trieChildBits)
			}
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

// longest returns the value and length of the longest key that is a prefix of text. The
// length is 0 if there is none.
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
