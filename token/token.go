// Package token counts and cuts tokens with the model's own tokenizer.
//
// A Tokenizer is built in or loaded from a model's published files: tokenizer.json,
// tekken.json, a tiktoken rank file or a SentencePiece .model. It returns the same ids as
// the reference implementation of the format. Estimate is the last resort. Every Counter
// has a name and reports whether it is exact, so that reports never present an estimate
// as a measurement.
//
// The package reads no environment variables: paths, addresses and secrets are arguments.
package token

import (
	"context"
	"unicode/utf8"
)

// Counter counts the tokens of a text.
type Counter interface {
	// Count returns the number of tokens of text, without the special tokens a server may
	// add around the text.
	Count(ctx context.Context, text string) (int, error)
	// Name identifies the counter: "estimate", "server /tokenize", "tokenizer.json of
	// meta-llama/Llama-3.1-8B".
	Name() string
	// Exact reports whether Count agrees with the model's own tokenizer.
	Exact() bool
}

// ConversationCounter also counts conversations, including the tokens a server's chat
// template adds around the messages.
type ConversationCounter interface {
	Counter
	CountConversation(ctx context.Context, messages []Message) (int, error)
}

// estimateRunesPerToken is the average of common vocabularies on English prose.
const estimateRunesPerToken = 4

// Estimate is the Counter of last resort. It assumes four characters per token.
type Estimate struct{}

// Count implements Counter.
func (Estimate) Count(_ context.Context, text string) (int, error) {
	return (utf8.RuneCountInString(text) + estimateRunesPerToken - 1) / estimateRunesPerToken, nil
}

// Name implements Counter.
func (Estimate) Name() string { return "estimate" }

// Exact implements Counter.
func (Estimate) Exact() bool { return false }
