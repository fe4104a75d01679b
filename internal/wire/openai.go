package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
)

// Paths of the OpenAI protocol of inference servers. Tokenize and Detokenize are extensions of vLLM.
const (
	OpenAICompletionsPath = "/v1/completions"
	OpenAIChatPath        = "/v1/chat/completions"
	OpenAIModelsPath      = "/v1/models"
	OpenAITokenizePath    = "/tokenize"
	OpenAIDetokenizePath  = "/detokenize"
)

// OpenAIDone is the payload that ends a stream.
const OpenAIDone = "[DONE]"

// An OpenAICompletionRequest is the body of a request to OpenAICompletionsPath. The first fields are in the order
// used by vLLM's own benchmark.
type OpenAICompletionRequest struct {
	Model             string               `json:"model,omitempty"`
	Prompt            OpenAIPrompt         `json:"prompt"`
	RepetitionPenalty *float64             `json:"repetition_penalty,omitempty"`
	MaxTokens         int                  `json:"max_tokens,omitempty"`
	Logprobs          *int                 `json:"logprobs"`
	Stream            bool                 `json:"stream,omitempty"`
	StreamOptions     *OpenAIStreamOptions `json:"stream_options,omitempty"`
	OpenAISampling
	AddSpecialTokens *bool  `json:"add_special_tokens,omitempty"`
	ReturnTokenIDs   bool   `json:"return_token_ids,omitempty"`
	CacheSalt        string `json:"cache_salt,omitempty"`
	Priority         *int   `json:"priority,omitempty"`
}

// An OpenAIChatRequest is the body of a request to OpenAIChatPath.
type OpenAIChatRequest struct {
	Model               string               `json:"model,omitempty"`
	Messages            []OpenAIMessage      `json:"messages"`
	MaxCompletionTokens int                  `json:"max_completion_tokens,omitempty"`
	MaxTokens           int                  `json:"max_tokens,omitempty"` // older name of max_completion_tokens
	Logprobs            bool                 `json:"logprobs,omitempty"`
	TopLogprobs         *int                 `json:"top_logprobs,omitempty"`
	Stream              bool                 `json:"stream,omitempty"`
	StreamOptions       *OpenAIStreamOptions `json:"stream_options,omitempty"`
	RepetitionPenalty   *float64             `json:"repetition_penalty,omitempty"`
	OpenAISampling
	ReturnTokenIDs bool   `json:"return_token_ids,omitempty"`
	CacheSalt      string `json:"cache_salt,omitempty"`
	Priority       *int   `json:"priority,omitempty"`
}

// OpenAISampling holds sampling parameters and stop conditions for completions and chat. For a nil field, the
// server chooses the value.
type OpenAISampling struct {
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

// OpenAIStreamOptions requests token counts from the server within a stream.
type OpenAIStreamOptions struct {
	IncludeUsage         bool `json:"include_usage"`
	ContinuousUsageStats bool `json:"continuous_usage_stats,omitempty"`
}

// An OpenAIPrompt is a text or a list of token ids. The JSON value may also be a list with a single prompt.
type OpenAIPrompt struct {
	Text string
	IDs  []int32 // nil means Text
}

// MarshalJSON implements json.Marshaler.
func (p OpenAIPrompt) MarshalJSON() ([]byte, error) {
	if p.IDs != nil {
		return json.Marshal(p.IDs)
	}
	return Marshal(p.Text)
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *OpenAIPrompt) UnmarshalJSON(b []byte) error {
	*p = OpenAIPrompt{}
	if json.Unmarshal(b, &p.Text) == nil {
		return nil
	}
	if json.Unmarshal(b, &p.IDs) == nil {
		return nil
	}
	p.IDs = nil
	var list []json.RawMessage
	if json.Unmarshal(b, &list) != nil {
		return errors.New("prompt must be a string or token ids")
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
	return errors.New("prompt must be a string or token ids")
}

// An OpenAIMessage is one entry of a conversation.
type OpenAIMessage struct {
	Role    string        `json:"role"`
	Content OpenAIContent `json:"content"`
	// Raw, if not nil, replaces the whole message, for messages with further fields.
	Raw json.RawMessage `json:"-"`
}

// MarshalJSON implements json.Marshaler.
func (m OpenAIMessage) MarshalJSON() ([]byte, error) {
	if m.Raw != nil {
		return m.Raw, nil
	}
	type message OpenAIMessage // without this method
	return Marshal(message(m))
}

// OpenAIContent is the content of a message.
type OpenAIContent = TextOr[OpenAIPart]

// An OpenAIPart is one piece of a message: text, audio, or the URL of an image or a video.
type OpenAIPart struct {
	Type       string            `json:"type"`
	Text       string            `json:"text"`
	ImageURL   json.RawMessage   `json:"image_url,omitempty"`
	VideoURL   json.RawMessage   `json:"video_url,omitempty"`
	InputAudio *OpenAIInputAudio `json:"input_audio,omitempty"`
}

// OpenAIInputAudio is an audio clip, base64-encoded in JSON.
type OpenAIInputAudio struct {
	Data   []byte `json:"data"`
	Format string `json:"format"`
}

// An OpenAITokenizeRequest asks OpenAITokenizePath to tokenize a text or, with Messages, a conversation rendered
// with the model's chat template.
type OpenAITokenizeRequest struct {
	Model            string          `json:"model,omitempty"`
	Prompt           *string         `json:"prompt,omitempty"`
	Messages         []OpenAIMessage `json:"messages,omitempty"`
	AddSpecialTokens *bool           `json:"add_special_tokens,omitempty"`
}

// An OpenAITokenizeResponse is the response of OpenAITokenizePath.
type OpenAITokenizeResponse struct {
	Count       int     `json:"count"`
	MaxModelLen int     `json:"max_model_len"`
	Tokens      []int32 `json:"tokens"`
}

// OpenAIStop is a list of stop strings. The JSON value may also be a single string.
type OpenAIStop []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *OpenAIStop) UnmarshalJSON(b []byte) error {
	var one string
	var list []string
	switch {
	case string(b) == "null":
	case json.Unmarshal(b, &one) == nil:
		list = []string{one}
	case json.Unmarshal(b, &list) != nil:
		return &json.UnmarshalTypeError{Value: "something else", Type: reflect.TypeFor[OpenAIStop](), Field: "stop"}
	}
	*s = list
	return nil
}

// An OpenAIModelList is the response of OpenAIModelsPath.
type OpenAIModelList struct {
	Object string        `json:"object"`
	Data   []OpenAIModel `json:"data"`
}

// An OpenAIModel is one entry of an OpenAIModelList. Root and MaxModelLen are extensions of vLLM.
type OpenAIModel struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root,omitempty"`
	MaxModelLen int    `json:"max_model_len,omitempty"`

	Meta *OpenAIModelMeta `json:"meta,omitempty"`
}

// OpenAIModelMeta holds the model properties llama.cpp adds to the protocol.
type OpenAIModelMeta struct {
	Vocab int `json:"n_vocab,omitempty"`
}
