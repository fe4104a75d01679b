// Package token counts and cuts tokens as the model's own tokenizer does.
//
// A Tokenizer is loaded from the files a model is published with
// (tokenizer.json, tekken.json, a tiktoken rank file, a SentencePiece .model) or
// is one of those built in, and gives the same ids as the reference
// implementation of that format. Estimate is the last resort. Each is a Counter,
// and says who it is, so that no figure rests on a silent guess.
//
// The package reads no environment: paths, addresses and secrets are arguments.
package token

import (
	"context"
	"unicode/utf8"
)

// A Counter counts the tokens of a text.
type Counter interface {
	// Count is the number of tokens of text, without the special tokens a
	// server may add around it.
	Count(ctx context.Context, text string) (int, error)
	// Name says who counts: "estimate", "server /tokenize",
	// "tokenizer.json of meta-llama/Llama-3.1-8B".
	Name() string
	// Exact says whether the count is the model's own.
	Exact() bool
}

// A TalkCounter also counts conversations, with all that a server puts around
// their messages.
type TalkCounter interface {
	Counter
	CountTalk(ctx context.Context, messages []Message) (int, error)
}

// estimateRunesPerToken is what common vocabularies reach on English prose.
const estimateRunesPerToken = 4

// Estimate is the Counter of last resort: about four characters a token.
type Estimate struct{}

// Count implements Counter.
func (Estimate) Count(_ context.Context, text string) (int, error) {
	return (utf8.RuneCountInString(text) + estimateRunesPerToken - 1) / estimateRunesPerToken, nil
}

// Name implements Counter.
func (Estimate) Name() string { return "estimate" }

// Exact implements Counter.
func (Estimate) Exact() bool { return false }
