package wire

import "encoding/json"

// The paths of Ollama's native protocol, whose streams are lines of JSON.
const (
	OllamaGeneratePath = "/api/generate"
	OllamaChatPath     = "/api/chat"
	OllamaVersionPath  = "/api/version"
	OllamaTagsPath     = "/api/tags"
	OllamaPsPath       = "/api/ps"
	OllamaShowPath     = "/api/show"
)

// An OllamaMessage is one entry of a conversation.
type OllamaMessage struct {
	Role     string `json:"role"`
	Content  string `json:"content"`
	Thinking string `json:"thinking,omitempty"`

	Images    []string         `json:"images,omitempty"` // base64
	ToolCalls []OllamaToolCall `json:"tool_calls,omitempty"`
	ToolName  string           `json:"tool_name,omitempty"` // of a tool's result
}

// An OllamaToolCall is a call of a function.
type OllamaToolCall struct {
	Function OllamaFunctionCall `json:"function"`
}

// An OllamaFunctionCall is the name and arguments of an OllamaToolCall, which are an object.
type OllamaFunctionCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// OllamaOptions say how tokens are chosen and when to stop.
type OllamaOptions struct {
	NumPredict  int      `json:"num_predict,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop,omitempty"`
}
