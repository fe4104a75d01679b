package workload

import (
	"hash/maphash"
	"slices"
	"sync"

	"github.com/tacho-bench/tacho"
)

// Sharing measures the fraction of prompt tokens that repeat the beginning of an earlier
// prompt. A server may find this fraction in its prefix cache by design. Sharing compares
// the prompts themselves, so it works with every dataset.
//
// A prompt is identified by the hashes of its prefixes, whose lengths grow by half, so
// the measured fraction is an upper bound. The zero value is ready to use and safe for
// concurrent use.
type Sharing struct {
	mu             sync.Mutex
	seen           *prefixFilter
	prompt         []byte // latest prompt; the buffer is reused
	tokens, shared float64
}

const (
	minPrefix   = 16      // length of the shortest prefix in tokens or bytes
	maxPrefixes = 1 << 20 // maximum number of prefixes; later prompts are ignored
)

// prefixFilter is a Bloom filter of hashes. It takes 2 MiB for any load. When it is full,
// its false positive rate is 1 in 400, so 1 in 400 prefixes counts as shared by mistake.
type prefixFilter struct {
	n    int
	bits [16 * maxPrefixes / 64]uint64
}

// add adds a hash and reports whether the filter already contained it.
func (b *prefixFilter) add(sum uint64) (known bool) {
	known = true
	step := sum>>32 | 1
	for i := range uint64(4) {
		bit := (sum + i*step) % (16 * maxPrefixes)
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

// Watch returns w with its prompts recorded as they are made.
func (s *Sharing) Watch(w Workload) Workload { return watched{w, s} }

type watched struct {
	Workload
	sharing *Sharing
}

// Session implements tacho.Source.
func (w watched) Session(i uint64) (tacho.Session, error) {
	s, err := w.Workload.Session(i)
	// Later turns repeat earlier turns of their session and are not counted.
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

// note records a prompt, and counts it if measured is set.
func (s *Sharing) note(q *tacho.Request, measured bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen != nil && s.seen.n > maxPrefixes {
		return
	}
	if share, ok := s.shareOf(q); ok && measured {
		tokens := float64(max(q.InputTokens, 1))
		s.tokens += tokens
		s.shared += share * tokens
	}
}

// Share returns the fraction of prompt tokens that are shared, or nil if no prompt was
// recorded.
func (s *Sharing) Share() *float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tokens == 0 {
		return nil
	}
	share := s.shared / s.tokens
	return &share
}

// shareOf returns the fraction of a prompt that repeats an earlier prompt. ok is false if
// the prompt contains no text.
func (s *Sharing) shareOf(q *tacho.Request) (share float64, ok bool) {
	if s.seen == nil {
		s.seen = &prefixFilter{}
	}
	s.prompt = promptBytes(s.prompt[:0], q)
	prompt := s.prompt
	if len(prompt) == 0 {
		return 0, false
	}
	var sum uint64
	begun, known := 0, true
	for end := min(minPrefix, len(prompt)); ; end = min(end+end/2, len(prompt)) {
		sum = sum*0x9e3779b97f4a7c15 ^ maphash.Bytes(sharingSeed, prompt[begun:end])
		if !s.seen.add(sum) {
			if known && begun > 0 {
				share = float64(end) / float64(len(prompt)) // upper bound
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

// promptBytes appends a prompt of any form as bytes.
func promptBytes(b []byte, q *tacho.Request) []byte {
	in := &q.Input
	b = append(slices.Grow(b, len(in.Text)+4*len(in.IDs)), in.Text...)
	for _, id := range in.IDs {
		b = append(b, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
	}
	for _, m := range in.Messages {
		b = append(append(append(b, m.Role...), m.Content...), m.Raw...)
	}
	return b
}
