package workload

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho"
)

// attributes are the attributes of a span by name: strings without quotes, other values
// as JSON.
type attributes map[string]string

// attributePrefix starts the names of all attributes that are read.
const attributePrefix = "gen_ai."

// attributesOf parses attributes from an object or from OTLP's list of pairs.
func attributesOf(text json.RawMessage) (attributes, error) {
	out := attributes{}
	var object map[string]json.RawMessage
	if len(text) == 0 {
		return out, nil
	}
	if json.Unmarshal(text, &object) == nil {
		for k, v := range object {
			if strings.HasPrefix(k, attributePrefix) {
				out[k] = plainText(v)
			}
		}
		return out, nil
	}
	var list []otlpPair
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("attributes: %w", err)
	}
	for _, a := range list {
		if !strings.HasPrefix(a.Key, attributePrefix) {
			continue
		}
		v, err := json.Marshal(a.Value.plain())
		if err != nil {
			return nil, fmt.Errorf("attribute %s: %w", a.Key, err)
		}
		out[a.Key] = plainText(v)
	}
	return out, nil
}

// otlpPair is a key and a value in OTLP JSON.
type otlpPair struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpValue struct {
	String *string         `json:"stringValue"`
	Int    json.RawMessage `json:"intValue"` // a number or a string
	Double json.RawMessage `json:"doubleValue"`
	Bool   *bool           `json:"boolValue"`
	Array  *struct {
		Values []otlpValue `json:"values"`
	} `json:"arrayValue"`
	List *struct {
		Values []otlpPair `json:"values"`
	} `json:"kvlistValue"`
}

// plain returns the value as ordinary JSON.
func (v *otlpValue) plain() any {
	switch {
	case v.String != nil:
		return *v.String
	case v.Int != nil:
		return json.Number(plainText(v.Int))
	case v.Double != nil:
		return json.Number(plainText(v.Double))
	case v.Bool != nil:
		return *v.Bool
	case v.Array != nil:
		out := make([]any, len(v.Array.Values))
		for i := range out {
			out[i] = v.Array.Values[i].plain()
		}
		return out
	case v.List != nil:
		out := map[string]any{}
		for i := range v.List.Values {
			out[v.List.Values[i].Key] = v.List.Values[i].Value.plain()
		}
		return out
	}
	return nil
}

// plainText returns a string without quotes, "" for null, and other values unchanged.
func plainText(v json.RawMessage) string {
	var s string
	if len(v) > 0 && v[0] != '"' && string(v) != "null" || json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	return s
}

// number returns the first of these attributes with a positive number.
func (a attributes) number(names ...string) int {
	for _, name := range names {
		if n, err := strconv.Atoi(a[name]); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// messages returns the input of the call. It reads the messages of the semantic
// conventions, or the older form with one attribute per message. It returns nil if the
// span contains neither.
func (a attributes) messages() ([]tacho.Message, error) {
	var out []tacho.Message
	if text := a["gen_ai.system_instructions"]; text != "" {
		m := otelMessage{Role: "system"}
		if err := json.Unmarshal([]byte(text), &m.Parts); err != nil {
			return nil, fmt.Errorf("gen_ai.system_instructions: %w", err)
		}
		out = append(out, tacho.Message{Role: "system", Content: m.text()})
	}
	if text := a["gen_ai.input.messages"]; text != "" {
		var list []json.RawMessage
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, fmt.Errorf("gen_ai.input.messages: %w", err)
		}
		for _, one := range list {
			messages, err := messagesOf(one)
			if err != nil {
				return nil, fmt.Errorf("gen_ai.input.messages: %w", err)
			}
			out = append(out, messages...)
		}
		return out, nil
	}
	for n := 0; ; n++ {
		role, ok := a[fmt.Sprintf("gen_ai.prompt.%d.role", n)]
		if !ok {
			break
		}
		out = append(out, tacho.Message{Role: role, Content: a[fmt.Sprintf("gen_ai.prompt.%d.content", n)]})
	}
	if len(out) == 1 && out[0].Role == "system" {
		return nil, nil // the question is missing
	}
	return out, nil
}

// answer returns the output of the model, or "" if the span does not contain it.
func (a attributes) answer() (string, error) {
	text := a["gen_ai.output.messages"]
	if text == "" {
		if answer, ok := a["gen_ai.completion.0.content"]; ok {
			return answer, nil
		}
		return a["gen_ai.output.text"], nil
	}
	var list []otelMessage
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		return "", fmt.Errorf("gen_ai.output.messages: %w", err)
	}
	if len(list) == 0 {
		return "", nil
	}
	return list[0].text(), nil
}

// otelMessage is a message of the semantic conventions.
type otelMessage struct {
	Role    string          `json:"role"`
	Content json.RawMessage `json:"content"`
	Parts   []otelPart      `json:"parts"`
}

type otelPart struct {
	Type      string          `json:"type"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Arguments json.RawMessage `json:"arguments"`
	Response  json.RawMessage `json:"response"`
	Result    json.RawMessage `json:"result"` // older name of response
}

// text returns the text of a message without tool calls and reasoning.
func (m *otelMessage) text() string {
	var b strings.Builder
	b.WriteString(plainText(m.Content))
	for _, p := range m.Parts {
		if p.Type == "text" {
			b.WriteString(plainText(p.Content))
		}
	}
	return b.String()
}

// messagesOf converts a message to OpenAI's format, in which each tool result is a
// separate message. A message already in OpenAI's format is returned unchanged.
func messagesOf(text json.RawMessage) ([]tacho.Message, error) {
	var m otelMessage
	if err := json.Unmarshal(text, &m); err != nil {
		return nil, err
	}
	if m.Parts == nil {
		var plain tacho.Message
		err := json.Unmarshal(text, &plain)
		return []tacho.Message{plain}, err
	}
	var out []tacho.Message
	var calls []toolCall
	for _, p := range m.Parts {
		switch p.Type {
		case "tool_call":
			calls = append(calls, toolCall{p.ID, "function", toolFunction{p.Name, plainText(p.Arguments)}})
		case "tool_call_response":
			result := p.Response
			if result == nil {
				result = p.Result
			}
			one, err := toolAnswer(p.ID, plainText(result))
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	answer := tacho.Message{Role: m.Role, Content: m.text()}
	switch {
	case m.Role == "":
		return nil, fmt.Errorf("a message has no role")
	case len(calls) > 0:
		var err error
		if answer, err = toolCalls(answer.Content, calls); err != nil {
			return nil, err
		}
	case len(out) > 0 && answer.Content == "":
		return out, nil
	}
	return append(out, answer), nil
}
