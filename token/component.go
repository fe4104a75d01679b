package token

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// A component is one part of a tokenizer.json that names its type: a
// normalizer, a pre-tokenizer, a post-processor or a decoder.
type component struct {
	kind  string
	raw   json.RawMessage
	field string // where it is in the file, for errors
}

// newComponent reads the type of a component; ok is false where the file has null.
func newComponent(raw json.RawMessage, field string) (c component, ok bool, err error) {
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return component{}, false, nil
	}
	var head struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return component{}, false, fmt.Errorf("%s: %w", field, err)
	}
	if head.Type == "" {
		return component{}, false, fmt.Errorf("%s.type: missing", field)
	}
	return component{head.Type, raw, field}, true, nil
}

// sequence is the parts of a Sequence, which it keeps under key, flattened; of
// any other component it is the component itself.
func (c component) sequence(key string) ([]component, error) {
	if c.kind != "Sequence" {
		return []component{c}, nil
	}
	var body map[string]json.RawMessage
	if err := c.decode(&body); err != nil {
		return nil, err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(body[key], &parts); err != nil {
		return nil, fmt.Errorf("%s.%s: %w", c.field, key, err)
	}
	var all []component
	for i, raw := range parts {
		part, ok, err := newComponent(raw, fmt.Sprintf("%s.%s[%d]", c.field, key, i))
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		inner, err := part.sequence(key)
		if err != nil {
			return nil, err
		}
		all = append(all, inner...)
	}
	return all, nil
}

// decode reads the settings of the component into v.
func (c component) decode(v any) error {
	if err := json.Unmarshal(c.raw, v); err != nil {
		return fmt.Errorf("%s (%s): %w", c.field, c.kind, err)
	}
	return nil
}

func (c component) errorf(format string, args ...any) error {
	return fmt.Errorf("%s (%s): %w", c.field, c.kind, fmt.Errorf(format, args...))
}

// unsupported is the error for a type this package does not know.
func (c component) unsupported() error {
	return fmt.Errorf("%s.type: %q is not supported; count with the server's /tokenize instead", c.field, c.kind)
}

// A textPattern is {"String": ...} or {"Regex": ...}.
type textPattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

// finder finds the pattern in a text.
func (p textPattern) finder() (finder, error) {
	switch {
	case p.String != nil:
		return findText(*p.String), nil
	case p.Regex != nil:
		return findExpr(*p.Regex)
	}
	return nil, fmt.Errorf("pattern: neither String nor Regex")
}
