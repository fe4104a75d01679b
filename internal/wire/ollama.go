package wire

import "encoding/json"

// Paths of Ollama's native protocol, which streams lines of JSON.
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
	ToolName  string           `json:"tool_name,omitempty"` // tool result
}

// An OllamaToolCall is a function call.
type OllamaToolCall struct {
	Function OllamaFunctionCall `json:"function"`
}

// An OllamaFunctionCall holds the name and the arguments, a JSON object, of an OllamaToolCall.
type OllamaFunctionCall struct {
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
}

// OllamaOptions holds sampling parameters and stop conditions.
type OllamaOptions struct {
	NumPredict  int      `json:"num_predict,omitempty"`
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
	Seed        *int64   `json:"seed,omitempty"`
	Stop        []string `json:"stop,omitempty"`
}
