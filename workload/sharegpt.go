package workload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/rows"
)

var sharegpt = Kind{
	Name: "sharegpt", Doc: "first questions of ShareGPT conversations, with the filters of vllm bench serve",
	reads:   [][]string{{"conversations"}},
	New:     newShareGPT,
	options: func(d *Dataset, o *Options) { o.Output = d.ShareGPTOutput },
}

// shareGPTFlags are the options of sharegpt.
type shareGPTFlags struct {
	ShareGPTOutput Length `flag:"sharegpt-output-len" help:"sharegpt: output tokens; by default the length of the answer in the data"`
}

// shareGPTConversation is a conversation of a ShareGPT file.
type shareGPTConversation struct {
	Conversations []struct {
		From  string `json:"from"`
		Role  string `json:"role"`
		Value string `json:"value"`
		Text  string `json:"content"`
	} `json:"conversations"`
	Image string          `json:"image"`
	Video json.RawMessage `json:"video"`
}

// text returns the text of turn i.
func (t *shareGPTConversation) text(i int) string {
	if c := t.Conversations[i]; c.Value != "" {
		return c.Value
	}
	return t.Conversations[i].Text
}

// messages returns the turns with OpenAI's roles.
func (t *shareGPTConversation) messages() []tacho.Message {
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
		out[i] = tacho.Message{Role: role, Content: t.text(i)}
	}
	return out
}

func newShareGPT(ctx context.Context, o Options) (Workload, error) {
	if o.Path == "" {
		return nil, errors.New("sharegpt: no data; set --dataset-path ShareGPT_V3_unfiltered_cleaned_split.json")
	}
	pairs := o.newEntryList()
	pairs.limit = 0 // some entries will be filtered out
	unsent := 0     // images and videos
	bad := rows.Bad{Skip: o.Trace.SkipBad}
	err := rows.Each(o.Path, &bad, func(row json.RawMessage) error {
		var t shareGPTConversation
		if err := json.Unmarshal(row, &t); err != nil {
			return fmt.Errorf("not a ShareGPT conversation: %w", err)
		}
		if len(t.Conversations) >= 2 {
			prompt := t.text(0)
			e := entry{Prompt: &prompt, answer: t.text(1)}
			switch {
			case t.Image != "" && o.Media:
				e.ImageFiles = []string{t.Image}
			case t.Image != "" || t.Video != nil:
				unsent++
			}
			return pairs.add(e, len(prompt)+len(e.answer))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("sharegpt: %w", err)
	}
	w, err := newFiltered(ctx, "sharegpt", o, pairs.entries, shareGPTBounds, bad)
	if err == nil && unsent > 0 {
		w = withNote{w, fmt.Sprintf("the image or video of %d conversations was not sent; if it matters, choose a --backend that accepts it", unsent)}
	}
	return w, err
}
