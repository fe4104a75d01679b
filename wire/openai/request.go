// Package openai is the shape of the OpenAI protocol as inference servers
// speak it, with the additions of vLLM: the types of both ends, and a fast
// reading of stream chunks for clients.
package openai

import (
	"encoding/json"
	"errors"
	"fmt"

	"tacho/wire/plain"
)

// The paths of the protocol. Tokenize and Detokenize are vLLM's.
const (
	CompletionsPath = "/v1/completions"
	ChatPath        = "/v1/chat/completions"
	ModelsPath      = "/v1/models"
	TokenizePath    = "/tokenize"
	DetokenizePath  = "/detokenize"
)

// Done is the payload that ends a stream.
const Done = "[DONE]"

// A CompletionRequest is the body of a request to CompletionsPath. The order
// of its first fields is the order in which vLLM's own benchmark sends them.
type CompletionRequest struct {
	Model             string         `json:"model,omitempty"`
	Prompt            Prompt         `json:"prompt"`
	RepetitionPenalty *float64       `json:"repetition_penalty,omitempty"`
	MaxTokens         int            `json:"max_tokens,omitempty"`
	Logprobs          *int           `json:"logprobs"`
	Stream            bool           `json:"stream,omitempty"`
	StreamOptions     *StreamOptions `json:"stream_options,omitempty"`
	Sampling
	AddSpecialTokens *bool  `json:"add_special_tokens,omitempty"`
	ReturnTokenIDs   bool   `json:"return_token_ids,omitempty"`
	CacheSalt        string `json:"cache_salt,omitempty"`
	Priority         *int   `json:"priority,omitempty"`
}

// A ChatRequest is the body of a request to ChatPath.
type ChatRequest struct {
	Model               string         `json:"model,omitempty"`
	Messages            []Message      `json:"messages"`
	MaxCompletionTokens int            `json:"max_completion_tokens,omitempty"`
	MaxTokens           int            `json:"max_tokens,omitempty"` // the older name of the same limit
	Logprobs            bool           `json:"logprobs,omitempty"`
	TopLogprobs         *int           `json:"top_logprobs,omitempty"`
	Stream              bool           `json:"stream,omitempty"`
	StreamOptions       *StreamOptions `json:"stream_options,omitempty"`
	RepetitionPenalty   *float64       `json:"repetition_penalty,omitempty"`
	Sampling
	ReturnTokenIDs bool   `json:"return_token_ids,omitempty"`
	CacheSalt      string `json:"cache_salt,omitempty"`
	Priority       *int   `json:"priority,omitempty"`
}

// Sampling is how tokens are chosen and when to stop, in both kinds of
// request. A nil is left to the server.
type Sampling struct {
	IgnoreEOS        bool     `json:"ignore_eos,omitempty"`
	MinTokens        int      `json:"min_tokens,omitempty"`
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"top_p,omitempty"`
	TopK             *int     `json:"top_k,omitempty"`
	MinP             *float64 `json:"min_p,omitempty"`
	FrequencyPenalty *float64 `json:"frequency_penalty,omitempty"`
	PresencePenalty  *float64 `json:"presence_penalty,omitempty"`
	Seed             *int64   `json:"seed,omitempty"`
}

// StreamOptions asks for the server's counts within a stream.
type StreamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats,omitempty"`
}

// A Prompt is a text or token ids. On the wire it may also be a list of one
// such prompt.
type Prompt struct {
	Text string
	IDs  []int32 // nil means Text
}

// MarshalJSON implements json.Marshaler.
func (p Prompt) MarshalJSON() ([]byte, error) {
	if p.IDs != nil {
		return json.Marshal(p.IDs)
	}
	return plain.Marshal(p.Text)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *Prompt) UnmarshalJSON(b []byte) error {
	*p = Prompt{}
	if json.Unmarshal(b, &p.Text) == nil {
		return nil
	}
	if json.Unmarshal(b, &p.IDs) == nil {
		return nil
	}
	p.IDs = nil
	var list []json.RawMessage
	if json.Unmarshal(b, &list) != nil {
		return errors.New("prompt must be a text or token ids")
	}
	if len(list) != 1 {
		return fmt.Errorf("prompt holds %d prompts, want 1", len(list))
	}
	if json.Unmarshal(list[0], &p.Text) == nil {
		return nil
	}
	if json.Unmarshal(list[0], &p.IDs) == nil {
		return nil
	}
	return errors.New("prompt must be a text or token ids")
}

// A Message is one entry of a conversation.
type Message struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
	// Raw, if not nil, is written in place of the two above: a message that has
	// more to it.
	Raw json.RawMessage `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (m Message) MarshalJSON() ([]byte, error) {
	if m.Raw != nil {
		return m.Raw, nil
	}
	type message Message // without this method
	return plain.Marshal(message(m))
}

// Content is what a message says.
type Content = plain.TextOr[Part]

// A Part is one piece of a message: text, audio, or the address of an
// image or a video.
type Part struct {
	Type       string          `json:"type"`
	Text       string          `json:"text"`
	ImageURL   json.RawMessage `json:"image_url,omitempty"`
	VideoURL   json.RawMessage `json:"video_url,omitempty"`
	InputAudio *InputAudio     `json:"input_audio,omitempty"`
}

// InputAudio is a sound, in base64 on the wire.
type InputAudio struct {
	Data   []byte `json:"data"`
	Format string `json:"format"`
}

// A TokenizeRequest asks TokenizePath for the tokens of a text or, with
// Messages, of a conversation under the model's chat template.
type TokenizeRequest struct {
	Model            string    `json:"model,omitempty"`
	Prompt           *string   `json:"prompt,omitempty"`
	Messages         []Message `json:"messages,omitempty"`
	AddSpecialTokens *bool     `json:"add_special_tokens,omitempty"`
}

// A TokenizeResponse is the answer of TokenizePath.
type TokenizeResponse struct {
	Count       int     `json:"count"`
	MaxModelLen int     `json:"max_model_len"`
	Tokens      []int32 `json:"tokens"`
}

// A DetokenizeRequest asks DetokenizePath for the text of token ids.
type DetokenizeRequest struct {
	Model  string  `json:"model,omitempty"`
	Tokens []int32 `json:"tokens"`
}

// A DetokenizeResponse is the answer of DetokenizePath.
type DetokenizeResponse struct {
	Prompt string `json:"prompt"`
}
