package workload

import (
	"context"
	"errors"
	"fmt"

	"github.com/tacho-bench/tacho"
)

// batched puts the prompts of several sessions into one request, for embeddings
// endpoints.
type batched struct {
	Workload
	size  uint64
	count uint64 // total number of prompts, 0 if unlimited; the last request may have fewer
}

func (b batched) Session(i uint64) (tacho.Session, error) {
	n := b.size
	if from := i * b.size; b.count > from {
		n = min(n, b.count-from)
	}
	return b.join(i, n, b.Workload.Session)
}

func (b batched) Warmup(i uint64) (tacho.Session, error) { return b.join(i, b.size, b.Workload.Warmup) }

func (b batched) join(i, n uint64, of func(uint64) (tacho.Session, error)) (tacho.Session, error) {
	var inputs []any
	var all tacho.Session
	for k := range n {
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

// batchFlags are the options of requests with several prompts.
type batchFlags struct {
	RandomBatchSize int  `flag:"random-batch-size" default:"1" most:"65536" help:"random: prompts in one request, for embeddings; random_rerank: documents in one request"`
	NoReranker      bool `flag:"no-reranker" help:"random_rerank: send query and documents together to an embeddings endpoint"`
}

// maxRequestTokens limits the tokens of one request with all its prompts.
const maxRequestTokens = 1 << 26

func (f *batchFlags) check(r *randomFlags) error {
	if f.RandomBatchSize < 1 {
		return fmt.Errorf("--random-batch-size %d: must be at least 1", f.RandomBatchSize)
	}
	input, constant := r.RandomInputLen.Constant()
	if tokens := (input + r.RandomPrefixLen) * f.RandomBatchSize; constant && tokens > maxRequestTokens {
		return fmt.Errorf("--random-batch-size %d: %d tokens in one request exceed the maximum of %d; reduce the batch or --random-input-len", f.RandomBatchSize, tokens, maxRequestTokens)
	}
	return nil
}

// inBatches returns the number of requests needed for prompts.
func inBatches(prompts, batch int) int {
	if batch < 2 {
		return prompts
	}
	return (prompts + batch - 1) / batch
}

var randomRerank = Kind{
	Name: "random_rerank", Doc: "a query and --random-batch-size documents of random words, for rerank endpoints; a query and one document make --random-input-len",
	Endless: true, Pairs: true, New: newRandomRerank,
	options: func(d *Dataset, o *Options) {
		o.Input, o.InRatio, o.Batch, o.NoRank = d.RandomInputLen, d.RandomRangeRatio.Input, d.RandomBatchSize, d.NoReranker
	},
	requests: func(d *Dataset, prompts int) int {
		if d.NoReranker && d.RandomBatchSize > 1 { // every request also contains the query as one of its prompts
			return inBatches(max(prompts-1, 1), d.RandomBatchSize-1)
		}
		return inBatches(prompts, d.RandomBatchSize)
	},
}

// rerankWorkload makes rerank requests. The first message is the query, which is the same
// in all requests.
type rerankWorkload struct {
	Options
	query     int // tokens
	separator int // tokens between the query and a document
	document  Length
	*textFitter
}

func newRandomRerank(ctx context.Context, o Options) (Workload, error) {
	input, constant := o.Input.Constant()
	if !o.Messages && !o.NoRank {
		return nil, errors.New("random_rerank needs a rerank backend such as vllm-rerank, or --no-reranker")
	}
	w := &rerankWorkload{Options: o, query: input/2 - 1, separator: 1, textFitter: newTextFitter(ctx, o.Counter)}
	documents := o.Batch
	if o.NoRank {
		w.query, w.separator, documents = input, 0, o.Batch-1
	}
	if !constant || w.query < 1 || documents < 1 {
		return nil, fmt.Errorf("random_rerank: %d documents of %v tokens including the query; --random-input-len must be a number of at least 4, and --random-batch-size must give at least one document", documents, o.Input)
	}
	query, err := Fixed(w.query).within(o.InRatio, 1)
	w.query = query.Draw(rngOf(o.Seed, prefixIndex), 1) // the query is shared, so its length is drawn once
	length := input
	if !o.NoRank {
		length = max(input-w.query-w.separator, 1)
	}
	if err == nil {
		w.document, err = Fixed(length).within(o.InRatio, 1)
	}
	if err != nil {
		return nil, fmt.Errorf("random_rerank: %w", err)
	}
	return w, w.precompute((o.Count+o.Batch-1)/o.Batch, o.Progress, func(i uint64) error { _, err := w.Session(i); return err })
}

// documents returns the number of documents in session i. The last session may have
// fewer.
func (w *rerankWorkload) documents(i uint64) int {
	each, all := w.Batch, w.Count
	if w.NoRank { // the query takes one place
		each, all = each-1, all-1
	}
	if rest := all - int(i)*each; i < warmupBase && w.Count > 0 && rest > 0 {
		return min(each, rest)
	}
	return each
}

// Session implements tacho.Source.
func (w *rerankWorkload) Session(i uint64) (tacho.Session, error) {
	queryOf := prefixIndex
	if i >= warmupBase {
		queryOf = i // a query that no session of the run uses
	}
	query, tokens, err := w.words(w.Seed, turnKey(queryOf, -1), w.query)
	if err != nil {
		return tacho.Session{}, err
	}
	q := tacho.Request{}
	messages := []tacho.Message{query}
	rng := rngOf(w.Seed, i)
	for k := range w.documents(i) {
		doc, n, err := w.words(w.Seed, turnKey(i, k), w.document.Draw(rng, 1))
		if err != nil {
			return tacho.Session{}, err
		}
		messages = append(messages, doc)
		if q.InputTokens += n; !w.NoRank {
			q.InputTokens += tokens + w.separator // the server reads the query with each document
		}
	}
	if !w.NoRank {
		q.Input.Messages = messages
		return single(i, q), nil
	}
	q.InputTokens += tokens
	var inputs []any
	for _, m := range messages {
		inputs = append(inputs, m.Content)
	}
	q.Input.Text, q.Extra = query.Content, map[string]any{"input": inputs}
	return single(i, q), nil
}

// Warmup implements Workload.
func (w *rerankWorkload) Warmup(i uint64) (tacho.Session, error) { return w.Session(warmupBase + i) }

// Notes implements Workload.
func (w *rerankWorkload) Notes() []string { return w.notes() }
