package sim

import (
	"cmp"
	"errors"
	"slices"

	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"
)

// pooling and rerank answer after the model has read all inputs, like embedding.
var pooling = &dialect{
	paths:     []string{wire.PoolingPath},
	read:      readPooling,
	errorBody: openAIErrorBody,
}

var rerank = &dialect{
	paths:     []string{wire.RerankPath, "/rerank", "/v2/rerank"},
	read:      readRerank,
	errorBody: openAIErrorBody,
}

func readPooling(in *incoming) (*generation, error) {
	var q poolingRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	seeds := p.addInputs(&q.Input)
	if err := fits(len(seeds), defaultDimensions); err != nil {
		return nil, err
	}
	return in.documentGeneration(p, q.Model, func(a *generation) any {
		res := poolingResponse{
			ID: "pool-" + a.id, Object: "list", Created: in.clock.start.Unix(), Model: a.model, Data: []poolingItem{},
		}
		if !a.fx.noUsage {
			n := a.counted(a.Tokens)
			res.Usage = embeddingsUsage{PromptTokens: n, TotalTokens: n}
		}
		for i, seed := range seeds {
			res.Data = append(res.Data, poolingItem{Index: i, Object: "pooling", Data: appendJSON(nil, unitVector(seed, defaultDimensions))})
		}
		return res
	})
}

func readRerank(in *incoming) (*generation, error) {
	var q rerankRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	if len(q.Documents) == 0 {
		return nil, errors.New("documents: the list is empty")
	}
	p := in.newPrompt()
	results := make([]rerankResult, len(q.Documents))
	for i, text := range q.Documents { // each document is read together with the query
		p.AddText(q.Query)
		p.AddText(text)
		results[i] = rerankResult{
			Index: i, Document: rerankDocument{Text: text}, RelevanceScore: float64(words.Output(p.Seed, 0)) / float64(words.Size),
		}
	}
	slices.SortStableFunc(results, func(a, b rerankResult) int { return cmp.Compare(b.RelevanceScore, a.RelevanceScore) })
	return in.documentGeneration(p, q.Model, func(a *generation) any {
		res := rerankResponse{ID: "score-" + a.id, Model: a.model, Results: results}
		if !a.fx.noUsage {
			n := a.counted(a.Tokens)
			res.Usage = rerankUsage{PromptTokens: n, TotalTokens: n}
		}
		return res
	})
}

// addInputs adds all inputs and returns a seed for each.
func (p *prompt) addInputs(in *embeddingsInputs) (seeds []uint64) {
	for _, text := range in.Texts {
		p.AddText(text)
		seeds = append(seeds, p.Seed)
	}
	for _, ids := range in.IDs {
		p.AddIDs(ids)
		seeds = append(seeds, p.Seed)
	}
	return seeds
}

// documentGeneration returns a generation of one document: a prefill whose only
// token is not sent.
func (in *incoming) documentGeneration(p prompt, model string, document func(*generation) any) (*generation, error) {
	a, err := in.generation(p, params{model: model, limit: 1, ignoreEOS: true})
	if err != nil {
		return nil, err
	}
	a.encoder = &eventEncoder{generation: a, appendJSON: func(b []byte, _, _ int) []byte { return appendJSON(b, document(a)) }}
	return a, nil
}
