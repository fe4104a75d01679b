package openai

import "encoding/json"

// An Answer is what a server says, whole or in one chunk of a stream.
type Answer[Choice any] struct {
	ID      string   `json:"id"`
	Object  string   `json:"object"`
	Created int64    `json:"created"`
	Model   string   `json:"model"`
	Choices []Choice `json:"choices"`
	Usage   *Usage   `json:"usage,omitempty"`
}

type (
	// A Completion is the answer of CompletionsPath, and one chunk of its stream.
	Completion = Answer[CompletionChoice]
	// A ChatChunk is one chunk of a stream of ChatPath.
	ChatChunk = Answer[ChatChoice]
	// A ChatCompletion is the whole answer of ChatPath.
	ChatCompletion = Answer[ChatMessageChoice]
	// A TranscriptionChunk is one chunk of a stream of vLLM's transcriptions. Its
	// object is transcription.chunk or translation.chunk. A long sound is cut in
	// pieces, each of which ends with a finish reason; the stream ends with Done.
	TranscriptionChunk = Answer[TranscriptionChoice]
)

// A CompletionChoice is one answer in a Completion.
type CompletionChoice struct {
	Index        int             `json:"index"`
	Text         string          `json:"text"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason,omitempty"`
	TokenIDs     []int32         `json:"token_ids,omitempty"`
}

// A ChatChoice is what a chunk adds to one answer.
type ChatChoice struct {
	Index        int             `json:"index"`
	Delta        ChatDelta       `json:"delta"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason,omitempty"`
	TokenIDs     []int32         `json:"token_ids,omitempty"`
}

// A ChatDelta is a piece of a message. Reasoning goes by two names.
type ChatDelta struct {
	Role             string     `json:"role,omitempty"`
	Content          *string    `json:"content,omitempty"`
	Reasoning        *string    `json:"reasoning,omitempty"`
	ReasoningContent *string    `json:"reasoning_content,omitempty"`
	ToolCalls        []ToolCall `json:"tool_calls,omitempty"`
}

// A ToolCall is a piece of a call of a function.
type ToolCall struct {
	Index    int          `json:"index"`
	ID       string       `json:"id,omitempty"`
	Type     string       `json:"type,omitempty"`
	Function FunctionCall `json:"function"`
}

// A FunctionCall is the name and arguments of a ToolCall.
type FunctionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// A ChatMessageChoice is one answer in a ChatCompletion.
type ChatMessageChoice struct {
	Index        int             `json:"index"`
	Message      ChatDelta       `json:"message"`
	Logprobs     json.RawMessage `json:"logprobs,omitempty"`
	FinishReason *string         `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason,omitempty"`
}

// Usage is the server's count of tokens.
type Usage struct {
	PromptTokens            int                      `json:"prompt_tokens"`
	TotalTokens             int                      `json:"total_tokens"`
	CompletionTokens        int                      `json:"completion_tokens"`
	PromptTokensDetails     *PromptTokensDetails     `json:"prompt_tokens_details,omitempty"`
	CompletionTokensDetails *CompletionTokensDetails `json:"completion_tokens_details,omitempty"`
}

// PromptTokensDetails is the part of the prompt that came from a cache.
type PromptTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// CompletionTokensDetails is the part of the completion that was reasoning.
type CompletionTokensDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// A ModelList is the answer of ModelsPath.
type ModelList struct {
	Object string  `json:"object"`
	Data   []Model `json:"data"`
}

// A Model is one entry of a ModelList. Root and MaxModelLen are vLLM's.
type Model struct {
	ID          string `json:"id"`
	Object      string `json:"object"`
	Created     int64  `json:"created"`
	OwnedBy     string `json:"owned_by"`
	Root        string `json:"root,omitempty"`
	MaxModelLen int    `json:"max_model_len,omitempty"`

	Meta *ModelMeta `json:"meta,omitempty"`
}

// ModelMeta is what llama.cpp tells of a model beyond the protocol.
type ModelMeta struct {
	Vocab int `json:"n_vocab,omitempty"`
}

// An ErrorResponse is the body of a failure, and its event within a stream.
type ErrorResponse struct {
	Error Error `json:"error"`
}

// An Error is what went wrong.
type Error struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}
