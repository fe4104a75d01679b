package words

import "slices"

// A Prompt is what was asked, in tokens.
type Prompt struct {
	Tokens int      // its length
	Seed   uint64   // equal for equal prompts; the text of the answer follows from it
	IsIDs  bool     // it came as token ids
	Every  int      // tokens in a KV block; 0 if nobody wants to know the blocks
	Blocks []uint64 // for each full block a hash of all up to its end
	Chars  int      // length of its text

	inBlock int // tokens after the last full block
}

// AddText adds the words of a text.
func (p *Prompt) AddText(text string) {
	p.Chars += len(text)
	for w := range Each(text) {
		p.Add(Hash(text[w.Start:w.Stop]))
	}
}

// AddIDs adds tokens by their ids.
func (p *Prompt) AddIDs(ids []int32) {
	p.IsIDs = p.IsIDs || len(ids) > 0
	if p.Every > 0 {
		p.Blocks = slices.Grow(p.Blocks, (p.inBlock+len(ids))/p.Every)
	}
	for len(ids) > 0 {
		n := len(ids)
		if p.Every > 0 {
			n = min(n, p.Every-p.inBlock)
		}
		seed := p.Seed
		for _, id := range ids[:n] {
			seed = mixed(seed, uint64(id))
		}
		p.Seed = seed
		p.count(n)
		ids = ids[n:]
	}
}

// AddUnread adds n tokens that are not told: those of the same number are equal, one
// by one. Its seed is not that of any ids.
func (p *Prompt) AddUnread(number uint64, n int) {
	p.IsIDs = p.IsIDs || n > 0
	for at := 0; at < n; {
		some := n - at
		if p.Every > 0 {
			some = min(some, p.Every-p.inBlock)
		}
		p.Seed = mixed(mixed(mixed(p.Seed, number), uint64(at)), uint64(some))
		p.count(some)
		at += some
	}
}

// Add adds a token, by its id or a hash of it.
func (p *Prompt) Add(token uint64) {
	p.Seed = mixed(p.Seed, token)
	p.count(1)
}

func mixed(seed, token uint64) uint64 {
	seed = (seed ^ token) * 1099511628211
	return seed ^ seed>>29
}

// count counts n tokens that were mixed in, none of them beyond a block.
func (p *Prompt) count(n int) {
	p.Tokens += n
	if p.Every > 0 {
		if p.inBlock += n; p.inBlock == p.Every {
			p.inBlock, p.Blocks = 0, append(p.Blocks, p.Seed)
		}
	}
}

// WithAnswer are the blocks of the prompt and of the answer to it: a next turn
// that repeats both finds both in the cache.
func (p Prompt) WithAnswer(tokens int) []uint64 {
	seed := p.Seed
	for k := range tokens {
		id := Output(seed, k)
		if p.IsIDs {
			p.Add(uint64(id))
		} else {
			p.Add(Hash(Text(id)[1:]))
		}
	}
	return p.Blocks
}
