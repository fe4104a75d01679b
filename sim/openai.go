package sim

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/sim/words"
)

const sseMime = "text/event-stream; charset=utf-8"

var completions = &dialect{
	paths:       []string{wire.OpenAICompletionsPath},
	mime:        sseMime,
	read:        readCompletion,
	errorBody:   openAIErrorBody,
	streamError: openAIStreamError,
}

var chat = &dialect{
	paths:       []string{wire.OpenAIChatPath},
	mime:        sseMime,
	read:        readChat,
	errorBody:   openAIErrorBody,
	streamError: openAIStreamError,
}

func openAIStreamError(p *emulatedServer, c *apiError) []byte {
	if p.openai.errorCuts {
		return nil
	}
	b := wire.AppendSSE(nil, "", nestedErrorBody(p, c))
	if p.openai.errorDone {
		b = append(b, doneEvent...)
	}
	return b
}

const doneEvent = wire.SSEBegin + wire.OpenAIDone + wire.SSEEnd

// A completionBody is the supported part of a completion request. A missing limit
// differs from 0.
type completionBody struct {
	wire.OpenAICompletionRequest
	openaiConstraints
	MaxTokens *int `json:"max_tokens"`
}

// check returns the first error in vLLM's order.
func (q *completionBody) check(in *incoming) error {
	if in.emulated.openai.lenient {
		return in.checkModel(q.Model)
	}
	limit := q.MaxTokens
	if q.Echo && limit != nil && *limit == 0 {
		limit = nil // the client wants only the prompt
	}
	return firstError(
		func() error { return checkFormat(&q.openaiConstraints) },
		func() error { return checkLogprobs("logprobs", q.Logprobs) },
		func() error { return in.checkModel(q.Model) },
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

func readCompletion(in *incoming) (*generation, error) {
	var q completionBody
	if err := in.parseOpenAI(in.body, &q); err != nil {
		return nil, err
	}
	v := &completionEncoder{openAIEncoder: openAIEncoder{variant: &in.emulated.openai, ids: q.ReturnTokenIDs}}
	if err := v.options(q.StreamOptions, q.Stream); err != nil {
		return nil, err
	}
	if err := q.check(in); err != nil {
		return nil, err
	}
	if q.Prompt.IDs != nil && in.emulated.openai.textOnly {
		return nil, errors.New("prompt: token ids are not supported, send text")
	}
	p := in.newPrompt()
	p.AddText(q.Prompt.Text)
	p.AddIDs(q.Prompt.IDs)
	w := params{model: q.Model, limit: 16, min: q.MinTokens, ignoreEOS: q.IgnoreEOS, stream: q.Stream, priority: q.Priority} // 16 is the protocol's default
	if q.MaxTokens != nil {
		w.limit = max(*q.MaxTokens, 1)
	}
	a, err := in.generation(p, w)
	if err != nil {
		return nil, err
	}
	if q.Echo {
		a.prefix = q.Prompt.Text + words.Decode(q.Prompt.IDs)
		if q.MaxTokens != nil && *q.MaxTokens == 0 {
			a.script = []string{} // the client wants only the prompt
		}
	}
	a.answerTo(q.Prompt.Text)
	a.constrain(&q.openaiConstraints, q.MinTokens)
	v.generation = a
	if q.Logprobs != nil {
		v.probs = clampLogprobs(*q.Logprobs)
	}
	v.created = time.Now().Unix()
	v.appendProbs = func(b []byte, from, to int) []byte { return appendJSON(b, v.completionLogprobs(from, to, *v.probs)) }
	v.token = v.tokenTemplate(false)
	a.encoder = v
	return a, v.fits()
}

// A chatBody is the supported part of a chat request.
type chatBody struct {
	wire.OpenAIChatRequest
	openaiConstraints
	MaxTokens           *int `json:"max_tokens"`
	MaxCompletionTokens *int `json:"max_completion_tokens"`
}

func (q *chatBody) limit() *int { return cmp.Or(q.MaxCompletionTokens, q.MaxTokens) }

func (q *chatBody) check(in *incoming) error {
	if in.emulated.openai.lenient {
		return in.checkModel(q.Model)
	}
	return firstError(
		func() error { return checkFormat(&q.openaiConstraints) },
		func() error {
			if q.TopLogprobs != nil && *q.TopLogprobs != 0 && !q.Logprobs {
				return &apiError{param: "top_logprobs", message: "when using `top_logprobs`, `logprobs` must be set to true."}
			}
			return checkLogprobs("top_logprobs", q.TopLogprobs)
		},
		func() error { return in.checkTools(&q.openaiConstraints) },
		func() error { return in.checkModel(q.Model) },
		func() error {
			return checkSampling(&q.OpenAISampling, q.RepetitionPenalty, &q.openaiConstraints, q.limit())
		},
	)
}

// call returns the tool call that the request demands and the schema of its
// arguments, or nil.
func (q *chatBody) call() (*openaiToolCall, json.RawMessage) {
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

func readChat(in *incoming) (*generation, error) {
	var q chatBody
	if err := in.parseOpenAI(in.body, &q); err != nil {
		return nil, err
	}
	v := &chatEncoder{openAIEncoder: openAIEncoder{variant: &in.emulated.openai, ids: q.ReturnTokenIDs}}
	if err := v.options(q.StreamOptions, q.Stream); err != nil {
		return nil, err
	}
	if err := q.check(in); err != nil {
		return nil, err
	}
	if q.Messages == nil {
		return nil, &apiError{syntax: true, param: "body.messages", message: "messages: Field required"}
	}
	p := in.newPrompt()
	p.addMessages(q.Messages)
	w := params{model: q.Model, min: q.MinTokens, ignoreEOS: q.IgnoreEOS, stream: q.Stream, priority: q.Priority}
	if limit := q.limit(); limit != nil {
		w.limit = max(*limit, 1)
	}
	a, err := in.generation(p, w)
	if err != nil {
		return nil, err
	}
	if call, arguments := q.call(); call != nil {
		call.ID = "chatcmpl-tool-" + a.id
		v.call, v.chosen = call, q.ToolChoice.Name != ""
		a.setScript(document(arguments, a.Seed))
	}
	if n := len(q.Messages); n > 0 {
		a.answerTo(q.Messages[n-1].Content.Text)
	}
	a.constrain(&q.openaiConstraints, q.MinTokens)
	v.generation = a
	if q.Logprobs {
		v.probs = clampLogprobs(*cmp.Or(q.TopLogprobs, new(int)))
	}
	v.begin()
	a.encoder = v
	return a, v.fits()
}

// clampLogprobs limits the number of log probabilities, for servers that do not
// validate it.
func clampLogprobs(requested int) *int {
	n := min(max(requested, 0), mostLogprobs)
	return &n
}

// constrain applies the request's constraints to the answer.
func (a *generation) constrain(c *openaiConstraints, min int) {
	if c.N != nil {
		a.choices = *c.N
	}
	f, s := c.ResponseFormat, c.StructuredOutputs
	switch {
	case a.script != nil: // already set
	case f != nil && f.Type == "json_schema" && f.JSONSchema != nil:
		a.setScript(document(f.JSONSchema.Schema, a.Seed))
	case f != nil && f.Type == "json_object":
		a.setScript(document(nil, a.Seed))
	case s != nil && s.JSON != nil:
		a.setScript(document(s.JSON, a.Seed))
	case s != nil && len(s.Choice) > 0:
		a.setScript(s.Choice[0])
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
	if !s.emulated.openai.strict {
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
