package sim

import (
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
)

// An ollamaGenerateRequest is the body of a request to OllamaGeneratePath.
type ollamaGenerateRequest struct {
	Model   string             `json:"model"`
	Prompt  string             `json:"prompt"`
	System  string             `json:"system,omitempty"`
	Stream  *bool              `json:"stream,omitempty"` // nil is true
	Options wire.OllamaOptions `json:"options"`
}

// An ollamaChatRequest is the body of a request to OllamaChatPath.
type ollamaChatRequest struct {
	Model    string               `json:"model"`
	Messages []wire.OllamaMessage `json:"messages"`
	Stream   *bool                `json:"stream,omitempty"` // nil is true
	Options  wire.OllamaOptions   `json:"options"`
}

// An ollamaGenerateResponse is a line of a stream of OllamaGeneratePath, or the
// whole answer. The last line has Done set.
type ollamaGenerateResponse struct {
	Model     string    `json:"model"`
	CreatedAt time.Time `json:"created_at"`
	Response  string    `json:"response"`
	Done      bool      `json:"done"`
	Context   []int32   `json:"context,omitempty"`
	ollamaFinal
}

// An ollamaChatResponse is a line of a stream of OllamaChatPath, or the whole
// answer.
type ollamaChatResponse struct {
	Model     string             `json:"model"`
	CreatedAt time.Time          `json:"created_at"`
	Message   wire.OllamaMessage `json:"message"`
	Done      bool               `json:"done"`
	ollamaFinal
}

// ollamaFinal is the server's summary at the end of an answer. Zero fields are
// omitted. Durations are in nanoseconds.
type ollamaFinal struct {
	DoneReason         string        `json:"done_reason,omitempty"` // stop, length, load or unload
	TotalDuration      time.Duration `json:"total_duration,omitempty"`
	LoadDuration       time.Duration `json:"load_duration,omitempty"`
	PromptEvalCount    int           `json:"prompt_eval_count,omitempty"`
	PromptEvalDuration time.Duration `json:"prompt_eval_duration,omitempty"`
	EvalCount          int           `json:"eval_count,omitempty"`
	EvalDuration       time.Duration `json:"eval_duration,omitempty"`
}

// An ollamaErrorResponse is the body of an error response, and the error line of a
// stream.
type ollamaErrorResponse struct {
	Error string `json:"error"`
}
