package sim

import (
	"net/http"
	"time"
)

// An emulatedServer is a server that the simulator can emulate. It defines the
// details of protocols shared by several servers, and the pages of this server
// only.
type emulatedServer struct {
	name        string
	owner       string // owned_by of the models; empty: name
	version     string
	port        int
	metricsPath string // empty: no metrics
	metrics     []metric
	openai      openAIVariant

	// unknownModel is the error message for a model that is not served; empty if
	// the server accepts any name.
	unknownModel string

	clips     bool            // a limit that does not fit is lowered
	invalid   int             // status for an invalid request; 0: 400
	keepAlive time.Duration   // maximum silence on an event stream; 0: unlimited
	pages     map[string]page // in addition to pages, or instead of them
}

// emulatedServers are the supported servers.
var emulatedServers = []emulatedServer{
	{name: "vllm", version: "0.32.0", port: 8000, metricsPath: "/metrics", metrics: vllmMetrics, openai: vllmVariant, clips: true, unknownModel: "The model `%s` does not exist."},
	{name: "sglang", version: "0.5.5", port: 30000, metricsPath: "/metrics", metrics: sglangMetrics, openai: sglangVariant},
	{name: "tgi", version: "3.3.7", port: 3000, metricsPath: "/metrics", metrics: tgiMetrics, openai: tgiVariant, invalid: http.StatusUnprocessableEntity, keepAlive: 15 * time.Second},
	{name: "llamacpp", version: "b7000", port: 8080, metricsPath: "/metrics", metrics: llamaMetrics, openai: llamaVariant, keepAlive: 30 * time.Second},
	{name: "ollama", version: "0.17.4", port: 11434, openai: ollamaVariant, owner: "library", pages: ollamaPages, unknownModel: "model '%s' not found"},
	{name: "trtllm", version: "1.2.0", port: 8000, metricsPath: "/prometheus/metrics", metrics: trtllmMetrics, openai: trtllmVariant, owner: "tensorrt_llm"},
	{name: "anthropic", version: "2023-06-01", port: 443, pages: anthropicPages, unknownModel: "model: %s"},
}

func emulatedServerOf(engine string) *emulatedServer {
	for i := range emulatedServers {
		if emulatedServers[i].name == engine {
			return &emulatedServers[i]
		}
	}
	return &emulatedServers[0]
}

// Engines returns the names of the servers that the simulator can emulate.
func Engines() []string {
	names := make([]string, len(emulatedServers))
	for i := range emulatedServers {
		names[i] = emulatedServers[i].name
	}
	return names
}

// DefaultPort is the default port of a server.
func DefaultPort(engine string) int { return emulatedServerOf(engine).port }

// An openAIVariant describes how a server deviates from other servers in the OpenAI
// protocol.
type openAIVariant struct {
	role        roleStyle
	noFinish    *string // the finish reason of chunks before the last
	noID        bool    // ids are empty
	dropNulls   bool    // omit null members
	reasoning   bool    // chat: the member is reasoning, not reasoning_content
	emptyDelta  bool    // chat: a token without text has a delta without content
	finishAlone bool    // chat: the finish reason has a separate chunk
	tgiFinish   bool    // completions: finish reasons of TGI's own protocol

	zeroUsage     bool // usage in chunks before the last is zeros if requested, not missing
	usageAlways   bool // completions: the last chunk always contains usage
	usageImplied  bool // any stream options enable usage
	optionsStream bool // stream options without a stream are an error
	timings       bool // the last chunk contains llama.cpp's timings

	errorBody  func(p *emulatedServer, c *apiError) []byte // nil: vLLM's
	lenient    bool                                        // numbers out of range are accepted
	toolParser bool                                        // tool calls require Options.ToolParser

	errorDone bool // an error inside a stream is followed by the end marker
	errorCuts bool // a failed stream is cut off without an error
	strict    bool // unknown fields are an error
	textOnly  bool // prompts of token ids are an error
}

// roleStyle is how a chat answer sends its role.
type roleStyle int

const (
	roleFirst roleStyle = iota // in a chunk before the first token, with empty content
	roleNull                   // the same, with content null
	roleBare                   // the same, without content
	roleEach                   // with every token
)

var (
	vllmVariant   = openAIVariant{emptyDelta: true, toolParser: true, reasoning: true, optionsStream: true, errorDone: true}
	sglangVariant = openAIVariant{errorBody: flatErrorBody, finishAlone: true, errorDone: true}
	tgiVariant    = openAIVariant{errorBody: tgiErrorBody, role: roleEach, noFinish: new(string), noID: true, tgiFinish: true, usageAlways: true, errorDone: true, textOnly: true}
	llamaVariant  = openAIVariant{errorBody: llamaErrorBody, lenient: true, role: roleNull, finishAlone: true, usageAlways: true, timings: true}
	ollamaVariant = openAIVariant{errorBody: ollamaOpenAIErrorBody, lenient: true, role: roleEach, reasoning: true, finishAlone: true, zeroUsage: true, errorDone: true}
	trtllmVariant = openAIVariant{role: roleBare, dropNulls: true, usageImplied: true, optionsStream: true, errorBody: flatErrorBody, errorCuts: true, strict: true}
)
