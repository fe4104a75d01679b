package sim

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tacho/wire/openai"
)

const sseMime = "text/event-stream; charset=utf-8"

var completions = &dialect{
	paths:   []string{openai.CompletionsPath},
	mime:    sseMime,
	read:    readCompletion,
	refusal: openAIRefusal,
	broken:  openAIBroken,
}

var chat = &dialect{
	paths:   []string{openai.ChatPath},
	mime:    sseMime,
	read:    readChat,
	refusal: openAIRefusal,
	broken:  openAIBroken,
}

func openAIRefusal(p *pose, status int, message string) []byte {
	kind := strings.ReplaceAll(http.StatusText(status), " ", "")
	if p.openai.flatError {
		return appendJSON(nil, map[string]any{"object": "error", "message": message, "type": kind, "param": nil, "code": status})
	}
	return appendJSON(nil, openai.ErrorResponse{Error: openai.Error{Message: message, Type: kind, Code: status}})
}

func openAIBroken(p *pose, status int, message string) []byte {
	if p.openai.errorCuts {
		return nil
	}
	b := append(append([]byte("data: "), openAIRefusal(p, status, message)...), "\n\n"...)
	if p.openai.errorDone {
		b = append(b, doneEvent...)
	}
	return b
}

const doneEvent = "data: " + openai.Done + "\n\n"

func readCompletion(in *incoming) (*ask, error) {
	q := openai.CompletionRequest{MaxTokens: 16} // the protocol's default
	if err := in.parseOpenAI(in.body, &q); err != nil {
		return nil, err
	}
	if q.Prompt.IDs != nil && in.pose.openai.textOnly {
		return nil, errors.New("prompt: token ids are not supported, send text")
	}
	p := in.newPrompt()
	p.addText(q.Prompt.Text)
	p.addIDs(q.Prompt.IDs)
	a, err := in.ask(p, wish{limit: q.MaxTokens, min: q.MinTokens, ignoreEOS: q.IgnoreEOS, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	v := &completionVoice{openAIVoice: openAIVoice{ask: a, manner: &in.pose.openai, ids: q.ReturnTokenIDs}}
	if err := v.options(q.StreamOptions); err != nil {
		return nil, err
	}
	v.begin(in.Server, q.Model)
	a.voice = v
	return a, nil
}

func readChat(in *incoming) (*ask, error) {
	var q openai.ChatRequest
	if err := in.parseOpenAI(in.body, &q); err != nil {
		return nil, err
	}
	p := in.newPrompt()
	p.addMessages(q.Messages)
	a, err := in.ask(p, wish{limit: max(q.MaxTokens, q.MaxCompletionTokens), min: q.MinTokens, ignoreEOS: q.IgnoreEOS, stream: q.Stream})
	if err != nil {
		return nil, err
	}
	v := &chatVoice{openAIVoice: openAIVoice{ask: a, manner: &in.pose.openai, ids: q.ReturnTokenIDs}}
	if err := v.options(q.StreamOptions); err != nil {
		return nil, err
	}
	v.begin(in.Server, q.Model)
	a.voice = v
	return a, nil
}

// strictFields are all that a server which allows no others allows.
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
