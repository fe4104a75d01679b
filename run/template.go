package run

import (
	"slices"
	"strings"
	"time"

	"tacho"
	"tacho/token"
	"tacho/workload"
)

// templatedSets are the datasets whose prompts are questions to a chat model:
// to a completions endpoint they go under the model's chat template, as the
// reference sends them.
var templatedSets = []string{"custom", "hf", "spec_bench", "speed_bench", "sonnet"}

// templates says whether the plan wants plain prompts put under the chat
// template.
func (p *Plan) templates() bool {
	return !p.SkipChatTemplate && slices.Contains(templatedSets, strings.ReplaceAll(p.DatasetName, "-", "_"))
}

// templated puts the prompts of work under the chat template, where the plan
// wants it and the server does not do it.
func (r *Runner) templated(p *Plan, kind workload.Kind, work workload.Workload) workload.Workload {
	if r.template == nil || r.kind.Takes.Messages || !r.kind.Takes.Text || p.SkipChatTemplate || !slices.Contains(templatedSets, kind.Name) {
		return work
	}
	return underTemplate{work, r.tokenizer, r.template}
}

// underTemplate is a workload whose plain prompts go under a chat template.
type underTemplate struct {
	workload.Workload
	tokenizer *token.Tokenizer
	template  *token.ChatTemplate
}

// Session implements tacho.Source.
func (u underTemplate) Session(i uint64) (tacho.Session, error) {
	s, err := u.Workload.Session(i)
	return s, u.apply(&s, err)
}

// Warmup implements workload.Workload.
func (u underTemplate) Warmup(i uint64) (tacho.Session, error) {
	s, err := u.Workload.Warmup(i)
	return s, u.apply(&s, err)
}

func (u underTemplate) apply(s *tacho.Session, err error) error {
	if err != nil {
		return err
	}
	for t := range s.Turns {
		q := &s.Turns[t].Request
		if q.Input.Text == "" {
			continue
		}
		text, err := u.template.Render([]token.Message{{Role: "user", Content: q.Input.Text}}, token.ChatOptions{AddGenerationPrompt: true, Now: time.Now()})
		if err != nil {
			return err
		}
		q.Input.Text = u.withoutStart(text)
		q.InputTokens = len(u.tokenizer.Encode(q.Input.Text, true))
	}
	return nil
}

// withoutStart takes away the token that opens a text: the server puts one
// there itself, and two would be one too many.
func (u underTemplate) withoutStart(text string) string {
	if u.tokenizer.Overhead() == 0 {
		return text
	}
	for _, s := range u.tokenizer.Specials() {
		if rest, ok := strings.CutPrefix(text, s.Text); ok && s.Text != "" {
			return rest
		}
	}
	return text
}

// exactPrompts makes random prompts that need no counting, if the tokenizer
// allows it and nothing but its own tokens comes around them.
func (r *Runner) exactPrompts(seed uint64) func(i uint64, n int) string {
	if _, plain := r.Counter.(promptCounter); !plain {
		return nil
	}
	prompts, err := token.NewPrompts(r.tokenizer, seed)
	if err != nil {
		return nil // texts are fitted by counting
	}
	around := r.tokenizer.Overhead()
	return func(i uint64, n int) string { return prompts.Text(i, max(n-around, 1)) }
}
