// Package ollama is the shape of Ollama's native protocol: the types of both
// ends. Streams are lines of JSON.
package ollama

import (
	"encoding/json"
	"time"
)

// The paths of the protocol.
const (
	GeneratePath = "/api/generate"
	ChatPath     = "/api/chat"
	VersionPath  = "/api/version"
	TagsPath     = "/api/tags"
	PsPath       = "/api/ps"
	ShowPath     = "/api/show"
)

// A GenerateRequest is the body of a request to GeneratePath.
type GenerateRequest struct {
	Model   string  `json:"model"`
	Prompt  string  `json:"prompt"`
	System  string  `json:"system,omitempty"`
	Stream  *bool   `json:"stream,omitempty"` // nil is true
	Options Options `json:"options"`
}

// A ChatRequest is the body of a request to ChatPath.
type ChatRequest struct {
	Model    string    `json:"model"`
	Messages []Message `json:"messages"`
	Stream   *bool     `json:"stream,omitempty"` // nil is true
	Options  Options   `json:"options"`
}

// A Message is one entry of a conversation.
type Message struct {
	Role     string `json:"role"`
	Content  string `json:"content"`
	Thinking string `json:"thinking,omitempty"`

	Images    []string   `json:"images,omitempty"` // base64
	ToolCalls []ToolCall `json:"tool_calls,omitempty"`
	ToolName  string     `json:"tool_name,omitempty"` // of a tool's result
}

// A ToolCall is a call of a function.
type ToolCall struct {
	Function FunctionCall `json:"function"`
}

// A FunctionCall is the name and arguments of a ToolCall, which are an object.
type FunctionCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// Options say how tokens are chosen and when to stop.
type Options struct {
	NumPredict  int      `json:"num_predict,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop,omitempty"`
}

// A GenerateResponse is a line of a stream of GeneratePath, or its whole
// answer. The last line has Done set.
type GenerateResponse struct {
	Model     string    `json:"model"`
	CreatedAt time.Time `json:"created_at"`
	Response  string    `json:"response"`
	Done      bool      `json:"done"`
	Context   []int32   `json:"context,omitempty"`
	Final
}

// A ChatResponse is a line of a stream of ChatPath, or its whole answer.
type ChatResponse struct {
	Model     string    `json:"model"`
	CreatedAt time.Time `json:"created_at"`
	Message   Message   `json:"message"`
	Done      bool      `json:"done"`
	Final
}

// Final is the server's account at the end of an answer. What is zero is left
// out. Durations are in nanoseconds.
type Final struct {
	DoneReason         string        `json:"done_reason,omitempty"` // stop, length, load or unload
	TotalDuration      time.Duration `json:"total_duration,omitempty"`
	LoadDuration       time.Duration `json:"load_duration,omitempty"`
	PromptEvalCount    int           `json:"prompt_eval_count,omitempty"`
	PromptEvalDuration time.Duration `json:"prompt_eval_duration,omitempty"`
	EvalCount          int           `json:"eval_count,omitempty"`
	EvalDuration       time.Duration `json:"eval_duration,omitempty"`
}

// An ErrorResponse is the body of a failure, and its line within a stream.
type ErrorResponse struct {
	Error string `json:"error"`
}
