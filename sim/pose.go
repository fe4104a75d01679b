package sim

import (
	"net/http"
	"time"
)

// A pose is the server that the simulator pretends to be. It decides what the
// protocols that several servers speak look like in detail, and the pages that
// only that server has.
type pose struct {
	name        string
	owner       string // of the models, as it tells; empty is its name
	version     string
	port        int
	metricsPath string // empty: it has no metrics
	metrics     []metric
	openai      manner

	// unknownModel is what it says of a model that it does not serve; empty if it
	// takes any name.
	unknownModel string

	clips     bool            // a limit that does not fit is lowered to what fits
	invalid   int             // status of a request that cannot be answered; 0 is 400
	keepAlive time.Duration   // how long a stream of events may be silent; 0 is for ever
	pages     map[string]page // what it has besides pages, or instead
}

// poses are the servers it can be.
var poses = []pose{
	{name: "vllm", version: "0.32.0", port: 8000, metricsPath: "/metrics", metrics: vllmMetrics, openai: vllmManner, clips: true, unknownModel: "The model `%s` does not exist."},
	{name: "sglang", version: "0.5.5", port: 30000, metricsPath: "/metrics", metrics: sglangMetrics, openai: sglangManner},
	{name: "tgi", version: "3.3.7", port: 3000, metricsPath: "/metrics", metrics: tgiMetrics, openai: tgiManner, invalid: http.StatusUnprocessableEntity, keepAlive: 15 * time.Second},
	{name: "llamacpp", version: "b7000", port: 8080, metricsPath: "/metrics", metrics: llamaMetrics, openai: llamaManner, keepAlive: 30 * time.Second},
	{name: "ollama", version: "0.17.4", port: 11434, openai: ollamaManner, owner: "library", pages: ollamaPages, unknownModel: "model '%s' not found"},
	{name: "trtllm", version: "1.2.0", port: 8000, metricsPath: "/prometheus/metrics", metrics: trtllmMetrics, openai: trtllmManner, owner: "tensorrt_llm"},
	{name: "lmdeploy", version: "0.10.2", port: 23333, metricsPath: "/metrics", metrics: lmdeployMetrics, openai: lmdeployManner, pages: lmdeployPages, unknownModel: "The model '%s' does not exist."},
	{name: "mii", version: "0.3.3", port: 8000, openai: miiManner, owner: "deepspeed-mii", unknownModel: "The model `%s` does not exist."},
	{name: "mii-generate", version: "0.3.3", port: 8000, pages: miiPages},
	{name: "triton", version: "2.60.0", port: 8000, pages: tritonPages},
	{name: "triton-vllm", version: "2.60.0", port: 8000, pages: tritonPages},
	{name: "anthropic", version: "2023-06-01", port: 443, pages: anthropicPages, unknownModel: "model: %s"},
	{name: "gemini", version: "v1beta", port: 443, pages: geminiPages, unknownModel: "models/%s is not found for API version v1beta"},
}

func poseOf(engine string) *pose {
	for i := range poses {
		if poses[i].name == engine {
			return &poses[i]
		}
	}
	return &poses[0]
}

// Engines are the names of the servers that the simulator can pose as.
func Engines() []string {
	names := make([]string, len(poses))
	for i := range poses {
		names[i] = poses[i].name
	}
	return names
}

// DefaultPort is where a server of that name listens if it is not told.
func DefaultPort(engine string) int { return poseOf(engine).port }

// A manner is how a server speaks the OpenAI protocol, where servers differ.
type manner struct {
	role        roleManner
	noFinish    *string // the finish reason while there is none
	noID        bool    // ids are empty
	dropNulls   bool    // members that are null are left out
	reasoning   bool    // chat: reasoning goes by that name, and not by reasoning_content
	emptyDelta  bool    // chat: a token without text has a delta without content
	finishAlone bool    // chat: the finish reason comes in a chunk of its own
	tgiFinish   bool    // completions: the finish reason is in the words of TGI's own protocol

	usage         usageManner
	usageAlways   bool // completions: the last chunk has the usage, asked for or not
	usageImplied  bool // stream options ask for usage, whatever they say
	optionsStream bool // stream options without a stream are an error
	timings       bool // the last chunk has llama.cpp's timings

	refusal    func(p *pose, c *complaint) []byte // nil is vLLM's
	lenient    bool                               // numbers out of bounds are taken as they are
	toolParser bool                               // calls of tools need Options.ToolParser

	errorDone bool // after an error inside a stream comes the end mark
	errorCuts bool // there are no errors inside a stream: it is cut off
	strict    bool // unknown fields are an error
	textOnly  bool // prompts of token ids are an error
}

// roleManner is how the role of a chat answer is told.
type roleManner int

const (
	roleFirst roleManner = iota // in a chunk before the first token, with empty content
	roleNull                    // the same, with content null
	roleBare                    // the same, without content
	roleEach                    // with every token
	roleEarly                   // in a chunk before the model has run
)

// usageManner is what chunks before the last say about usage.
type usageManner int

const (
	usageAsked usageManner = iota // nothing; a chunk of its own at the end if asked for
	usageNull                     // null, if it was asked for
	usageZero                     // zeros, if it was asked for
	usageNever                    // nothing, ever
)

var (
	vllmManner     = manner{emptyDelta: true, toolParser: true, reasoning: true, optionsStream: true, errorDone: true}
	sglangManner   = manner{refusal: flatRefusal, finishAlone: true, errorDone: true}
	tgiManner      = manner{refusal: tgiRefusal, role: roleEach, noFinish: new(string), noID: true, tgiFinish: true, usageAlways: true, errorDone: true, textOnly: true}
	llamaManner    = manner{refusal: llamaRefusal, lenient: true, role: roleNull, finishAlone: true, usageAlways: true, timings: true}
	ollamaManner   = manner{refusal: ollamaOpenAIRefusal, lenient: true, role: roleEach, reasoning: true, finishAlone: true, usage: usageZero, errorDone: true}
	trtllmManner   = manner{role: roleBare, dropNulls: true, usageImplied: true, optionsStream: true, refusal: flatRefusal, errorCuts: true, strict: true}
	lmdeployManner = manner{refusal: flatInvalidRefusal, role: roleEach, usage: usageNull, errorDone: true}
	miiManner      = manner{refusal: flatInvalidRefusal, role: roleEarly, usage: usageNever, errorDone: true}
)
