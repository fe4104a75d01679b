package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

var vllm = Kind{
	Name:        "vllm",
	Doc:         "vLLM's completions endpoint: text or token ids, exact output lengths",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	supports:    allOptions,
	about:       "/version",
	signatures:  []signature{certain(wire.OpenAIModelsPath, `"owned_by":"vllm"`), likely("/metrics", "vllm:")},
	encode: func(o *Options, r *tacho.Request) ([]byte, error) {
		return encodeCompletion(o, r, &noPenalty)
	},
	decoder:    newOpenAIDecoder,
	tokenMarks: completionMarks,
	models:     openAIModels,
	count:      countPromptTokens,
	flush:      resetPrefixCache,
}

var openAI = Kind{
	Name:        "openai",
	Aliases:     []string{"openai-completions", "sglang-oai", "scalellm"},
	Doc:         "the OpenAI completions endpoint, offered by most servers",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        8000,
	MetricsPath: "/metrics",
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	supports:    allOptions,
	signatures:  []signature{{path: wire.OpenAIModelsPath, holds: `"object":"list"`, doubt: maxDoubt}},
	encode:      func(o *Options, r *tacho.Request) ([]byte, error) { return encodeCompletion(o, r, nil) },
	decoder:     newOpenAIDecoder,
	tokenMarks:  completionMarks,
	models:      openAIModels,
	count:       countPromptTokens,
	flush:       resetPrefixCache,
}

var completionMarks = []string{`"text":"`, `"text": "`}

// noPenalty is sent to vLLM if no repetition penalty is set, like vLLM's own benchmark does. Otherwise the model's
// generation config chooses a penalty. Other servers may reject the field.
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

// A plainCompletion contains only the fields every server accepts, because some servers reject unknown fields.
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

// uniqueSalt requests a different salt for each request.
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

// isOpenAI reports whether host is OpenAI's own service, which rejects extensions of the protocol.
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
	// With continuous usage, every chunk carries the number of tokens so far, and the differences are exact counts.
	// This is valid only if every chunk since the first carried usage: other servers send usage only with the last
	// chunk, or send zeros before.
	chunks, counted int // chunks with choices, and the number of those with usage
	completion      int // tokens generated up to the last chunk with usage
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
	c.text, c.calls, c.finish = x.Text, x.Calls, x.Finish
	if x.NaN {
		c.finish = []byte(wire.NaNHappened)
	}
	if n := len(x.Content); n > 0 && n < len(x.Text) {
		c.content = x.Content
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
	// If the first chunk is also the last, usage is a total and does not show whether this chunk carries a token.
	c.token = x.Kind != wire.OpenAINoToken || x.Blank && !c.end || x.TokenIDs > 0 || generated > 0 && (d.chunks > 1 || len(x.Finish) == 0)
	c.kind = tokenKinds[x.Kind]
	c.mute = x.Kind == wire.OpenAINoToken && x.TokenIDs == 0
	switch {
	case x.TokenIDs > 0:
		c.tokens = x.TokenIDs
	case c.token:
		c.tokens = generated
	}
	return nil
}

// generated returns the number of tokens in the chunk according to continuous usage, or 0 without continuous usage.
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

// resetPrefixCache uses vLLM's endpoint. The server refuses while requests hold cache blocks, so resetPrefixCache
// tries again.
func resetPrefixCache(ctx context.Context, c *client) error {
	const tries, pause = 20, 100 * time.Millisecond
	for range tries {
		// Old servers return an empty body on success.
		answer := struct{ Success *bool }{}
		err := c.query(ctx, http.MethodPost, "/reset_prefix_cache", nil, &answer)
		switch {
		case errors.Is(err, ErrNoEndpoint):
			return fmt.Errorf("%w; start vLLM with VLLM_SERVER_DEV_MODE=1 to enable it", err)
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
	return errors.New("the server's cache stays in use: try again when no request is running")
}
