package words

import "slices"

// A Prompt is the prompt of a request in tokens.
type Prompt struct {
	Tokens      int      // length
	Seed        uint64   // equal for equal prompts; determines the text of the answer
	IsIDs       bool     // the prompt was given as token ids
	BlockTokens int      // tokens in a KV block; 0 if block hashes are not needed
	Blocks      []uint64 // for each full block, a hash of all tokens up to its end
	Chars       int      // length of the text in bytes

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
	if p.BlockTokens > 0 {
		p.Blocks = slices.Grow(p.Blocks, (p.inBlock+len(ids))/p.BlockTokens)
	}
	for len(ids) > 0 {
		n := len(ids)
		if p.BlockTokens > 0 {
			n = min(n, p.BlockTokens-p.inBlock)
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

// Add adds a token by its id or by a hash of its text.
func (p *Prompt) Add(token uint64) {
	p.Seed = mixed(p.Seed, token)
	p.count(1)
}

func mixed(seed, token uint64) uint64 {
	seed = (seed ^ token) * 1099511628211
	return seed ^ seed>>29
}

// count counts n tokens already mixed into the seed. They must not cross the end of
// a block.
func (p *Prompt) count(n int) {
	p.Tokens += n
	if p.BlockTokens > 0 {
		if p.inBlock += n; p.inBlock == p.BlockTokens {
			p.inBlock, p.Blocks = 0, append(p.Blocks, p.Seed)
		}
	}
}

// WithAnswer returns the block hashes of the prompt and its answer. A later turn
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
