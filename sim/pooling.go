package sim

import (
	"cmp"
	"errors"
	"slices"

	"tacho/sim/words"
	"tacho/wire"
)

// pooling and rerank answer as embedding does, when the model has read all.
var pooling = &dialect{
	paths:   []string{wire.PoolingPath},
	read:    readPooling,
	refusal: openAIRefusal,
}

var rerank = &dialect{
	paths:   []string{wire.RerankPath, "/rerank", "/v2/rerank"},
	read:    readRerank,
	refusal: openAIRefusal,
}

func readPooling(in *incoming) (*ask, error) {
	var q poolingRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	seeds := p.addInputs(&q.Input)
	if err := fits(len(seeds), defaultDimensions); err != nil {
		return nil, err
	}
	return in.askDocument(p, q.Model, func(a *ask) any {
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

func readRerank(in *incoming) (*ask, error) {
	var q rerankRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	if len(q.Documents) == 0 {
		return nil, errors.New("documents: there are none to rank")
	}
	p := in.newPrompt()
	results := make([]rerankResult, len(q.Documents))
	for i, text := range q.Documents { // each is read together with the query
		p.AddText(q.Query)
		p.AddText(text)
		results[i] = rerankResult{
			Index: i, Document: rerankDocument{Text: text}, RelevanceScore: float64(words.Output(p.Seed, 0)) / float64(words.Size),
		}
	}
	slices.SortStableFunc(results, func(a, b rerankResult) int { return cmp.Compare(b.RelevanceScore, a.RelevanceScore) })
	return in.askDocument(p, q.Model, func(a *ask) any {
		res := rerankResponse{ID: "score-" + a.id, Model: a.model, Results: results}
		if !a.fx.noUsage {
			n := a.counted(a.Tokens)
			res.Usage = rerankUsage{PromptTokens: n, TotalTokens: n}
		}
		return res
	})
}

// addInputs adds all inputs, and returns a seed for each.
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

// askDocument asks for an answer in one document: a prefill whose one token is
// not sent.
func (in *incoming) askDocument(p prompt, model string, document func(*ask) any) (*ask, error) {
	a, err := in.ask(p, wish{model: model, limit: 1, ignoreEOS: true})
	if err != nil {
		return nil, err
	}
	a.voice = &eventVoice{ask: a, words: func(b []byte, _, _ int) []byte { return appendJSON(b, document(a)) }}
	return a, nil
}
