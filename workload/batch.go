package workload

import (
	"context"
	"errors"
	"fmt"

	"tacho"
)

// batched puts the prompts of several sessions into one request, as embedding
// endpoints take them.
type batched struct {
	Workload
	size uint64
}

func (b batched) Session(i uint64) (tacho.Session, error) { return b.join(i, b.Workload.Session) }

func (b batched) Warmup(i uint64) (tacho.Session, error) { return b.join(i, b.Workload.Warmup) }

func (b batched) join(i uint64, of func(uint64) (tacho.Session, error)) (tacho.Session, error) {
	var inputs []any
	var all tacho.Session
	for k := range b.size {
		s, err := of(i*b.size + k)
		if err != nil {
			return s, err
		}
		q := &s.Turns[0].Request
		if q.Input.IDs != nil {
			inputs = append(inputs, q.Input.IDs)
		} else {
			inputs = append(inputs, q.Input.Text)
		}
		if k == 0 {
			all = s
			continue
		}
		all.Turns[0].Request.InputTokens += q.InputTokens
	}
	all.Turns[0].Request.Session = i
	all.ID = i
	all.Turns[0].Request.Extra = map[string]any{"input": inputs}
	return all, nil
}

var randomRerank = Kind{
	Name: "random_rerank", Doc: "a query and --random-batch-size documents of random words, for rerank endpoints; a query and one document make --random-input-len",
	Endless: true, New: newRandomRerank,
}

// rerankWorkload asks for documents to be ranked: the first message is the
// query.
type rerankWorkload struct {
	Options
	query int
	*fitted
}

func newRandomRerank(ctx context.Context, o Options) (Workload, error) {
	input, constant := o.Input.Constant()
	if !o.Messages {
		return nil, errors.New("random_rerank: it needs a backend that ranks, as vllm-rerank")
	}
	w := &rerankWorkload{Options: o, query: input/2 - 1, fitted: newFitted(ctx, o.Counter)}
	if !constant || w.query < 1 || o.Batch < 1 {
		return nil, fmt.Errorf("random_rerank: %d documents of %v tokens with their query: a plain number of at least 4 and one document are needed (--random-input-len, --random-batch-size)", o.Batch, o.Input)
	}
	return w, w.ready(o.Count, o.Progress, func(i uint64) error { _, err := w.Session(i); return err })
}

// Session implements tacho.Source.
func (w *rerankWorkload) Session(i uint64) (tacho.Session, error) {
	input, _ := w.Input.Constant()
	const separator = 1 // token between query and document
	q := tacho.Request{}
	query, tokens, err := w.words(w.Seed, turnKey(i, 0), w.query)
	if err != nil {
		return tacho.Session{}, err
	}
	q.Input.Messages = []tacho.Message{query}
	for k := range w.Batch {
		doc, n, err := w.words(w.Seed, turnKey(i, k+1), input-w.query-separator)
		if err != nil {
			return tacho.Session{}, err
		}
		q.Input.Messages = append(q.Input.Messages, doc)
		q.InputTokens += tokens + separator + n
	}
	return single(i, q), nil
}

// Warmup implements Workload.
func (w *rerankWorkload) Warmup(i uint64) (tacho.Session, error) { return w.Session(warmupBase + i) }

// Notes implements Workload.
func (w *rerankWorkload) Notes() []string { return w.notes() }
