package sim

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"

	"tacho/wire/embeddings"
)

const (
	defaultDimensions = 1024
	maxDimensions     = 1 << 16
)

// embedding answers when the model has read all inputs: it is a prefill whose
// one token is not told.
var embedding = &dialect{
	paths:   []string{embeddings.Path},
	read:    readEmbedding,
	refusal: openAIRefusal,
	broken:  openAIBroken,
}

func readEmbedding(in *incoming) (*ask, error) {
	var q embeddings.Request
	if err := parse(in.body, &q); err != nil {
		return nil, err
	}
	if q.Dimensions < 0 || q.Dimensions > maxDimensions {
		return nil, fmt.Errorf("dimensions: %d is not between 1 and %d", q.Dimensions, maxDimensions)
	}
	p := in.newPrompt()
	v := &embeddingVoice{q: &q, model: in.modelName(q.Model)}
	note := func() { v.seeds = append(v.seeds, p.seed) }
	for _, text := range q.Input.Texts {
		p.addText(text)
		note()
	}
	for _, ids := range q.Input.IDs {
		p.addIDs(ids)
		note()
	}
	a, err := in.ask(p, wish{limit: 1, ignoreEOS: true})
	if err != nil {
		return nil, err
	}
	v.ask = a
	a.voice = v
	return a, nil
}

type embeddingVoice struct {
	*ask
	q     *embeddings.Request
	model string
	seeds []uint64 // one for each input
}

func (v *embeddingVoice) early(b []byte) []byte            { return b }
func (v *embeddingVoice) tokens(b []byte, _, _ int) []byte { return b }
func (v *embeddingVoice) last(b []byte) []byte             { return b }

func (v *embeddingVoice) whole(b []byte) []byte {
	res := embeddings.Response{Object: "list", Model: v.model, Data: []embeddings.Item{}}
	if !v.fx.noUsage {
		n := v.counted(v.input)
		res.Usage = embeddings.Usage{PromptTokens: n, TotalTokens: n}
	}
	for i, seed := range v.seeds {
		vector := unitVector(seed, cmp.Or(v.q.Dimensions, defaultDimensions))
		item := embeddings.Item{Object: "embedding", Index: i}
		if v.q.EncodingFormat == "base64" {
			raw := make([]byte, 0, 4*len(vector))
			for _, x := range vector {
				raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(x))
			}
			item.Embedding = appendJSON(nil, raw) // bytes encode as base64
		} else {
			item.Embedding = appendJSON(nil, vector)
		}
		res.Data = append(res.Data, item)
	}
	return appendJSON(b, res)
}

// unitVector is a direction that depends on the seed alone.
func unitVector(seed uint64, n int) []float32 {
	v := make([]float32, n)
	sum := 0.0
	for i := range v {
		x := float64(outputID(seed, i))/float64(vocabSize) - 0.5
		v[i] = float32(x)
		sum += x * x
	}
	for i := range v {
		v[i] /= float32(math.Sqrt(sum))
	}
	return v
}
