package workload

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// Structured is a required output format in vLLM's terms: json:SCHEMA, regex:PATTERN,
// grammar:EBNF or choice:A|B|C. @FILE reads the value from a file. The zero value
// requires nothing.
type Structured struct {
	kind  string
	value any
	text  string
}

// MarshalText implements encoding.TextMarshaler.
func (s Structured) MarshalText() ([]byte, error) { return []byte(s.text), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Structured) UnmarshalText(b []byte) error {
	text := string(b)
	if text == "" {
		*s = Structured{}
		return nil
	}
	kind, value, ok := strings.Cut(text, ":")
	if path, isFile := strings.CutPrefix(value, "@"); isFile {
		content, err := atomicfile.Read(path)
		if err != nil {
			return err
		}
		value = string(content)
	}
	out := Structured{kind: kind, value: value, text: text}
	switch kind {
	case "json":
		var schema map[string]any
		if err := json.Unmarshal([]byte(value), &schema); err != nil {
			return fmt.Errorf("the schema is not a JSON object: %w", err)
		}
		out.value = schema
	case "regex", "grammar":
		ok = ok && value != ""
	case "choice":
		choices := strings.Split(strings.TrimSpace(value), "|")
		ok = ok && len(choices) > 1
		out.value = choices
	default:
		ok = false
	}
	if !ok {
		return fmt.Errorf("%q: write json:SCHEMA, regex:PATTERN, grammar:EBNF or choice:A|B; @FILE reads the value from a file", text)
	}
	*s = out
	return nil
}

// Shape requires the format in a fraction of the sessions of w.
func (s Structured) Shape(w Workload, share float64, seed uint64) Workload {
	if s.kind == "" || share <= 0 {
		return w
	}
	out := &shaped{w, s, share, seed}
	if own, ok := w.(tacho.Pacer); ok {
		return struct {
			*shaped
			tacho.Pacer
		}{out, own}
	}
	return out
}

type shaped struct {
	Workload
	form  Structured
	share float64
	seed  uint64
}

// Session implements tacho.Source.
func (w *shaped) Session(i uint64) (tacho.Session, error) { return w.shape(w.Workload.Session(i)) }

// Warmup implements Workload.
func (w *shaped) Warmup(i uint64) (tacho.Session, error) { return w.shape(w.Workload.Warmup(i)) }

func (w *shaped) shape(s tacho.Session, err error) (tacho.Session, error) {
	if err != nil || rngOf(w.seed^0x666f726d, s.ID).Float64() >= w.share {
		return s, err
	}
	for t := range s.Turns {
		q := &s.Turns[t].Request
		setExtra(q, "structured_outputs", map[string]any{w.form.kind: w.form.value})
		q.Labels = append(q.Labels, tacho.Label{Key: "form", Value: w.form.kind})
		q.IgnoreEOS = false // a format ends by itself
	}
	return s, nil
}
