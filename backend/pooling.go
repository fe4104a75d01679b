package backend

import (
	"cmp"
	"errors"
	"strings"

	"tacho"
	"tacho/wire"
)

// The protocols of models that read and do not write. An answer is one
// document, timed as a whole.
var (
	openAIEmbeddings = pools(Kind{
		Name:     "openai-embeddings",
		Aliases:  []string{"embeddings"},
		Doc:      "the OpenAI embeddings endpoint: text or token ids in, no tokens out",
		Endpoint: wire.EmbeddingsPath,
		Takes:    Forms{Text: true, IDs: true},
		encode:   encodeEmbeddings,
		inputs:   inputsOf,
		count:    countPromptTokens,
	})
	vllmPooling = pools(Kind{
		Name:     "vllm-pooling",
		Aliases:  []string{"pooling"},
		Doc:      "vLLM's pooling endpoint: text or token ids in, no tokens out",
		Endpoint: wire.PoolingPath,
		Takes:    Forms{Text: true, IDs: true},
		encode:   encodePooling,
		inputs:   inputsOf,
		count:    countPromptTokens,
	})
	vllmRerank = pools(Kind{
		Name:     "vllm-rerank",
		Aliases:  []string{"rerank"},
		Doc:      "the rerank endpoint of vLLM and others: the first line or message is the query, the others are documents",
		Endpoint: wire.RerankPath,
		Takes:    Forms{Text: true, Messages: true},
		encode:   encodeRerank,
		inputs:   func(r *tacho.Request) int { return len(toRank(r)) - 1 },
		count:    countPromptTokens,
	})
)

// pools completes a Kind with what all of these have in common.
func pools(k Kind) Kind {
	k.Port, k.MetricsPath = cmp.Or(k.Port, 8000), "/metrics"
	k.Pools, k.framing = true, oneDocument
	k.decoder = func(*Options) decoder { return new(poolingDecoder) }
	if k.models == nil {
		k.models = openAIModels
	}
	return k
}

// encodeEmbeddings asks for base64: a list of numbers would cost more to read
// than to compute. What is too long for the model is cut, as vLLM's benchmark
// has it, except at OpenAI's own server, which does not know how.
func encodeEmbeddings(o *Options, r *tacho.Request) ([]byte, error) {
	truncate := -1
	if o.atOpenAI {
		truncate = 0
	}
	return marshalWith(&struct {
		Model          string            `json:"model,omitempty"`
		Input          wire.OpenAIPrompt `json:"input"`
		Truncate       int               `json:"truncate_prompt_tokens,omitempty"` // -1: to what the model takes
		EncodingFormat string            `json:"encoding_format"`
	}{modelOf(o, r), wire.OpenAIPrompt{Text: r.Input.Text, IDs: r.Input.IDs}, truncate, "base64"}, o.Extra, r.Extra)
}

func encodePooling(o *Options, r *tacho.Request) ([]byte, error) {
	return marshalWith(&struct {
		Model    string            `json:"model,omitempty"`
		Truncate int               `json:"truncate_prompt_tokens"` // -1: to what the model takes
		Input    wire.OpenAIPrompt `json:"input"`
	}{modelOf(o, r), -1, wire.OpenAIPrompt{Text: r.Input.Text, IDs: r.Input.IDs}}, o.Extra, r.Extra)
}

// inputsOf is how many texts are embedded: those that a workload has put in the
// place of the one.
func inputsOf(r *tacho.Request) int {
	several, _ := r.Extra["input"].([]any)
	return max(len(several), 1)
}

// toRank is the query, and the documents behind it.
func toRank(r *tacho.Request) []string {
	if r.Input.Messages == nil {
		return strings.Split(strings.TrimRight(r.Input.Text, "\n"), "\n")
	}
	var texts []string
	for _, m := range r.Input.Messages {
		texts = append(texts, m.Content)
	}
	return texts
}

func encodeRerank(o *Options, r *tacho.Request) ([]byte, error) {
	texts := toRank(r)
	if len(texts) < 2 {
		return nil, errors.New("nothing to rank: the first line of the prompt is the query, and each further line a document")
	}
	return marshalWith(&struct {
		Model     string   `json:"model,omitempty"`
		Query     string   `json:"query"`
		Documents []string `json:"documents"`
		Truncate  int      `json:"truncate_prompt_tokens"`
	}{modelOf(o, r), texts[0], texts[1:], -1}, o.Extra, r.Extra)
}

// A poolingDecoder reads the one document of an answer.
type poolingDecoder struct {
	scan    scanner
	usage   tacho.Usage
	total   int
	counted bool
	results bool // there is a list of them
}

func (d *poolingDecoder) decode(payload []byte, c *chunk) error {
	*d = poolingDecoder{scan: d.scan}
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	c.end = d.results
	if d.usage.Prompt == 0 {
		d.usage.Prompt = d.total // rerankers have the total alone
	}
	c.counted, c.usage = d.counted, d.usage
	if !c.failed && !d.results {
		return errors.New("an answer without results")
	}
	return nil
}

func (d *poolingDecoder) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "data", "results", "embeddings":
		d.results = s.Len() > 0
	case "usage":
		d.counted = s.Object(func(key []byte) {
			switch string(key) {
			case "prompt_tokens":
				d.usage.Prompt = s.Natural()
			case "total_tokens":
				d.total = s.Natural()
			}
		})
	}
}
