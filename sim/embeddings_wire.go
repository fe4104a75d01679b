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
	Modality       string               `json:"modality,omitempty"`        // Infinity: type of the media at the input URLs, if the inputs are not texts
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

// A poolingRequest is the body of a request to PoolingPath.
type poolingRequest struct {
	Model    string           `json:"model,omitempty"`
	Truncate int              `json:"truncate_prompt_tokens"` // -1: to the model's maximum
	Input    embeddingsInputs `json:"input"`
}

// A poolingResponse is the answer to a poolingRequest.
type poolingResponse struct {
	ID      string          `json:"id"`
	Object  string          `json:"object"` // list
	Created int64           `json:"created"`
	Model   string          `json:"model"`
	Data    []poolingItem   `json:"data"`
	Usage   embeddingsUsage `json:"usage"`
}

// A poolingItem is the result for one input.
type poolingItem struct {
	Index  int             `json:"index"`
	Object string          `json:"object"` // pooling
	Data   json.RawMessage `json:"data"`
}

// A rerankRequest is the body of a request to RerankPath.
type rerankRequest struct {
	Model     string   `json:"model,omitempty"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	Truncate  int      `json:"truncate_prompt_tokens"`
}

// A rerankResponse is the answer to a rerankRequest: the documents, most relevant
// first.
type rerankResponse struct {
	ID      string         `json:"id"`
	Model   string         `json:"model"`
	Usage   rerankUsage    `json:"usage"`
	Results []rerankResult `json:"results"`
}

// rerankUsage is the server's token count.
type rerankUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// A rerankResult is the relevance of a document.
type rerankResult struct {
	Index          int            `json:"index"`
	Document       rerankDocument `json:"document"`
	RelevanceScore float64        `json:"relevance_score"`
}

// A rerankDocument is a document of the request.
type rerankDocument struct {
	Text string `json:"text"`
}
