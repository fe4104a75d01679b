package embeddings

import "encoding/json"

// The paths of vLLM's endpoints for models that read and do not write.
const (
	PoolingPath = "/pooling"
	RerankPath  = "/v1/rerank"
)

// A PoolingRequest is the body of a request to PoolingPath.
type PoolingRequest struct {
	Model    string `json:"model,omitempty"`
	Truncate int    `json:"truncate_prompt_tokens"` // -1: to what the model takes
	Input    Inputs `json:"input"`
}

// A PoolingResponse is its answer.
type PoolingResponse struct {
	ID      string        `json:"id"`
	Object  string        `json:"object"` // list
	Created int64         `json:"created"`
	Model   string        `json:"model"`
	Data    []PoolingItem `json:"data"`
	Usage   Usage         `json:"usage"`
}

// A PoolingItem is what the model made of one input.
type PoolingItem struct {
	Index  int             `json:"index"`
	Object string          `json:"object"` // pooling
	Data   json.RawMessage `json:"data"`
}

// A RerankRequest is the body of a request to RerankPath.
type RerankRequest struct {
	Model     string   `json:"model,omitempty"`
	Query     string   `json:"query"`
	Documents []string `json:"documents"`
	Truncate  int      `json:"truncate_prompt_tokens"`
}

// A RerankResponse is its answer: the documents, the most relevant first.
type RerankResponse struct {
	ID      string         `json:"id"`
	Model   string         `json:"model"`
	Usage   RerankUsage    `json:"usage"`
	Results []RerankResult `json:"results"`
}

// RerankUsage is the server's count of tokens.
type RerankUsage struct {
	PromptTokens int `json:"prompt_tokens"`
	TotalTokens  int `json:"total_tokens"`
}

// A RerankResult is how relevant a document is.
type RerankResult struct {
	Index          int            `json:"index"`
	Document       RerankDocument `json:"document"`
	RelevanceScore float64        `json:"relevance_score"`
}

// A RerankDocument is a document as it came.
type RerankDocument struct {
	Text string `json:"text"`
}
