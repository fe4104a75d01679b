package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tacho/sim/words"
	"tacho/wire"
)

const sseMime = "text/event-stream; charset=utf-8"

var completions = &dialect{
	paths:   []string{wire.OpenAICompletionsPath},
	mime:    sseMime,
	read:    readCompletion,
	refusal: openAIRefusal,
	broken:  openAIBroken,
}

var chat = &dialect{
	paths:   []string{wire.OpenAIChatPath},
	mime:    sseMime,
	read:    readChat,
	refusal: openAIRefusal,
	broken:  openAIBroken,
}

func openAIBroken(p *pose, c *complaint) []byte {
	if p.openai.errorCuts {
		return nil
	}
	b := wire.AppendSSE(nil, "", nestedRefusal(p, c))
	if p.openai.errorDone {
		b = append(b, doneEvent...)
	}
	return b
}

const doneEvent = wire.SSEBegin + wire.OpenAIDone + wire.SSEEnd

// A completionAsk is all that is understood of a request for a completion. Its
// limit may be left out, which is not the same as 0.
type completionAsk struct {
	wire.OpenAICompletionRequest
	openaiConstraints
	MaxTokens *int `json:"max_tokens"`
}

// check complains in the order in which vLLM does.
func (q *completionAsk) check(in *incoming) error {
	if in.pose.openai.lenient {
		return in.knows(q.Model)
	}
	limit := q.MaxTokens
	if q.Echo && limit != nil && *limit == 0 {
		limit = nil // only the prompt is wanted
	}
	return firstError(
		func() error { return checkFormat(&q.openaiConstraints) },
		func() error { return checkLogprobs("logprobs", q.Logprobs) },
		func() error { return in.knows(q.Model) },
		func() error {
			return checkSampling(&q.OpenAISampling, q.RepetitionPenalty, &q.openaiConstraints, limit)
		},
	)
}

// firstError runs checks until one fails.
func firstError(checks ...func() error) error {
	for _, check := range checks {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

func readCompletion(in *incoming) (*ask, error) {
	var q completionAsk
	if err := in.parseOpenAI(in.body, &q); err != nil {
		return nil, err
	}
	v := &completionVoice{openAIVoice: openAIVoice{manner: &in.pose.openai, ids: q.ReturnTokenIDs}}
	if err := v.options(q.StreamOptions, q.Stream); err != nil {
		return nil, err
	}
	if err := q.check(in); err != nil {
		return nil, err
	}
	if q.Prompt.IDs != nil && in.pose.openai.textOnly {
		return nil, errors.New("prompt: token ids are not supported, send text")
	}
	p := in.newPrompt()
	p.AddText(q.Prompt.Text)
	p.AddIDs(q.Prompt.IDs)
	w := wish{model: q.Model, limit: 16, min: q.MinTokens, ignoreEOS: q.IgnoreEOS, stream: q.Stream, priority: q.Priority} // 16 is the protocol's default
	if q.MaxTokens != nil {
		w.limit = max(*q.MaxTokens, 1)
	}
	a, err := in.ask(p, w)
	if err != nil {
		return nil, err
	}
	if q.Echo {
		a.before = q.Prompt.Text + words.Decode(q.Prompt.IDs)
		if q.MaxTokens != nil && *q.MaxTokens == 0 {
			a.script = []string{} // only the prompt is wanted
		}
	}
	a.constrain(&q.openaiConstraints, q.MinTokens)
	v.ask = a
	if q.Logprobs != nil {
		v.probs = someLogprobs(*q.Logprobs)
	}
	v.begin()
	a.voice = v
	return a, v.fits()
}

// A chatAsk is all that is understood of a request for a chat.
type chatAsk struct {
	wire.OpenAIChatRequest
	openaiConstraints
	MaxTokens           *int `json:"max_tokens"`
	MaxCompletionTokens *int `json:"max_completion_tokens"`
}

func (q *chatAsk) limit() *int { return cmp.Or(q.MaxCompletionTokens, q.MaxTokens) }

func (q *chatAsk) check(in *incoming) error {
	if in.pose.openai.lenient {
		return in.knows(q.Model)
	}
	return firstError(
		func() error { return checkFormat(&q.openaiConstraints) },
		func() error {
			if q.TopLogprobs != nil && *q.TopLogprobs != 0 && !q.Logprobs {
				return &complaint{param: "top_logprobs", message: "when using `top_logprobs`, `logprobs` must be set to true."}
			}
			return checkLogprobs("top_logprobs", q.TopLogprobs)
		},
		func() error { return in.checkTools(&q.openaiConstraints) },
		func() error { return in.knows(q.Model) },
		func() error {
			return checkSampling(&q.OpenAISampling, q.RepetitionPenalty, &q.openaiConstraints, q.limit())
		},
	)
}

// call is the tool call that the request demands, and the schema of its
// arguments; nil if it demands none.
func (q *chatAsk) call() (*openaiToolCall, json.RawMessage) {
	if q.ToolChoice == nil || q.ToolChoice.Word == "none" || q.ToolChoice.Word == "auto" || len(q.Tools) == 0 {
		return nil, nil
	}
	f := &q.Tools[0].Function
	for i := range q.Tools {
		if q.Tools[i].Function.Name == q.ToolChoice.Name {
			f = &q.Tools[i].Function
		}
	}
	return &openaiToolCall{Type: "function", Function: openaiFunctionCall{Name: f.Name}}, f.Parameters
}

func readChat(in *incoming) (*ask, error) {
	var q chatAsk
	if err := in.parseOpenAI(in.body, &q); err != nil {
		return nil, err
	}
	v := &chatVoice{openAIVoice: openAIVoice{manner: &in.pose.openai, ids: q.ReturnTokenIDs}}
	if err := v.options(q.StreamOptions, q.Stream); err != nil {
		return nil, err
	}
	if err := q.check(in); err != nil {
		return nil, err
	}
	if q.Messages == nil {
		return nil, &complaint{syntax: true, param: "body.messages", message: "messages: Field required"}
	}
	p := in.newPrompt()
	p.addMessages(q.Messages)
	w := wish{model: q.Model, min: q.MinTokens, ignoreEOS: q.IgnoreEOS, stream: q.Stream, priority: q.Priority}
	if limit := q.limit(); limit != nil {
		w.limit = max(*limit, 1)
	}
	a, err := in.ask(p, w)
	if err != nil {
		return nil, err
	}
	if call, arguments := q.call(); call != nil {
		call.ID = "chatcmpl-tool-" + a.id
		v.call, v.chosen = call, q.ToolChoice.Name != ""
		a.say(document(arguments, a.Seed))
	}
	a.constrain(&q.openaiConstraints, q.MinTokens)
	v.ask = a
	if q.Logprobs {
		v.probs = someLogprobs(*cmp.Or(q.TopLogprobs, new(int)))
	}
	v.begin()
	a.voice = v
	return a, v.fits()
}

// someLogprobs bounds how many are told, for servers that do not check how many
// are asked for.
func someLogprobs(asked int) *int {
	n := min(max(asked, 0), mostLogprobs)
	return &n
}

// constrain gives the answer the form that the request wants it to have.
func (a *ask) constrain(c *openaiConstraints, min int) {
	if c.N != nil {
		a.choices = *c.N
	}
	f, s := c.ResponseFormat, c.StructuredOutputs
	switch {
	case a.script != nil: // it has one
	case f != nil && f.Type == "json_schema" && f.JSONSchema != nil:
		a.say(document(f.JSONSchema.Schema, a.Seed))
	case f != nil && f.Type == "json_object":
		a.say(document(nil, a.Seed))
	case s != nil && s.JSON != nil:
		a.say(document(s.JSON, a.Seed))
	case s != nil && len(s.Choice) > 0:
		a.say(s.Choice[0])
	}
	a.stopAtFirst(stops{strings: c.Stop, ids: c.StopTokenIDs, min: min, include: c.IncludeStop, always: true})
}

// strictFields are the fields that a strict server accepts.
var strictFields = strings.Fields(`model prompt messages max_tokens max_completion_tokens temperature stream stream_options
	ignore_eos min_tokens seed stop stop_token_ids top_p top_k min_p n best_of echo suffix user frequency_penalty
	presence_penalty repetition_penalty length_penalty early_stopping logit_bias logprobs top_logprobs use_beam_search
	include_stop_str_in_output skip_special_tokens spaces_between_special_tokens truncate_prompt_tokens detokenize
	add_special_tokens add_generation_prompt response_format tools tool_choice prompt_token_ids chat_template
	chat_template_kwargs documents lora_request disaggregated_params`)

func (s *Server) parseOpenAI(body []byte, into any) error {
	if err := parse(body, into); err != nil {
		return err
	}
	if !s.pose.openai.strict {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := parse(body, &fields); err != nil {
		return err
	}
	for name := range fields {
		if !slices.Contains(strictFields, name) {
			return fmt.Errorf("%s: extra inputs are not permitted", name)
		}
	}
	return nil
}
