package backend

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/tacho-bench/tacho/internal/jsonscan"
	"github.com/tacho-bench/tacho/internal/wire"
)

// marshal encodes a body.
func marshal(v any) ([]byte, error) { return wire.Marshal(v) }

// marshalWith encodes a body and sets the members of extras. Later maps override earlier ones. A member already in
// the body keeps its place; other members are appended.
func marshalWith(v any, extras ...map[string]any) ([]byte, error) {
	body, err := marshal(v)
	if err != nil {
		return nil, err
	}
	merged := map[string]any{}
	for _, extra := range extras {
		maps.Copy(merged, extra)
	}
	if len(merged) == 0 {
		return body, nil
	}
	values := make(map[string][]byte, len(merged))
	for name, value := range merged {
		if values[name], err = marshal(value); err != nil {
			return nil, fmt.Errorf("extra body field %q: %w", name, err)
		}
	}
	out := []byte{'{'}
	add := func(name string, value []byte) error {
		key, err := marshal(name)
		if err != nil {
			return err
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(append(out, key...), ':'), value...)
		return nil
	}
	var s jsonscan.Scanner
	var failed error
	s.Reset(body)
	s.Object(func(key []byte) {
		name := string(key)
		own := s.Skip()
		if value, ok := values[name]; ok {
			own = value
			delete(values, name)
		}
		if err := add(name, own); err != nil {
			failed = err
		}
	})
	if err := s.Err(); err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if err := add(name, values[name]); err != nil {
			failed = err
		}
	}
	return append(out, '}'), failed
}

// fields returns the named options with a value.
func (s *Sampling) fields(names ...string) map[string]any {
	out := map[string]any{}
	for name, v := range map[string]*float64{
		"temperature": s.Temperature, "top_p": s.TopP, "min_p": s.MinP, "frequency_penalty": s.FrequencyPenalty,
		"presence_penalty": s.PresencePenalty, "repetition_penalty": s.RepetitionPenalty,
	} {
		if v != nil && slices.Contains(names, name) {
			out[name] = *v
		}
	}
	if s.TopK != nil && slices.Contains(names, "top_k") {
		out["top_k"] = *s.TopK
	}
	return out
}

// rename renames a field to the server's name for it.
func rename(fields map[string]any, from, to string) {
	if v, ok := fields[from]; ok {
		delete(fields, from)
		fields[to] = v
	}
}

// rawJSON is already encoded.
type rawJSON = json.RawMessage
