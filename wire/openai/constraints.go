package openai

import (
	"encoding/json"
	"errors"
	"reflect"
)

// Constraints are what a request of either kind may want of its answer. A nil
// is left to the server. Echo is of completions, Tools of chats.
type Constraints struct {
	N                 *int               `json:"n"`
	Echo              bool               `json:"echo"`
	Stop              Stop               `json:"stop"`
	StopTokenIDs      []int32            `json:"stop_token_ids"`
	IncludeStop       bool               `json:"include_stop_str_in_output"`
	ResponseFormat    *ResponseFormat    `json:"response_format"`
	StructuredOutputs *StructuredOutputs `json:"structured_outputs"` // vLLM's
	Tools             []Tool             `json:"tools"`
	ToolChoice        *ToolChoice        `json:"tool_choice"`
}

// Stop is what ends an answer where it appears: a text, or a list of them.
type Stop []string

// UnmarshalJSON implements json.Unmarshaler.
func (s *Stop) UnmarshalJSON(b []byte) error {
	var one string
	var list []string
	switch {
	case string(b) == "null":
	case json.Unmarshal(b, &one) == nil:
		list = []string{one}
	case json.Unmarshal(b, &list) != nil:
		return &json.UnmarshalTypeError{Value: "something else", Type: reflect.TypeFor[Stop](), Field: "stop"}
	}
	*s = list
	return nil
}

// A ResponseFormat is the form an answer must have.
type ResponseFormat struct {
	Type       string      `json:"type"` // text, json_object or json_schema
	JSONSchema *JSONSchema `json:"json_schema"`
}

// A JSONSchema is a schema and its name.
type JSONSchema struct {
	Schema json.RawMessage `json:"schema"`
}

// StructuredOutputs is the same in vLLM's words.
type StructuredOutputs struct {
	JSON   json.RawMessage `json:"json"` // a schema
	Choice []string        `json:"choice"`
}

// A Tool is a function that a model may call.
type Tool struct {
	Type     string   `json:"type"`
	Function Function `json:"function"`
}

// A Function is what a model is told of one.
type Function struct {
	Name       string          `json:"name"`
	Parameters json.RawMessage `json:"parameters"` // a schema
}

// A ToolChoice is which tools a model may call, or must: a word, or the name of
// one.
type ToolChoice struct {
	Word string // none, auto or required
	Name string // of the function, if Word is empty
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *ToolChoice) UnmarshalJSON(b []byte) error {
	*c = ToolChoice{}
	if json.Unmarshal(b, &c.Word) == nil {
		return nil
	}
	var named Tool
	if json.Unmarshal(b, &named) != nil {
		return errors.New("tool_choice must be a word or a function")
	}
	c.Name = named.Function.Name
	return nil
}
