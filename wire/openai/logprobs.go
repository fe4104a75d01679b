package openai

// CompletionLogprobs are the log probabilities of the tokens of a completion.
type CompletionLogprobs struct {
	TextOffset    []int                `json:"text_offset"`
	TokenLogprobs []float64            `json:"token_logprobs"`
	Tokens        []string             `json:"tokens"`
	TopLogprobs   []map[string]float64 `json:"top_logprobs"`
}

// ChatLogprobs are those of the tokens of a chat.
type ChatLogprobs struct {
	Content []ChatLogprob `json:"content"`
}

// A ChatLogprob is that of one token, and of others in its place.
type ChatLogprob struct {
	TokenLogprob
	TopLogprobs []TokenLogprob `json:"top_logprobs"`
}

// A TokenLogprob is a token and its log probability.
type TokenLogprob struct {
	Token   string  `json:"token"`
	Logprob float64 `json:"logprob"`
	Bytes   []int   `json:"bytes"`
}
