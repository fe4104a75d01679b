package backend

import (
	"cmp"
	"errors"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/wire"
)

// Protocols of models without text output. A response is one document with one arrival time.
var (
	openAIEmbeddings = pools(Kind{
		Name:     "openai-embeddings",
		Aliases:  []string{"embeddings"},
		Doc:      "the OpenAI embeddings endpoint: text or token ids; no output tokens",
		Endpoint: wire.EmbeddingsPath,
		Takes:    Forms{Text: true, IDs: true},
		encode:   encodeEmbeddings,
		inputs:   inputsOf,
		count:    countPromptTokens,
	})
	vllmPooling = pools(Kind{
		Name:     "vllm-pooling",
		Aliases:  []string{"pooling"},
		Doc:      "vLLM's pooling endpoint: text or token ids; no output tokens",
		Endpoint: "/pooling",
		Takes:    Forms{Text: true, IDs: true},
		encode:   encodePooling,
		inputs:   inputsOf,
		count:    countPromptTokens,
	})
	vllmRerank = pools(Kind{
		Name:     "vllm-rerank",
		Aliases:  []string{"rerank"},
		Doc:      "the rerank endpoint of vLLM and others: the first line or message is the query, the others are documents",
		Endpoint: "/v1/rerank",
		Takes:    Forms{Text: true, Messages: true},
		encode:   encodeRerank,
		inputs:   func(r *tacho.Request) int { return len(toRank(r)) - 1 },
		count:    countPromptTokens,
	})
)

// pools fills in the fields common to all these kinds.
func pools(k Kind) Kind {
	k.Port, k.MetricsPath = cmp.Or(k.Port, 8000), "/metrics"
	k.Pools, k.framing = true, oneDocument
	k.decoder = func(*Options) decoder { return new(poolingDecoder) }
	if k.models == nil {
		k.models = openAIModels
	}
	return k
}

// encodeEmbeddings requests base64, because parsing a list of numbers would take longer than computing the
// embedding. Inputs too long for the model are truncated, as in vLLM's benchmark; OpenAI's own service does not
// support truncation.
func encodeEmbeddings(o *Options, r *tacho.Request) ([]byte, error) {
	truncate := -1
	if o.atOpenAI {
		truncate = 0
	}
	return marshalWith(&struct {
		Model          string            `json:"model,omitempty"`
		Input          wire.OpenAIPrompt `json:"input"`
		Truncate       int               `json:"truncate_prompt_tokens,omitempty"` // -1 truncates to the model's maximum
		EncodingFormat string            `json:"encoding_format"`
	}{modelOf(o, r), wire.OpenAIPrompt{Text: r.Input.Text, IDs: r.Input.IDs}, truncate, "base64"}, o.Extra, r.Extra)
}

func encodePooling(o *Options, r *tacho.Request) ([]byte, error) {
	return marshalWith(&struct {
		Model    string            `json:"model,omitempty"`
		Truncate int               `json:"truncate_prompt_tokens"` // -1 truncates to the model's maximum
		Input    wire.OpenAIPrompt `json:"input"`
	}{modelOf(o, r), -1, wire.OpenAIPrompt{Text: r.Input.Text, IDs: r.Input.IDs}}, o.Extra, r.Extra)
}

// inputsOf returns the number of texts to embed. A workload may replace the single text by a list.
func inputsOf(r *tacho.Request) int {
	several, _ := r.Extra["input"].([]any)
	return max(len(several), 1)
}

// toRank returns the query followed by the documents.
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
		return nil, errors.New("the prompt has no documents to rank: the first line is the query, each further line is a document")
	}
	return marshalWith(&struct {
		Model     string   `json:"model,omitempty"`
		Query     string   `json:"query"`
		Documents []string `json:"documents"`
		Truncate  int      `json:"truncate_prompt_tokens"`
	}{modelOf(o, r), texts[0], texts[1:], -1}, o.Extra, r.Extra)
}

// A poolingDecoder decodes the document of a response.
type poolingDecoder struct {
	scan    scanner
	usage   tacho.Usage
	total   int
	counted bool
	results bool // the document contains a list of results
}

func (d *poolingDecoder) decode(payload []byte, c *chunk) error {
	*d = poolingDecoder{scan: d.scan}
	if err := d.scan.read(payload, c, d.member); err != nil {
		return err
	}
	c.end = d.results
	if d.usage.Prompt == 0 {
		d.usage.Prompt = d.total // rerankers send only the total
	}
	c.counted, c.usage = d.counted, d.usage
	if !c.failed && !d.results {
		return errors.New("the response contains no results")
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
