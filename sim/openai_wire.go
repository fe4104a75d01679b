package sim

import (
	"encoding/json"
	"errors"

	"github.com/tacho-bench/tacho/internal/wire"
)

// openaiConstraints are the constraints of completion and chat requests. Nil fields
// are left to the server. Echo is only for completions, Tools only for chats.
type openaiConstraints struct {
	N                 *int                     `json:"n"`
	Echo              bool                     `json:"echo"`
	Stop              wire.OpenAIStop          `json:"stop"`
	StopTokenIDs      []int32                  `json:"stop_token_ids"`
	IncludeStop       bool                     `json:"include_stop_str_in_output"`
	ResponseFormat    *openaiResponseFormat    `json:"response_format"`
	StructuredOutputs *openaiStructuredOutputs `json:"structured_outputs"` // vLLM only
	Tools             []openaiTool             `json:"tools"`
	ToolChoice        *openaiToolChoice        `json:"tool_choice"`
}

// An openaiResponseFormat is the required format of an answer.
type openaiResponseFormat struct {
	Type       string            `json:"type"` // text, json_object or json_schema
	JSONSchema *openaiJSONSchema `json:"json_schema"`
}

// An openaiJSONSchema wraps a schema.
type openaiJSONSchema struct {
	Schema json.RawMessage `json:"schema"`
}

// openaiStructuredOutputs is vLLM's equivalent.
type openaiStructuredOutputs struct {
	JSON   json.RawMessage `json:"json"` // a schema
	Choice []string        `json:"choice"`
}

// An openaiTool is a function that a model may call.
type openaiTool struct {
	Type     string         `json:"type"`
	Function openaiFunction `json:"function"`
}

// An openaiFunction describes a function to the model.
type openaiFunction struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"` // a schema
}

// An openaiToolChoice restricts the tools a model may or must call: a mode, or the
// name of a function.
type openaiToolChoice struct {
	Word string // none, auto or required
	Name string // of the function, if Word is empty
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *openaiToolChoice) UnmarshalJSON(b []byte) error {
	*c = openaiToolChoice{}
	if json.Unmarshal(b, &c.Word) == nil {
		return nil
	}
	var named openaiTool
	if json.Unmarshal(b, &named) != nil {
		return errors.New("tool_choice must be a mode or a function")
	}
	c.Name = named.Function.Name
	return nil
}

// openaiCompletionLogprobs are the log probabilities of the tokens of a completion.
type openaiCompletionLogprobs struct {
	TextOffset    []int                `json:"text_offset"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	Tokens        []string             `json:"tokens"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
}

// openaiChatLogprobs are the log probabilities of the tokens of a chat.
type openaiChatLogprobs struct {
	Content []openaiChatLogprob `json:"content"`
}

// An openaiChatLogprob is the log probability of one token and of its alternatives.
type openaiChatLogprob struct {
	openaiTokenLogprob
	TopLogprobs []openaiTokenLogprob `json:"top_logprobs"`
}

// An openaiTokenLogprob is a token and its log probability.
type openaiTokenLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}

// An openaiDetokenizeRequest asks OpenAIDetokenizePath for the text of token ids.
type openaiDetokenizeRequest struct {
	Model  string  `json:"model,omitempty"`
	Tokens []int32 `json:"tokens"`
}

// An openaiDetokenizeResponse is the answer of OpenAIDetokenizePath.
type openaiDetokenizeResponse struct {
	Prompt string `json:"prompt"`
}

// An openaiAnswer is a whole answer or one chunk of a stream.
type openaiAnswer[Choice any] struct {
	ID      string       `json:"id"`
	Object  string       `json:"object"`
	Created int64        `json:"created"`
	Model   string       `json:"model"`
	Choices []Choice     `json:"choices"`
	Usage   *openaiUsage `json:"usage,omitempty"`
}

type (
	// An openaiCompletion is the answer of OpenAICompletionsPath, or one chunk of
	// its stream.
	openaiCompletion = openaiAnswer[openaiCompletionChoice]
	// An openaiChatChunk is one chunk of a stream of OpenAIChatPath.
	openaiChatChunk = openaiAnswer[openaiChatChoice]
	// An openaiChatCompletion is the whole answer of OpenAIChatPath.
	openaiChatCompletion = openaiAnswer[openaiChatMessageChoice]
)

// An openaiCompletionChoice is one choice of an openaiCompletion.
type openaiCompletionChoice struct {
	Index        int             `json:"index"`
	Text         string          `json:"text"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason,omitempty"`
	TokenIDs     []int32         `json:"token_ids,omitempty"`
}

// An openaiChatChoice is the part that a chunk adds to one choice.
type openaiChatChoice struct {
	Index        int             `json:"index"`
	Delta        openaiChatDelta `json:"delta"`
	Logprobs     json.RawMessage `json:"logprobs"`
	FinishReason *string         `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason,omitempty"`
	TokenIDs     []int32         `json:"token_ids,omitempty"`
}

// An openaiChatDelta is a piece of a message. Servers use one of two names for
// reasoning.
type openaiChatDelta struct {
	Role             string           `json:"role,omitempty"`
	Content          *string          `json:"content,omitempty"`
	Reasoning        *string          `json:"reasoning,omitempty"`
	ReasoningContent *string          `json:"reasoning_content,omitempty"`
	ToolCalls        []openaiToolCall `json:"tool_calls,omitempty"`
}

// An openaiToolCall is a piece of a function call.
type openaiToolCall struct {
	Index    int                `json:"index"`
	ID       string             `json:"id,omitempty"`
	Type     string             `json:"type,omitempty"`
	Function openaiFunctionCall `json:"function"`
}

// An openaiFunctionCall is the name and arguments of an openaiToolCall.
type openaiFunctionCall struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

// An openaiChatMessageChoice is one choice of an openaiChatCompletion.
type openaiChatMessageChoice struct {
	Index        int             `json:"index"`
	Message      openaiChatDelta `json:"message"`
	Logprobs     json.RawMessage `json:"logprobs,omitempty"`
	FinishReason *string         `json:"finish_reason"`
	StopReason   json.RawMessage `json:"stop_reason,omitempty"`
}

// openaiUsage is the server's token count.
type openaiUsage struct {
	PromptTokens            int                            `json:"prompt_tokens"`
	TotalTokens             int                            `json:"total_tokens"`
	CompletionTokens        int                            `json:"completion_tokens"`
	PromptTokensDetails     *openaiPromptTokensDetails     `json:"prompt_tokens_details,omitempty"`
	CompletionTokensDetails *openaiCompletionTokensDetails `json:"completion_tokens_details,omitempty"`
}

// openaiPromptTokensDetails is the part of the prompt found in a cache.
type openaiPromptTokensDetails struct {
	CachedTokens int `json:"cached_tokens"`
}

// openaiCompletionTokensDetails is the reasoning part of the completion.
type openaiCompletionTokensDetails struct {
	ReasoningTokens int `json:"reasoning_tokens"`
}

// An openaiErrorResponse is the body of an error response, and the error event of a
// stream.
type openaiErrorResponse struct {
	Error openaiError `json:"error"`
}

// An openaiError describes an error.
type openaiError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    int     `json:"code"`
}
