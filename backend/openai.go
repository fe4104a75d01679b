package backend

import (
	"tacho"
	"tacho/wire/openai"
)

var vllm = Kind{
	Name:        "vllm",
	Doc:         "vLLM's completions endpoint: text or token ids, exact output lengths",
	Endpoint:    openai.CompletionsPath,
	Takes:       Forms{Text: true, IDs: true},
	ExactLength: true,
	encode: func(o *Options, r *tacho.Request) ([]byte, error) {
		return encodeCompletion(o, r, &noPenalty)
	},
	decoder: newOpenAIDecoder,
	live:    []string{`"text":"`, `"text": "`},
	models:  openAIModels,
	count:   countPromptTokens,
}

var openAI = func() Kind {
	k := vllm // vLLM's endpoint is the same protocol; the names set expectations
	k.Name = "openai"
	k.Aliases = []string{"openai-completions", "sglang", "lmdeploy", "scalellm", "llama.cpp"}
	k.Doc = "the OpenAI completions endpoint, as most servers offer it"
	k.encode = func(o *Options, r *tacho.Request) ([]byte, error) { return encodeCompletion(o, r, nil) }
	return k
}()

// noPenalty is sent to vLLM where no repetition penalty is set, as its own
// benchmark does: the model's generation config would otherwise choose one.
// Servers that are not vLLM may not know the field, and refuse it.
var noPenalty = 1.0

func encodeCompletion(o *Options, r *tacho.Request, unsetPenalty *float64) ([]byte, error) {
	penalty := o.Sampling.RepetitionPenalty
	if penalty == nil {
		penalty = unsetPenalty
	}
	return marshalWith(&openai.CompletionRequest{
		Model:             modelOf(o, r),
		Prompt:            openai.Prompt{Text: r.Input.Text, IDs: r.Input.IDs},
		RepetitionPenalty: penalty,
		MaxTokens:         r.MaxTokens,
		Logprobs:          o.Logprobs,
		Stream:            true,
		StreamOptions:     &openai.StreamOptions{IncludeUsage: true},
		Sampling:          openAISampling(o, r),
	}, o.Extra, r.Extra)
}

func modelOf(o *Options, r *tacho.Request) string {
	if r.Model != "" {
		return r.Model
	}
	return o.Model
}

func openAISampling(o *Options, r *tacho.Request) openai.Sampling {
	s := o.Sampling
	return openai.Sampling{
		IgnoreEOS:        r.IgnoreEOS,
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
	delta openai.Delta

	// With continuous usage every chunk tells the tokens generated so far, and
	// the differences are exact counts. That holds only while it has been so
	// from the first chunk on: other servers send usage with the last chunk
	// alone, or zeros until then.
	chunks, counted int // chunks with choices, and how many of them had usage
	completion      int // tokens generated, by the last of them
	broken          bool
}

func newOpenAIDecoder() decoder { return new(openAIDecoder) }

var tokenKinds = [...]tacho.Kind{
	openai.ContentToken: tacho.Content, openai.ReasoningToken: tacho.Reasoning, openai.ToolCallToken: tacho.ToolCall,
}

func (d *openAIDecoder) decode(payload []byte, c *chunk) error {
	if string(payload) == openai.Done {
		c.end = true
		return nil
	}
	if err := d.delta.Decode(payload); err != nil {
		return err
	}
	x := &d.delta
	c.failed, c.message = x.Failed, x.Error
	c.text, c.finish = x.Text, x.Finish
	c.end = len(x.Finish) > 0
	if x.HasUsage {
		c.counted = true
		c.usage = tacho.Usage(x.Usage)
	}
	generated := d.generated()
	c.token = x.Kind != openai.NoToken || x.TokenIDs > 0 || generated > 0 && d.chunks > 1
	c.kind = tokenKinds[x.Kind]
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
func (d *openAIDecoder) generated() int {
	x := &d.delta
	if x.Choices == 0 {
		return 0
	}
	d.chunks++
	if x.HasUsage {
		d.counted++
	}
	n := x.Usage.Completion - d.completion
	d.completion = x.Usage.Completion
	if d.counted != d.chunks || n < 0 || n == 0 && x.Kind != openai.NoToken {
		d.broken = true
	}
	if d.broken {
		return 0
	}
	return n
}
