// Package embeddings is the shape of OpenAI's embeddings protocol: the types
// of both ends.
package embeddings

import (
	"encoding/json"
	"errors"

	"tacho/wire/openai"
)

// Path is where requests go, and InfinityPath where they go at Infinity, which
// lists its models at InfinityModelsPath.
const (
	Path               = "/v1/embeddings"
	InfinityPath       = "/embeddings"
	InfinityModelsPath = "/models"
)

// A Request is the body of a request.
type Request struct {
	Model          string           `json:"model,omitempty"`
	Input          Inputs           `json:"input,omitzero"`
	Messages       []openai.Message `json:"messages,omitempty"`        // vLLM: in place of Input
	Modality       string           `json:"modality,omitempty"`        // Infinity: what the inputs are addresses of, if they are no texts
	EncodingFormat string           `json:"encoding_format,omitempty"` // float or base64
	Dimensions     int              `json:"dimensions,omitempty"`
}

// Inputs are what to embed: texts or lists of token ids.
type Inputs struct {
	Texts []string
	IDs   [][]int32 // nil means Texts
}

// MarshalJSON implements json.Marshaler.
func (in Inputs) MarshalJSON() ([]byte, error) {
	if in.IDs != nil {
		return json.Marshal(in.IDs)
	}
	return json.Marshal(in.Texts)
}

// UnmarshalJSON takes a text, a list of texts, a list of ids or a list of such.
func (in *Inputs) UnmarshalJSON(b []byte) error {
	*in = Inputs{}
	var text string
	if json.Unmarshal(b, &text) == nil {
		in.Texts = []string{text}
		return nil
	}
	if json.Unmarshal(b, &in.Texts) == nil {
		return nil
	}
	in.Texts = nil
	var ids []int32
	if json.Unmarshal(b, &ids) == nil {
		in.IDs = [][]int32{ids}
		return nil
	}
	if json.Unmarshal(b, &in.IDs) == nil {
		return nil
	}
	return errors.New("input must be a text, token ids, or a list of either")
}

// A Response is the answer.
type Response struct {
	Object string `json:"object"` // list
	Data   []Item `json:"data"`
	Model  string `json:"model"`
	Usage  Usage  `json:"usage"`
}

// An Item is the embedding of one input: a list of numbers, or the base64 of
// their little-endian float32 values.
type Item struct {
	Object    string          `json:"object"` // embedding
	Index     int             `json:"index"`
	Embedding json.RawMessage `json:"embedding"`
}

// Usage is the server's count of tokens.
type Usage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}
