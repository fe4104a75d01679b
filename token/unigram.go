package token

import (
	"math"
	"slices"
)

// unigram splits a word into the pieces with the highest sum of scores.
type unigram struct {
	vocab    *vocabulary
	scores   []float64
	pieces   *trie
	fallback [256]int32 // ids of <0xNN>; noToken for bytes without one
	unk      int32
	unkScore float64
	single   bool // sums have single precision, as in SentencePiece
	cache    wordCache
}

// unknownPenalty is the distance between the lowest score of a piece and the score of an
// unknown character.
const unknownPenalty = 10.0

func newUnigram(d *definition, unk int32) *unigram {
	m := &unigram{vocab: &d.vocab, scores: d.scores, pieces: newTrie(), unk: unk, fallback: d.byteTokens()}
	worst := math.Inf(1)
	for id := range int32(d.vocab.size()) {
		text := string(d.vocab.text(id))
		if found, ok := d.vocab.lookup(text); ok && found == id && text != "" {
			m.pieces.insert(text, id)
		}
		worst = min(worst, d.scores[id])
	}
	if sp := d.SentencePiece; sp != nil {
		m.single, worst = true, sp.MinScore
	}
	m.unkScore = worst - unknownPenalty
	m.unkScore = m.rounded(m.unkScore)
	return m
}

// appendWord implements model.
func (m *unigram) appendWord(dst []int32, word string) []int32 {
	if len(word) > maxCachedWord {
		return m.appendBest(dst, word)
	}
	hash := hashString(word)
	if ids, ok := m.cache.get(word, hash); ok {
		return append(dst, ids...)
	}
	from := len(dst)
	dst = m.appendBest(dst, word)
	m.cache.put(word, hash, dst[from:])
	return dst
}

// pathNode is the best path to an offset in the word: the path's last piece, the start of
// the piece, and the score of the path.
type pathNode struct {
	id    int32
	start int32 // noToken if no path reaches this offset yet
	score float64
}

// offer replaces the path to n if the new path has a higher score.
func (m *unigram) offer(n *pathNode, id int32, start int, score float64) {
	score = m.rounded(score)
	if n.start == noToken || score > n.score {
		*n = pathNode{id, int32(start), score}
	}
}

// rounded returns a sum with the precision of the reference.
func (m *unigram) rounded(score float64) float64 {
	if m.single {
		return float64(float32(score))
	}
	return score
}

// furthestScore is the sum at which SentencePiece starts again from zero, because single
// precision becomes too coarse.
const furthestScore = 100_000

// restart subtracts the score of the first node from all nodes.
func (m *unigram) restart(nodes []pathNode) {
	offset := nodes[0].score
	for i := range nodes {
		nodes[i].score = m.rounded(nodes[i].score - offset)
	}
}

// appendBest runs the Viterbi search over all pieces.
func (m *unigram) appendBest(dst []int32, word string) []int32 {
	nodes := make([]pathNode, len(word)+1)
	for i := range nodes {
		nodes[i].start = noToken
	}
	furthest := 0 // furthest offset reached by a path
	for i := 0; i < len(word); {
		if m.single && math.Abs(nodes[i].score) > furthestScore {
			m.restart(nodes[i : furthest+1])
		}
		here := nodes[i].score
		size := runeSize(word, i)
		single := false
		node := uint32(0)
		for j := i; j < len(word); j++ {
			if node = m.pieces.child(node, word[j]); node == 0 {
				break
			}
			if id := m.pieces.values[node]; id != noToken {
				m.offer(&nodes[j+1], id, i, m.scores[id]+here)
				furthest = max(furthest, j+1)
				single = single || j+1 == i+size
			}
		}
		if !single {
			furthest = max(furthest, i+size)
			m.offer(&nodes[i+size], m.unk, i, m.unkScore+here)
		}
		i += size
	}
	return m.appendPath(dst, word, nodes)
}

// appendPath walks the best path backwards and appends its pieces in order. Adjacent
// unknown characters form one unknown piece.
func (m *unigram) appendPath(dst []int32, word string, nodes []pathNode) []int32 {
	var starts []int
	for end := len(word); end > 0; {
		n := nodes[end]
		start := int(n.start)
		for n.id == m.unk && start > 0 && nodes[start].id == m.unk {
			start = int(nodes[start].start)
		}
		starts = append(starts, start)
		end = start
	}
	for i, start := range slices.Backward(starts) {
		end := len(word)
		if i > 0 {
			end = starts[i-1]
		}
		dst = m.appendPiece(dst, word[start:end])
	}
	return dst
}

// appendPiece appends the id of a piece, the ids of its bytes, or the unknown id.
func (m *unigram) appendPiece(dst []int32, text string) []int32 {
	if id, ok := m.vocab.lookup(text); ok {
		return append(dst, id)
	}
	from := len(dst)
	for i := range len(text) {
		id := m.fallback[text[i]]
		if id == noToken {
			return append(dst[:from], m.unk)
		}
		dst = append(dst, id)
	}
	return dst
}
