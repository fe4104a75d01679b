package backend

import (
	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var openAIChat = Kind{
	Name:        "openai-chat",
	Aliases:     []string{"chat", "vllm-chat", "openai-chat-completions", "sglang-oai-chat"},
	Doc:         "the OpenAI chat endpoint: text or messages, with images, audio and video, through the model's chat template",
	Endpoint:    wire.OpenAIChatPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, Messages: true, Media: true},
	ExactLength: true,
	supports:    allOptions,
	encode:      encodeChat,
	decoder:     newOpenAIDecoder,
	tokenMarks: []string{
		`"content":"`, `"content": "`, `"reasoning":"`, `"reasoning": "`,
		`"reasoning_content":"`, `"reasoning_content": "`, `"arguments":"`, `"arguments": "`,
	},
	models: openAIModels,
	count:  countChatTokens,
	flush:  resetPrefixCache,
}

// encodeChat sends the token limit under both names, because servers that know only the older name (Ollama,
// DeepSpeed-MII) would generate without a limit. Only OpenAI's own service rejects both together.
func encodeChat(o *Options, r *tacho.Request) ([]byte, error) {
	olderLimit := r.MaxTokens
	if o.atOpenAI {
		olderLimit = 0
	}
	return marshalWith(&wire.OpenAIChatRequest{
		Model:               modelOf(o, r),
		Messages:            chatMessages(&r.Input),
		MaxCompletionTokens: r.MaxTokens,
		MaxTokens:           olderLimit,
		Logprobs:            o.Logprobs != nil,
		TopLogprobs:         o.Logprobs,
		Stream:              true,
		StreamOptions:       &wire.OpenAIStreamOptions{IncludeUsage: true, ContinuousUsageStats: o.Extras.ContinuousUsage},
		RepetitionPenalty:   o.Sampling.RepetitionPenalty,
		OpenAISampling:      openAISampling(o, r),
		ReturnTokenIDs:      o.Extras.ReturnTokenIDs,
		CacheSalt:           cacheSalt(o, r),
		Priority:            o.Extras.Priority,
	}, o.Extra, r.Extra)
}

// chatMessages converts a plain text to one user message with a list of parts, the form sent by vLLM's own
// benchmark.
func chatMessages(in *tacho.Input) []wire.OpenAIMessage {
	if in.Messages == nil {
		parts := []wire.OpenAIPart{{Type: "text", Text: in.Text}}
		return []wire.OpenAIMessage{{Role: "user", Content: wire.OpenAIContent{Parts: parts}}}
	}
	messages := make([]wire.OpenAIMessage, len(in.Messages))
	for i, m := range in.Messages {
		messages[i] = wire.OpenAIMessage{Role: m.Role, Content: wire.OpenAIContent{Text: m.Content}, Raw: m.Raw}
	}
	return messages
}
