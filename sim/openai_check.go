package sim

import (
	"fmt"
	"math"
	"slices"

	"github.com/tacho-bench/tacho/internal/wire"
)

// A number is a field of a request and its valid range in vLLM.
type number struct {
	name  string
	value *float64 // nil: not set
	low   float64  // minimum
	high  float64  // maximum
	above bool     // low itself is invalid
	named bool     // the error names the field as its param
}

func (n *number) check() error {
	v := n.value
	if v == nil || *v <= n.high && (*v > n.low || *v == n.low && !n.above) {
		return nil
	}
	must := fmt.Sprintf("at least %v", n.low)
	if n.above {
		must = fmt.Sprintf("above %v", n.low)
	}
	if n.high < math.MaxFloat64 {
		must += fmt.Sprintf(" and at most %v", n.high)
	}
	c := &apiError{message: fmt.Sprintf("%s must be %s, got %v.", n.name, must, *v)}
	if n.named {
		c.param = n.name
	}
	return c
}

func asFloat(v *int) *float64 {
	if v == nil {
		return nil
	}
	f := float64(*v)
	return &f
}

const (
	mostLogprobs = 20  // vLLM's default
	mostChoices  = 128 // vLLM allows more, but needs more memory
)

// checkSampling returns an error if a number is out of range.
func checkSampling(s *wire.OpenAISampling, repetition *float64, c *openaiConstraints, maxTokens *int) error {
	inf := math.Inf(1)
	for _, n := range []number{
		{name: "n", value: asFloat(c.N), low: 1, high: mostChoices},
		{name: "presence_penalty", value: s.PresencePenalty, low: -2, high: 2},
		{name: "frequency_penalty", value: s.FrequencyPenalty, low: -2, high: 2},
		{name: "repetition_penalty", value: repetition, low: 0, high: math.MaxFloat64, above: true},
		{name: "temperature", value: s.Temperature, low: 0, high: 2, named: true},
		{name: "top_p", value: s.TopP, low: 0, high: 1, above: true, named: true},
		{name: "top_k", value: asFloat(s.TopK), low: -1, high: inf},
		{name: "min_p", value: s.MinP, low: 0, high: 1},
		{name: "max_tokens", value: asFloat(maxTokens), low: 1, high: inf, named: true},
		{name: "min_tokens", value: asFloat(&s.MinTokens), low: 0, high: inf},
	} {
		if err := n.check(); err != nil {
			return err
		}
	}
	if maxTokens != nil && s.MinTokens > *maxTokens {
		return &apiError{message: fmt.Sprintf("min_tokens must be less than or equal to max_tokens=%d, got %d.", *maxTokens, s.MinTokens)}
	}
	if c.N != nil && *c.N > 1 && s.Temperature != nil && *s.Temperature < 1e-5 {
		return &apiError{message: fmt.Sprintf("n must be 1 when using greedy sampling, got %d.", *c.N)}
	}
	if slices.Contains(c.Stop, "") {
		return &apiError{message: "stop cannot contain an empty string."}
	}
	return nil
}

// checkLogprobs checks the number of log probabilities. param is the name of the
// field.
func checkLogprobs(param string, n *int) error {
	if n != nil && *n < -1 {
		return &apiError{param: param, message: fmt.Sprintf("`%s` must be a positive value or -1.", param)}
	}
	if n != nil && (*n == -1 || *n > mostLogprobs) {
		return &apiError{param: "logprobs", message: fmt.Sprintf("Requested sample logprobs of %d, which is greater than max allowed: %d", *n, mostLogprobs)}
	}
	return nil
}

// checkFormat returns an error if a format requires a schema and there is none.
func checkFormat(c *openaiConstraints) error {
	if f := c.ResponseFormat; f != nil && f.Type == "json_schema" && f.JSONSchema == nil {
		return &apiError{param: "response_format", message: "When response_format type is 'json_schema', the 'json_schema' field must be provided."}
	}
	return nil
}

// checkTools returns an error if tools and tool choice do not match. Tools without
// a choice mean auto.
func (in *incoming) checkTools(c *openaiConstraints) error {
	about := func(message string) error { return &apiError{param: "tool_choice", message: message} }
	if c.Tools != nil && len(c.Tools) == 0 {
		return &apiError{param: "tools", message: "`tools` must not be an empty array. Either provide at least one tool or omit the field entirely."}
	}
	if c.ToolChoice == nil && c.Tools != nil {
		c.ToolChoice = &openaiToolChoice{Word: "auto"}
	}
	choice := c.ToolChoice
	switch {
	case choice == nil || choice.Word == "none":
		return nil
	case c.Tools == nil:
		return about("When using `tool_choice`, `tools` must be set.")
	case choice.Word != "" && choice.Word != "auto" && choice.Word != "required":
		return about(fmt.Sprintf("Invalid value for `tool_choice`: %s! Only named tools, \"none\", \"auto\" or \"required\" are supported.", choice.Word))
	case choice.Word == "" && !slices.ContainsFunc(c.Tools, func(t openaiTool) bool { return t.Function.Name == choice.Name }):
		return about("The tool specified in `tool_choice` does not match any of the specified `tools`")
	case in.emulated.openai.toolParser && !in.opt.ToolParser:
		return &apiError{message: "tool calls need a server started with --enable-auto-tool-choice"}
	}
	return nil
}
