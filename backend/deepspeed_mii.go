package backend

import (
	"tacho"
	"tacho/wire"
)

var deepspeedMII = Kind{
	Name:        "deepspeed-mii",
	Aliases:     []string{"mii"},
	Doc:         "DeepSpeed-MII's completions endpoint: text; the server gives no counts",
	Endpoint:    wire.OpenAICompletionsPath,
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	carries:     []string{"temperature", "top_p", "top_k"},
	signs:       []sign{says(wire.OpenAIModelsPath, `"owned_by":"deepspeed-mii"`)},
	encode:      encodeMII,
	decoder:     newOpenAIDecoder,
	live:        completionMarks,
	models:      openAIModels,
}

// The native server is another program: it has its one endpoint, and nothing
// that could be asked but a description of itself.
var deepspeedMIIGenerate = Kind{
	Name:        "deepspeed-mii-generate",
	Aliases:     []string{"mii-generate"},
	Doc:         "DeepSpeed-MII's own endpoint: text; the server gives no counts, and does not say which model it serves",
	Endpoint:    miiGeneratePath,
	Port:        8000,
	Takes:       Forms{Text: true},
	ExactLength: true,
	carries:     []string{"temperature", "top_p", "top_k"},
	signs: []sign{
		// Others have an endpoint of that name, and another name for what it takes.
		says(openAPIPath, `"generate_generate_post","requestBody":{"content":{"application/json":{"schema":{"$ref":"#/components/schemas/CompletionRequest"`),
	},
	encode:  encodeMIIGenerate,
	decoder: func(*Options) decoder { return new(miiDecoder) },
	live:    []string{`"text":["`, `"text": ["`},
	models:  openAIModels, // for a proxy before it; the server itself has no such page
}

// encodeMII asks for the least number of tokens instead of no end: the server
// does not know ignore_eos.
func encodeMII(o *Options, r *tacho.Request) ([]byte, error) {
	q := plainCompletionOf(o, r)
	if r.IgnoreEOS {
		q.IgnoreEOS, q.MinTokens = false, r.MaxTokens
	}
	return marshalWith(q, o.Extra, r.Extra)
}

func encodeMIIGenerate(o *Options, r *tacho.Request) ([]byte, error) {
	s := o.Sampling
	q := wire.MIIRequest{Prompt: r.Input.Text, MaxTokens: r.MaxTokens, Stream: true, Temperature: s.Temperature, TopP: s.TopP, TopK: s.TopK}
	if r.IgnoreEOS {
		q.MinTokens = r.MaxTokens
	}
	return marshalWith(&q, o.Extra, r.Extra)
}

// An miiDecoder reads events that have a text for each prompt, of which there
// is one, and nothing else.
type miiDecoder struct {
	scan scanner
	text []byte
}

func (d *miiDecoder) decode(payload []byte, c *chunk) error {
	if string(payload) == miiDone {
		c.end = true
		return nil
	}
	d.text = d.text[:0]
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	c.text, c.token = d.text, len(d.text) > 0
	return nil
}

func (d *miiDecoder) member(key []byte) {
	if string(key) == "text" {
		d.scan.Array(func() { d.text, _ = d.scan.String(d.text) })
	}
}

// miiGeneratePath is where requests go.
const miiGeneratePath = "/generate"

// miiDone is the payload that ends a stream.
const miiDone = "[DONE]"
