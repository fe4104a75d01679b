package sim

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"
)

const (
	defaultDimensions = 1024
	maxDimensions     = 1 << 16
	maxNumbers        = 2 << 20 // in one answer, about 25 MB of text
)

// embedding answers after the model has read all inputs.
var embedding = &dialect{
	paths:     []string{wire.EmbeddingsPath},
	read:      readEmbedding,
	errorBody: openAIErrorBody,
}

func readEmbedding(in *incoming) (*generation, error) {
	var q embeddingsRequest
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	if q.Dimensions < 0 || q.Dimensions > maxDimensions {
		return nil, fmt.Errorf("dimensions: %d is not between 1 and %d", q.Dimensions, maxDimensions)
	}
	p := in.newPrompt()
	var seeds []uint64
	if q.Messages != nil {
		p.addMessages(q.Messages)
		seeds = []uint64{p.Seed}
	}
	for _, text := range q.Input.Texts {
		p.AddText(text)
		seeds = append(seeds, p.Seed)
	}
	for _, ids := range q.Input.IDs {
		p.AddIDs(ids)
		seeds = append(seeds, p.Seed)
	}
	dimensions := cmp.Or(q.Dimensions, defaultDimensions)
	if len(seeds)*dimensions > maxNumbers {
		return nil, fmt.Errorf("input: %d vectors of %d dimensions exceed %d numbers: send fewer inputs", len(seeds), dimensions, maxNumbers)
	}
	// The only token of the prefill is not sent.
	a, err := in.generation(p, params{model: q.Model, limit: 1, ignoreEOS: true})
	if err != nil {
		return nil, err
	}
	a.encoder = &eventEncoder{generation: a, appendJSON: func(b []byte, _, _ int) []byte {
		res := embeddingsResponse{Object: "list", Model: a.model, Data: []embeddingsItem{}}
		if !a.fx.noUsage {
			n := a.counted(a.Tokens)
			res.Usage = embeddingsUsage{PromptTokens: n, TotalTokens: n}
		}
		for i, seed := range seeds {
			vector := encodeVector(unitVector(seed, dimensions), q.EncodingFormat)
			res.Data = append(res.Data, embeddingsItem{Object: "embedding", Index: i, Embedding: vector})
		}
		return appendJSON(b, res)
	}}
	return a, nil
}

func encodeVector(vector []float32, format string) json.RawMessage {
	if format != "base64" {
		return appendJSON(nil, vector)
	}
	raw := make([]byte, 0, 4*len(vector))
	for _, x := range vector {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
	}
	return appendJSON(nil, raw) // json encodes bytes as base64
}

// unitVector returns a unit vector determined by the seed alone.
func unitVector(seed uint64, n int) []float32 {
	v := make([]float32, n)
	sum := 0.0
	for i := range v {
		x := float64(words.Output(seed, i))/float64(words.Size) - 0.5
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
