package workload

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"tacho"
)

// attributes are those of a span, by name: a text without its quotes, anything
// else as JSON.
type attributes map[string]string

// ours is how the names of all attributes begin that are read.
const ours = "gen_ai."

// attributesOf reads attributes as an object, or as OTLP's list of pairs.
func attributesOf(text json.RawMessage) (attributes, error) {
	out := attributes{}
	var object map[string]json.RawMessage
	if len(text) == 0 {
		return out, nil
	}
	if json.Unmarshal(text, &object) == nil {
		for k, v := range object {
			if strings.HasPrefix(k, ours) {
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
		if !strings.HasPrefix(a.Key, ours) {
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

// otlpPair is a key and its value in OTLP's JSON.
type otlpPair struct {
	Key   string    `json:"key"`
	Value otlpValue `json:"value"`
}

type otlpValue struct {
	String *string         `json:"stringValue"`
	Int    json.RawMessage `json:"intValue"` // a number, or one in a string
	Double json.RawMessage `json:"doubleValue"`
	Bool   *bool           `json:"boolValue"`
	Array  *struct {
		Values []otlpValue `json:"values"`
	} `json:"arrayValue"`
	List *struct {
		Values []otlpPair `json:"values"`
	} `json:"kvlistValue"`
}

// plain is the value as ordinary JSON has it.
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

// plainText is a string without its quotes, nothing for null, and anything
// else as it is.
func plainText(v json.RawMessage) string {
	var s string
	if len(v) > 0 && v[0] != '"' && string(v) != "null" || json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	return s
}

// number is the first of these attributes that is a number above 0.
func (a attributes) number(names ...string) int {
	for _, name := range names {
		if n, err := strconv.Atoi(a[name]); err == nil && n > 0 {
			return n
		}
	}
	return 0
}

// messages are what the call was given: the messages of the semantic
// conventions, or those of the instrumentations before them, one attribute for
// each. nil if the span does not tell.
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
		return nil, nil // the question is not told
	}
	return out, nil
}

// said is what the model answered; empty if the span does not tell.
func (a attributes) said() (string, error) {
	text := a["gen_ai.output.messages"]
	if text == "" {
		if said, ok := a["gen_ai.completion.0.content"]; ok {
			return said, nil
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
	Result    json.RawMessage `json:"result"` // as it was called before
}

// text is what a message says, calls of tools and thoughts left out.
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

// messagesOf is a message in the form of OpenAI, where each result of a tool
// is a message of its own. One that has that form already is left as it is.
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
	said := tacho.Message{Role: m.Role, Content: m.text()}
	switch {
	case m.Role == "":
		return nil, fmt.Errorf("a message has no role")
	case len(calls) > 0:
		var err error
		if said, err = toolCalls(said.Content, calls); err != nil {
			return nil, err
		}
	case len(out) > 0 && said.Content == "":
		return out, nil
	}
	return append(out, said), nil
}
