package wire

// The paths of LMDeploy's native protocol.
const (
	LMDeployGeneratePath = "/generate"
	LMDeployEncodePath   = "/v1/encode"
)

// LMDeploySchema is the name that the server's own description of itself has for a
// Request: older servers have no LMDeployGeneratePath, and no such name.
const LMDeploySchema = "GenerateReqInput"

// An LMDeployRequest is the body of a request to LMDeployGeneratePath. The input is one of
// Prompt and InputIDs.
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
	DoPreprocess bool   `json:"do_preprocess"` // put it into the chat template
	AddBOS       bool   `json:"add_bos"`       // with the token that begins a text
}

// An LMDeployEncodeResponse is its answer.
type LMDeployEncodeResponse struct {
	InputIDs []int32 `json:"input_ids"`
	Length   int     `json:"length"`
}
