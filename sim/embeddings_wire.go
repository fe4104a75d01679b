package sim

import (
	"encoding/json"
	"errors"

	"github.com/tacho-bench/tacho/internal/wire"
)

// An embeddingsRequest is the body of a request.
type embeddingsRequest struct {
	Model          string               `json:"model,omitempty"`
	Input          embeddingsInputs     `json:"input,omitzero"`
	Messages       []wire.OpenAIMessage `json:"messages,omitempty"`        // vLLM: in place of Input
	EncodingFormat string               `json:"encoding_format,omitempty"` // float or base64
	Dimensions     int                  `json:"dimensions,omitempty"`
}

// embeddingsInputs are the inputs to embed: texts or lists of token ids.
type embeddingsInputs struct {
	Texts []string
	IDs   [][]int32 // nil means Texts
}

// MarshalJSON implements json.Marshaler.
func (in embeddingsInputs) MarshalJSON() ([]byte, error) {
	if in.IDs != nil {
		return json.Marshal(in.IDs)
	}
	return json.Marshal(in.Texts)
}

// UnmarshalJSON accepts a text, a list of texts, a list of ids or a list of lists
// of ids.
func (in *embeddingsInputs) UnmarshalJSON(b []byte) error {
	*in = embeddingsInputs{}
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

// An embeddingsResponse is the answer.
type embeddingsResponse struct {
	Object string           `json:"object"` // list
	Data   []embeddingsItem `json:"data"`
	Model  string           `json:"model"`
	Usage  embeddingsUsage  `json:"usage"`
}

// An embeddingsItem is the embedding of one input: a list of numbers, or the base64
// of their little-endian float32 values.
type embeddingsItem struct {
	Object    string          `json:"object"` // embedding
	Index     int             `json:"index"`
	Embedding json.RawMessage `json:"embedding"`
}

// embeddingsUsage is the server's token count.
type embeddingsUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}
