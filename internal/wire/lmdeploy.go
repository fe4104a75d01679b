package wire

// Paths of LMDeploy's native protocol.
const (
	LMDeployGeneratePath = "/generate"
	LMDeployEncodePath   = "/v1/encode"
)

// LMDeploySchema is the name of an LMDeployRequest in the server's OpenAPI description. Older servers without
// LMDeployGeneratePath do not contain the name.
const LMDeploySchema = "GenerateReqInput"

// An LMDeployRequest is the body of a request to LMDeployGeneratePath. The input is either Prompt or InputIDs.
type LMDeployRequest struct {
	Prompt            string   `json:"prompt,omitempty"`
	InputIDs          []int32  `json:"input_ids,omitempty"`
	MaxTokens         int      `json:"max_tokens,omitempty"`
	Stream            bool     `json:"stream,omitempty"`
	IgnoreEOS         bool     `json:"ignore_eos,omitempty"`
	Temperature       *float64 `json:"temperature,omitempty"`
	TopP              *float64 `json:"top_p,omitempty"`
	TopK              *int     `json:"top_k,omitempty"`
	MinP              *float64 `json:"min_p,omitempty"`
	RepetitionPenalty *float64 `json:"repetition_penalty,omitempty"`

	Stop         OpenAIStop `json:"stop,omitempty"`
	StopTokenIDs []int32    `json:"stop_token_ids,omitempty"`
	IncludeStop  bool       `json:"include_stop_str_in_output,omitempty"`
}

// An LMDeployEncodeRequest is the body of a request to LMDeployEncodePath.
type LMDeployEncodeRequest struct {
	Input        string `json:"input"`
	DoPreprocess bool   `json:"do_preprocess"` // apply the chat template
	AddBOS       bool   `json:"add_bos"`       // prepend the beginning-of-sequence token
}

// An LMDeployEncodeResponse is the response of LMDeployEncodePath.
type LMDeployEncodeResponse struct {
	InputIDs []int32 `json:"input_ids"`
	Length   int     `json:"length"`
}
