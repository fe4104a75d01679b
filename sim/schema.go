package sim

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/sim/words"
)

// A schema is the supported part of JSON Schema.
type schema struct {
	Type       any               `json:"type"`
	Properties map[string]schema `json:"properties"`
	Items      *schema           `json:"items"`
	MinItems   int               `json:"minItems"`
	Enum       []json.RawMessage `json:"enum"`
	Const      json.RawMessage   `json:"const"`
	AnyOf      []schema          `json:"anyOf"`
	Minimum    json.Number       `json:"minimum"`
}

// Bounds of a generated document.
const (
	mostDepth  = 16
	mostValues = 1000
)

// document generates JSON for a schema. Its words depend on the seed. An
// unsupported schema yields a string.
func document(raw json.RawMessage, seed uint64) string {
	var s schema
	if json.Unmarshal(raw, &s) != nil || len(raw) == 0 {
		s = schema{Type: "object", Properties: map[string]schema{"answer": {Type: "string"}}}
	}
	d := writer{seed: seed}
	d.value(&s, 0)
	return d.text.String()
}

// A writer generates a document.
type writer struct {
	text   strings.Builder
	seed   uint64
	values int
}

func (d *writer) value(s *schema, depth int) {
	if d.values++; depth > mostDepth || d.values > mostValues {
		d.text.WriteString("null")
		return
	}
	switch {
	case s.Const != nil:
		d.text.Write(s.Const)
	case len(s.Enum) > 0:
		d.text.Write(s.Enum[0])
	case len(s.AnyOf) > 0:
		d.value(&s.AnyOf[0], depth+1)
	default:
		d.plain(s, depth)
	}
}

func (d *writer) plain(s *schema, depth int) {
	switch s.kind() {
	case "object":
		d.text.WriteByte('{')
		for i, name := range slices.Sorted(maps.Keys(s.Properties)) {
			if i > 0 {
				d.text.WriteString(", ")
			}
			d.text.Write(appendJSON(nil, name))
			d.text.WriteString(": ")
			member := s.Properties[name]
			d.value(&member, depth+1)
		}
		d.text.WriteByte('}')
	case "array":
		d.text.WriteByte('[')
		for i := range min(max(s.MinItems, 1), mostValues) {
			if i > 0 {
				d.text.WriteString(", ")
			}
			item := s.Items
			if item == nil {
				item = &schema{Type: "string"}
			}
			d.value(item, depth+1)
		}
		d.text.WriteByte(']')
	case "integer", "number":
		if s.Minimum == "" {
			s.Minimum = "7"
		}
		d.text.WriteString(string(s.Minimum))
	case "boolean":
		d.text.WriteString("true")
	case "null":
		d.text.WriteString("null")
	default:
		d.text.Write(appendJSON(nil, words.Text(words.Output(d.seed, d.values))[1:]))
	}
}

// kind is the first type that the schema allows.
func (s *schema) kind() string {
	if list, ok := s.Type.([]any); ok && len(list) > 0 {
		kind, _ := list[0].(string)
		return kind
	}
	kind, _ := s.Type.(string)
	if kind == "" && s.Properties != nil {
		return "object"
	}
	return kind
}
