package workload

import (
	"encoding/binary"
	"hash/maphash"
	"slices"
	"sync"

	"tacho"
)

// A Sharing finds out how much of the prompts of a load begins like an earlier
// one of them: that much a server may find in its cache by design. It goes by
// the prompts themselves, so that no dataset has to know.
//
// A prompt is known by the hashes of its beginnings, at lengths that grow by
// half, so what is shared is an upper bound. Its zero value is ready, and safe
// for concurrent use.
type Sharing struct {
	mu             sync.Mutex
	seen           *beginnings
	prompt         []byte // the latest; its room is used again
	tokens, shared float64
}

const (
	sharingFirst = 16      // the shortest beginning: tokens or bytes
	sharingMost  = 1 << 20 // beginnings kept; what comes later is not looked at
)

// beginnings are hashes, in a filter of Bloom's: it takes the same two megabytes
// for any load. One in 400 hashes that it was never given looks known once it has
// all it may have, so a beginning in 400 counts as shared that is not.
type beginnings struct {
	n    int
	bits [16 * sharingMost / 64]uint64
}

// add takes a hash in, and says whether it was there.
func (b *beginnings) add(sum uint64) (known bool) {
	known = true
	step := sum>>32 | 1
	for i := range uint64(4) {
		bit := (sum + i*step) % (16 * sharingMost)
		word, mask := &b.bits[bit/64], uint64(1)<<(bit%64)
		known = known && *word&mask != 0
		*word |= mask
	}
	if !known {
		b.n++
	}
	return known
}

var sharingSeed = maphash.MakeSeed()

// Watch is the same workload, and its prompts are noted as they are made.
func (s *Sharing) Watch(w Workload) Workload { return watched{w, s} }

type watched struct {
	Workload
	sharing *Sharing
}

// Session implements tacho.Source.
func (w watched) Session(i uint64) (tacho.Session, error) {
	s, err := w.Workload.Session(i)
	// Later turns of a session repeat the ones before them, and are not counted.
	if len(s.Turns) > 0 {
		w.sharing.note(&s.Turns[0].Request, true)
	}
	return s, err
}

// Warmup implements Workload.
func (w watched) Warmup(i uint64) (tacho.Session, error) {
	s, err := w.Workload.Warmup(i)
	if len(s.Turns) > 0 {
		w.sharing.note(&s.Turns[0].Request, false)
	}
	return s, err
}

// note looks at a prompt, and counts it if it is measured.
func (s *Sharing) note(q *tacho.Request, measured bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != nil && s.seen.n > sharingMost {
		return
	}
	if share, ok := s.look(q); ok && measured {
		tokens := float64(max(q.InputTokens, 1))
		s.tokens += tokens
		s.shared += share * tokens
	}
}

// Share is the part of the prompt tokens that is shared; nil where no prompt
// could be looked at.
func (s *Sharing) Share() *float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens == 0 {
		return nil
	}
	share := s.shared / s.tokens
	return &share
}

// look is the part of a prompt that an earlier one begins with; false where
// there is no text in it.
func (s *Sharing) look(q *tacho.Request) (share float64, ok bool) {
	if s.seen == nil {
		s.seen = &beginnings{}
	}
	s.prompt = promptBytes(s.prompt[:0], q)
	prompt := s.prompt
	if len(prompt) == 0 {
		return 0, false
	}
	var sum uint64
	begun, known := 0, true
	for end := min(sharingFirst, len(prompt)); ; end = min(end+end/2, len(prompt)) {
		sum = sum*0x9e3779b97f4a7c15 ^ maphash.Bytes(sharingSeed, prompt[begun:end])
		if !s.seen.add(sum) {
			if known && begun > 0 {
				share = float64(end) / float64(len(prompt)) // up to here at most
			}
			known = false
		}
		if begun = end; end == len(prompt) {
			break
		}
	}
	if known {
		share = 1
	}
	return share, true
}

// promptBytes appends a prompt in one form, whichever it has.
func promptBytes(b []byte, q *tacho.Request) []byte {
	in := &q.Input
	b = append(slices.Grow(b, len(in.Text)+4*len(in.IDs)), in.Text...)
	for _, id := range in.IDs {
		b = append(b, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	for _, u := range in.Unread {
		b = slices.Grow(b, 4*u.Tokens)
		for k := range u.Tokens {
			b = binary.LittleEndian.AppendUint32(b, uint32((u.Number+uint64(k)<<32)*0x9e3779b97f4a7c15>>32))
		}
	}
	for _, m := range in.Messages {
		b = append(append(append(b, m.Role...), m.Content...), m.Raw...)
	}
	return b
}
