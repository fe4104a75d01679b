package sim

import (
	"github.com/tacho-bench/tacho/sim/words"
)

// logprob is the log probability of every token. Each alternative is less likely
// than the previous one by logprobStep.
const (
	logprob     = -0.125
	logprobStep = -1.0
)

// alternatives returns the texts of token k and of n alternatives.
func (a *generation) alternatives(k, n int) []string {
	text := a.plainText(k)
	all := []string{text}
	for i := range n {
		all = append(all, words.Text(words.Output(a.Seed+uint64(i)+1, k)))
	}
	return all
}

// plainText is the text of token k, even if it is held back.
func (a *generation) plainText(k int) string {
	switch {
	case a.eos && a.isLast(k+1):
		return ""
	case k < len(a.script):
		return a.script[k]
	}
	return words.Text(words.Output(a.Seed, k))
}

// completionLogprobs returns the log probabilities of tokens from up to but not
// including to, with n alternatives each.
func (a *generation) completionLogprobs(from, to, n int) *openaiCompletionLogprobs {
	l := &openaiCompletionLogprobs{TextOffset: []int{}, TokenLogprobs: []float64{}, Tokens: []string{}, TopLogprobs: []map[string]float64{}}
	for k := from; k < to; k++ {
		texts := a.alternatives(k, n)
		top := map[string]float64{}
		for i, text := range texts {
			if _, twice := top[text]; !twice {
				top[text] = logprob + float64(i)*logprobStep
			}
		}
		l.TextOffset = append(l.TextOffset, len(a.prefix)+k*words.Bytes)
		l.TokenLogprobs = append(l.TokenLogprobs, logprob)
		l.Tokens = append(l.Tokens, texts[0])
		l.TopLogprobs = append(l.TopLogprobs, top)
	}
	return l
}

// chatLogprobs returns the same values in the chat format.
func (a *generation) chatLogprobs(from, to, n int) *openaiChatLogprobs {
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
