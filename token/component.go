package token

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// component is one typed part of a tokenizer.json: a normalizer, a pre-tokenizer, a
// post-processor or a decoder.
type component struct {
	kind  string
	raw   json.RawMessage
	field string // path in the file, for errors
}

// newComponent reads the type of a component. ok is false if the file says null.
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

// sequence returns the flattened parts of a Sequence, which are stored under key. Any
// other component is returned as its own single part.
func (c component) sequence(key string) ([]component, error) {
	all, err := c.flatten(key, 0)
	if len(all) > maxSteps {
		return nil, fmt.Errorf("%s.%s: %d steps, more than %d", c.field, key, len(all), maxSteps)
	}
	return all, err
}

func (c component) flatten(key string, depth int) ([]component, error) {
	if c.kind != "Sequence" {
		return []component{c}, nil
	}
	if depth > maxNesting {
		return nil, fmt.Errorf("%s: sequences nest deeper than %d", c.field, maxNesting)
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
		inner, err := part.flatten(key, depth+1)
		if err != nil {
			return nil, err
		}
		if all = append(all, inner...); len(all) > maxSteps {
			return all, nil
		}
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

// unsupported returns the error for an unknown component type.
func (c component) unsupported() error {
	return fmt.Errorf("%s.type: %q is not supported; count with the server's /tokenize instead", c.field, c.kind)
}

// textPattern is {"String": ...} or {"Regex": ...}.
type textPattern struct {
	String *string `json:"String"`
	Regex  *string `json:"Regex"`
}

func (p textPattern) finder() (finder, error) {
	switch {
	case p.String != nil:
		return findText(*p.String), nil
	case p.Regex != nil:
		return findExpr(*p.Regex)
	}
	return nil, fmt.Errorf("pattern: neither String nor Regex")
}
