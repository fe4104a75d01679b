package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tacho"
	"tacho/wire"
)

var vllm = Kind{
	Name:        "vllm",
	Doc:         "vLLM's completions endpoint: text or token ids, exact output lengths",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	carries:     allOptions,
	about:       "/version",
	signs:       []sign{says(wire.OpenAIModelsPath, `"owned_by":"vllm"`), shows("/metrics", "vllm:")},
	encode: func(o *Options, r *tacho.Request) ([]byte, error) {
		return encodeCompletion(o, r, &noPenalty)
	},
	decoder: newOpenAIDecoder,
	live:    completionMarks,
	models:  openAIModels,
	count:   countPromptTokens,
	flush:   resetPrefixCache,
}

var openAI = Kind{
	Name:        "openai",
	Aliases:     []string{"openai-completions", "sglang-oai", "scalellm"},
	Doc:         "the OpenAI completions endpoint, as most servers offer it",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	carries:     allOptions,
	signs:       []sign{suggests(wire.OpenAIModelsPath, `"object":"list"`)},
	encode:      func(o *Options, r *tacho.Request) ([]byte, error) { return encodeCompletion(o, r, nil) },
	decoder:     newOpenAIDecoder,
	live:        completionMarks,
	models:      openAIModels,
	count:       countPromptTokens,
	flush:       resetPrefixCache,
}

var completionMarks = []string{`"text":"`, `"text": "`}

// noPenalty is sent to vLLM where no repetition penalty is set, as its own
// benchmark does: the model's generation config would otherwise choose one.
// Servers that are not vLLM may not know the field, and refuse it.
var noPenalty = 1.0

func encodeCompletion(o *Options, r *tacho.Request, unsetPenalty *float64) ([]byte, error) {
	penalty := o.Sampling.RepetitionPenalty
	if penalty == nil {
		penalty = unsetPenalty
	}
	return marshalWith(&wire.OpenAICompletionRequest{
		Model:             modelOf(o, r),
		Prompt:            wire.OpenAIPrompt{Text: r.Input.Text, IDs: r.Input.IDs},
		RepetitionPenalty: penalty,
		MaxTokens:         r.MaxTokens,
		Logprobs:          o.Logprobs,
		Stream:            true,
		StreamOptions:     &wire.OpenAIStreamOptions{IncludeUsage: true, ContinuousUsageStats: o.Extras.ContinuousUsage},
		OpenAISampling:    openAISampling(o, r),
		ReturnTokenIDs:    o.Extras.ReturnTokenIDs,
		CacheSalt:         cacheSalt(o, r),
		Priority:          o.Extras.Priority,
	}, o.Extra, r.Extra)
}

// A plainCompletion has only the fields that every server knows: some refuse a
// request with any other.
type plainCompletion struct {
	Model         string                    `json:"model,omitempty"`
	Prompt        wire.OpenAIPrompt         `json:"prompt"`
	MaxTokens     int                       `json:"max_tokens,omitempty"`
	Stream        bool                      `json:"stream"`
	StreamOptions *wire.OpenAIStreamOptions `json:"stream_options,omitempty"`
	wire.OpenAISampling
}

func plainCompletionOf(o *Options, r *tacho.Request) *plainCompletion {
	return &plainCompletion{
		Model: modelOf(o, r), Prompt: wire.OpenAIPrompt{Text: r.Input.Text, IDs: r.Input.IDs}, MaxTokens: r.MaxTokens,
		Stream: true, OpenAISampling: openAISampling(o, r),
	}
}

// uniqueSalt asks for a salt that no two requests share.
const uniqueSalt = "unique"

func cacheSalt(o *Options, r *tacho.Request) string {
	if o.Extras.CacheSalt == uniqueSalt {
		return fmt.Sprintf("%s/%d.%d", r.ID, r.Session, r.Turn)
	}
	return o.Extras.CacheSalt
}

func modelOf(o *Options, r *tacho.Request) string {
	if r.Model != "" {
		return r.Model
	}
	return o.Model
}

// isOpenAI says whether a server is OpenAI's own, which refuses what others have
// added to its protocol.
func isOpenAI(host string) bool {
	return host == "api.openai.com" || strings.HasSuffix(host, ".openai.azure.com")
}

func openAISampling(o *Options, r *tacho.Request) wire.OpenAISampling {
	s := o.Sampling
	return wire.OpenAISampling{
		IgnoreEOS:        r.IgnoreEOS && !o.atOpenAI,
		Temperature:      s.Temperature,
		TopP:             s.TopP,
		TopK:             s.TopK,
		MinP:             s.MinP,
		FrequencyPenalty: s.FrequencyPenalty,
		PresencePenalty:  s.PresencePenalty,
	}
}

// An openAIDecoder reads the streams of completions and chat.
type openAIDecoder struct {
	// With continuous usage every chunk tells the tokens generated so far, and
	// the differences are exact counts. That holds only while it has been so
	// from the first chunk on: other servers send usage with the last chunk
	// alone, or zeros until then.
	chunks, counted int // chunks with choices, and how many of them had usage
	completion      int // tokens generated, by the last of them
	broken          bool
}

func newOpenAIDecoder(*Options) decoder { return new(openAIDecoder) }

var tokenKinds = [...]tacho.TokenKind{
	wire.OpenAIContentToken: tacho.Content, wire.OpenAIReasoningToken: tacho.Reasoning, wire.OpenAIToolCallToken: tacho.ToolCall,
}

func (d *openAIDecoder) decode(payload []byte, c *chunk) error {
	if string(payload) == wire.OpenAIDone {
		c.end = true
		return nil
	}
	x, _ := c.scratch.(*wire.OpenAIDelta)
	if x == nil {
		x = new(wire.OpenAIDelta)
		c.scratch = x
	}
	if err := x.Decode(payload); err != nil {
		return err
	}
	c.failed, c.message = x.Failed, x.Error
	c.text, c.finish = x.Text, x.Finish
	if n := len(x.Content); n > 0 && n < len(x.Text) {
		c.said = x.Content
	}
	c.end = len(x.Finish) > 0
	c.blank = x.Blank && c.end
	if x.HasUsage {
		c.counted = true
		c.usage = tacho.Usage(x.Usage)
	}
	if x.Timed {
		c.timed = true
		c.times = tacho.ServerTimes{
			Queue: millis(x.Timings.Queue), TTFT: millis(x.Timings.TTFT),
			Prefill: millis(x.Timings.Prompt), Decode: millis(x.Timings.Generation),
		}
	}
	generated := d.generated(x)
	// A first chunk that is the last, too, tells a total and not what it brings.
	c.token = x.Kind != wire.OpenAINoToken || x.Blank && !c.end || x.TokenIDs > 0 || generated > 0 && (d.chunks > 1 || len(x.Finish) == 0)
	c.kind = tokenKinds[x.Kind]
	c.empty = x.Kind == wire.OpenAINoToken && x.TokenIDs == 0 && generated == 0
	switch {
	case x.TokenIDs > 0:
		c.tokens = x.TokenIDs
	case c.token:
		c.tokens = generated
	}
	return nil
}

// generated is how many tokens the chunk brings, by continuous usage; 0 if
// there is none.
func (d *openAIDecoder) generated(x *wire.OpenAIDelta) int {
	if x.Choices == 0 {
		return 0
	}
	d.chunks++
	if x.HasUsage {
		d.counted++
	}
	n := x.Usage.Completion - d.completion
	d.completion = x.Usage.Completion
	if d.counted != d.chunks || n < 0 || n == 0 && x.Kind != wire.OpenAINoToken {
		d.broken = true
	}
	if d.broken {
		return 0
	}
	return n
}

// resetPrefixCache is vLLM's. The server says no while requests still hold
// blocks of the cache, so it is asked again.
func resetPrefixCache(ctx context.Context, c *client) error {
	const tries, pause = 20, 100 * time.Millisecond
	for range tries {
		// Old servers answer with nothing, which is a yes.
		answer := struct{ Success *bool }{}
		err := c.ask(ctx, http.MethodPost, "/reset_prefix_cache", nil, &answer)
		switch {
		case errors.Is(err, ErrNoEndpoint):
			return fmt.Errorf("%w; vLLM has it when it runs with VLLM_SERVER_DEV_MODE=1", err)
		case err != nil:
			return err
		case answer.Success == nil || *answer.Success:
			return nil
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.New("the server keeps saying that its cache is in use: try again when no request runs")
}
