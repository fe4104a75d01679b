package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"

	"tacho"
)

var sharegpt = Kind{
	Name: "sharegpt", Doc: "first questions of ShareGPT conversations, with the filters of vllm bench serve",
	New: newShareGPT,
}

// The lengths that vLLM's benchmark keeps, in tokens.
const (
	minSequence = 4
	maxPrompt   = 1024
	maxTotal    = 2048
)

// shareGPTTalk is a conversation of a ShareGPT file.
type shareGPTTalk struct {
	Conversations []struct {
		From  string `json:"from"`
		Role  string `json:"role"`
		Value string `json:"value"`
		Text  string `json:"content"`
	} `json:"conversations"`
}

// said is the text of turn i.
func (t *shareGPTTalk) said(i int) string {
	if c := t.Conversations[i]; c.Value != "" {
		return c.Value
	}
	return t.Conversations[i].Text
}

// messages are the turns, in the roles of OpenAI.
func (t *shareGPTTalk) messages() []tacho.Message {
	out := make([]tacho.Message, len(t.Conversations))
	for i, c := range t.Conversations {
		role := c.From
		if role == "" {
			role = c.Role
		}
		switch role {
		case "human", "user":
			role = "user"
		case "gpt", "chatgpt", "bing", "bard", "assistant", "model":
			role = "assistant"
		}
		out[i] = tacho.Message{Role: role, Content: t.said(i)}
	}
	return out
}

func newShareGPT(ctx context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("sharegpt: no data: give ShareGPT_V3_unfiltered_cleaned_split.json with --dataset-path")
	}
	var pairs [][2]string
	err := eachRow(o.Path, func(row json.RawMessage) error {
		var t shareGPTTalk
		if err := json.Unmarshal(row, &t); err != nil {
			return fmt.Errorf("not a conversation of ShareGPT: %w", err)
		}
		if len(t.Conversations) >= 2 {
			pairs = append(pairs, [2]string{t.said(0), t.said(1)})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sharegpt: %w", err)
	}
	if o.Shuffle {
		rngOf(o.Seed, 0).Shuffle(len(pairs), func(a, b int) { pairs[a], pairs[b] = pairs[b], pairs[a] })
	}
	entries, err := fittingPairs(ctx, o, pairs)
	if err != nil {
		return nil, fmt.Errorf("sharegpt: %w", err)
	}
	if len(entries) == 0 {
		return nil, fmt.Errorf("sharegpt: %s has no conversation of fitting length (prompts of %d to %d tokens, at most %d with the answer)", o.Path, minSequence, maxPrompt, maxTotal)
	}
	o.Shuffle = false // they are
	return newPool(ctx, o, entries)
}

// fittingPairs are the entries of the pairs whose lengths fit, in order, as
// many as are asked for. Pairs are counted several at once: it may be a server
// that counts.
func fittingPairs(ctx context.Context, o Options, pairs [][2]string) ([]entry, error) {
	var out []entry
	for chunk := range slices.Chunk(pairs, 8*fitters) {
		found, err := fitting(ctx, o, chunk)
		if err != nil {
			return nil, err
		}
		for _, e := range found {
			if e == nil {
				continue
			}
			if out = append(out, *e); o.Count > 0 && len(out) == o.Count {
				return out, nil
			}
			if o.Progress != nil {
				o.Progress(len(out), max(o.Count, len(out)))
			}
		}
	}
	return out, nil
}

// fitting are the entries of some pairs, nil where the lengths do not fit.
func fitting(ctx context.Context, o Options, pairs [][2]string) ([]*entry, error) {
	found := make([]*entry, len(pairs))
	errs := make([]error, fitters)
	var wg sync.WaitGroup
	for w := range fitters {
		wg.Go(func() {
			for i := w; i < len(pairs) && errs[w] == nil; i += fitters {
				found[i], errs[w] = fittingPair(ctx, o, pairs[i])
			}
		})
	}
	wg.Wait()
	return found, cmpErr(errs...)
}

// fittingPair is the entry of a question and its answer, nil if its lengths
// do not fit.
func fittingPair(ctx context.Context, o Options, pair [2]string) (*entry, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	prompt, err := o.Counter.Count(ctx, pair[0])
	if err != nil {
		return nil, err
	}
	given, constant := o.Output.Constant()
	if !constant || given > 0 {
		// A length that was asked for may be short; it counts for the total
		// as it will be drawn, which only a constant tells now.
		if prompt < minSequence || prompt > maxPrompt || constant && prompt+given > maxTotal {
			return nil, nil
		}
		return &entry{Prompt: &pair[0], tokens: prompt}, nil
	}
	answer, err := o.Counter.Count(ctx, pair[1])
	if err != nil {
		return nil, err
	}
	if prompt < minSequence || answer < minSequence || prompt > maxPrompt || prompt+answer > maxTotal {
		return nil, nil
	}
	return &entry{Prompt: &pair[0], OutputTokens: answer, tokens: prompt}, nil
}
