package backend

import (
	"tacho"
	"tacho/wire"
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
	carries:     allOptions,
	encode:      encodeChat,
	decoder:     newOpenAIDecoder,
	live: []string{
		`"content":"`, `"content": "`, `"reasoning":"`, `"reasoning": "`,
		`"reasoning_content":"`, `"reasoning_content": "`, `"arguments":"`, `"arguments": "`,
	},
	models: openAIModels,
	count:  countChatTokens,
	flush:  resetPrefixCache,
}

// encodeChat sends the limit under both of its names: servers that know only the
// older one (Ollama, DeepSpeed-MII) would generate without a limit. OpenAI's own
// server is the only one that refuses both.
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

// chatMessages puts a plain text into one message of the user, as a list of
// parts: the form in which vLLM's own benchmark sends it.
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
