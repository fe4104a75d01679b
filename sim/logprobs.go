package sim

import (
	"tacho/sim/words"
)

// The log probability of every token, and how much less likely each of the
// others in its place was than the one before it.
const (
	logprob     = -0.125
	logprobStep = -1.0
)

// alternatives are the texts of token k and of n others in its place.
func (a *ask) alternatives(k, n int) []string {
	said := a.plainText(k)
	all := []string{said}
	for i := range n {
		all = append(all, words.Text(words.Output(a.Seed+uint64(i)+1, k)))
	}
	return all
}

// plainText is the text of token k alone, whenever it is told.
func (a *ask) plainText(k int) string {
	switch {
	case a.eos && a.isLast(k+1):
		return ""
	case k < len(a.script):
		return a.script[k]
	}
	return words.Text(words.Output(a.Seed, k))
}

// completionLogprobs are those of tokens from up to but not including to, with n
// others for each.
func (a *ask) completionLogprobs(from, to, n int) *openaiCompletionLogprobs {
	l := &openaiCompletionLogprobs{TextOffset: []int{}, TokenLogprobs: []float64{}, Tokens: []string{}, TopLogprobs: []map[string]float64{}}
	for k := from; k < to; k++ {
		texts := a.alternatives(k, n)
		top := map[string]float64{}
		for i, text := range texts {
			if _, twice := top[text]; !twice {
				top[text] = logprob + float64(i)*logprobStep
			}
		}
		l.TextOffset = append(l.TextOffset, len(a.before)+k*words.Bytes)
		l.TokenLogprobs = append(l.TokenLogprobs, logprob)
		l.Tokens = append(l.Tokens, texts[0])
		l.TopLogprobs = append(l.TopLogprobs, top)
	}
	return l
}

// chatLogprobs are the same in the words of a chat.
func (a *ask) chatLogprobs(from, to, n int) *openaiChatLogprobs {
	one := func(text string, p float64) openaiTokenLogprob {
		bytes := []int{}
		for _, c := range []byte(text) {
			bytes = append(bytes, int(c))
		}
		return openaiTokenLogprob{Token: text, Logprob: p, Bytes: bytes}
	}
	l := &openaiChatLogprobs{Content: []openaiChatLogprob{}}
	for k := from; k < to; k++ {
		texts := a.alternatives(k, n)
		entry := openaiChatLogprob{openaiTokenLogprob: one(texts[0], logprob), TopLogprobs: []openaiTokenLogprob{}}
		for i, text := range texts[:n] {
			entry.TopLogprobs = append(entry.TopLogprobs, one(text, logprob+float64(i)*logprobStep))
		}
		l.Content = append(l.Content, entry)
	}
	return l
}
