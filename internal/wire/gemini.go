package wire

import "encoding/json"

// Paths of Gemini's content protocol. {model} is a placeholder for the model name. Without alt=sse, a stream is one
// JSON list.
const (
	GeminiStreamPath      = "/v1beta/models/{model}:streamGenerateContent?alt=sse"
	GeminiCountTokensPath = "/v1beta/models/{model}:countTokens"
	GeminiModelsPath      = "/v1beta/models"
)

// A GeminiRequest is the body of a request to GeminiStreamPath.
type GeminiRequest struct {
	Contents          []GeminiContent        `json:"contents"`
	SystemInstruction *GeminiContent         `json:"systemInstruction,omitempty"`
	GenerationConfig  GeminiGenerationConfig `json:"generationConfig"`
	Tools             []GeminiTool           `json:"tools,omitempty"`
	ToolConfig        *GeminiToolConfig      `json:"toolConfig,omitempty"`
}

// A GeminiTool is a list of functions the model may call.
type GeminiTool struct {
	FunctionDeclarations []GeminiFunctionDeclaration `json:"functionDeclarations"`
}

// A GeminiFunctionDeclaration is one function.
type GeminiFunctionDeclaration struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters,omitempty"`
}

// GeminiToolConfig selects whether the model must call a function.
type GeminiToolConfig struct {
	FunctionCallingConfig GeminiFunctionCallingConfig `json:"functionCallingConfig"`
}

// GeminiFunctionCallingConfig is the only member of a GeminiToolConfig.
type GeminiFunctionCallingConfig struct {
	Mode                 string   `json:"mode"` // AUTO, ANY or NONE
	AllowedFunctionNames []string `json:"allowedFunctionNames,omitempty"`
}

// GeminiContent is one entry of a conversation. The model's role is "model".
type GeminiContent struct {
	Role  string       `json:"role,omitempty"`
	Parts []GeminiPart `json:"parts"`
}

// A GeminiPart is one piece of GeminiContent. Exactly one field is set.
type GeminiPart struct {
	Text             string                  `json:"text,omitempty"`
	InlineData       *GeminiBlob             `json:"inlineData,omitempty"`
	FileData         *GeminiFile             `json:"fileData,omitempty"`
	FunctionCall     *GeminiFunctionCall     `json:"functionCall,omitempty"`
	FunctionResponse *GeminiFunctionResponse `json:"functionResponse,omitempty"`
}

// A GeminiBlob is an image, audio or a video, in base64.
type GeminiBlob struct {
	MIMEType string `json:"mimeType"`
	Data     string `json:"data"`
}

// A GeminiFile is an image, audio or a video at a URL.
type GeminiFile struct {
	MIMEType string `json:"mimeType,omitempty"`
	FileURI  string `json:"fileUri"`
}

// A GeminiFunctionCall is the model's call of a function.
type GeminiFunctionCall struct {
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// A GeminiFunctionResponse is the result of a function call.
type GeminiFunctionResponse struct {
	Name     string               `json:"name"`
	Response GeminiFunctionResult `json:"response"`
}

// GeminiFunctionResult wraps the result of a function, because the protocol requires an object.
type GeminiFunctionResult struct {
	Result string `json:"result"`
}

// MarshalJSON implements json.Marshaler. A part without other fields is a text, even if the text is empty.
func (p GeminiPart) MarshalJSON() ([]byte, error) {
	if p == (GeminiPart{Text: p.Text}) {
		return Marshal(struct {
			Text string `json:"text"`
		}{p.Text})
	}
	type part GeminiPart // without this method
	return Marshal(part(p))
}

// GeminiGenerationConfig holds sampling parameters and stop conditions.
type GeminiGenerationConfig struct {
	MaxOutputTokens  int      `json:"maxOutputTokens,omitempty"`
	Temperature      *float64 `json:"temperature,omitempty"`
	TopP             *float64 `json:"topP,omitempty"`
	TopK             *int     `json:"topK,omitempty"`
	FrequencyPenalty *float64 `json:"frequencyPenalty,omitempty"`
	PresencePenalty  *float64 `json:"presencePenalty,omitempty"`
	StopSequences    []string `json:"stopSequences,omitempty"`
}

// A GeminiCountTokensRequest is the body of a request to GeminiCountTokensPath.
type GeminiCountTokensRequest struct {
	Contents []GeminiContent `json:"contents"`
}

// A GeminiCountTokensResponse is the response of GeminiCountTokensPath.
type GeminiCountTokensResponse struct {
	TotalTokens int `json:"totalTokens"`
}

// A GeminiModelList is the response of GeminiModelsPath.
type GeminiModelList struct {
	Models []GeminiModel `json:"models"`
}

// A GeminiModel is one entry of a GeminiModelList. Name starts with "models/".
type GeminiModel struct {
	Name             string `json:"name"`
	InputTokenLimit  int    `json:"inputTokenLimit"`
	OutputTokenLimit int    `json:"outputTokenLimit"`
}
