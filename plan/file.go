package plan

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/workload"
)

// MarshalJSON encodes the given options as one object, with underscores in the
// names. Read decodes the object to the same plan. The object contains secrets;
// Public removes them.
func (p *Plan) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for _, o := range p.Options() {
		if !o.Given() {
			continue
		}
		value, err := o.json()
		if err != nil {
			return nil, fmt.Errorf("option %s: %w", o.Name, err)
		}
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", underscored(o.Name), value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// json encodes the value as a JSON number, boolean or object if possible,
// otherwise as a string.
func (o *Option) json() ([]byte, error) {
	if o.plan.listed(o.Name) != nil {
		return json.Marshal(o.Text())
	}
	switch v := o.Value.(type) {
	case *[]string:
		if *v == nil { // was set and cleared again; null would not decode
			return []byte("[]"), nil
		}
		return json.Marshal(v)
	case *string:
		return json.Marshal(v)
	case *JSONObject:
		return json.Marshal(map[string]any(*v))
	}
	if text := []byte(o.Text()); json.Valid(text) {
		return text, nil
	}
	return json.Marshal(o.Text())
}

func underscored(name string) string { return strings.ReplaceAll(name, "-", "_") }

// YAML encodes the same options as MarshalJSON, for people to read and edit.
func (p *Plan) YAML() ([]byte, error) {
	text, err := p.MarshalJSON()
	if err != nil {
		return nil, err
	}
	top, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	if len(top.Content) == 0 {
		return []byte("{}\n"), nil
	}
	var b bytes.Buffer
	e := yaml.NewEncoder(&b)
	e.SetIndent(2)
	err = errors.Join(e.Encode(top), e.Close())
	return b.Bytes(), err
}

// Public returns a copy of the plan without secrets. Removed values are added
// to secrets.
func (p *Plan) Public(secrets *redact.Secrets) Plan {
	out := *p
	for _, o := range out.Options() {
		if list := slices.Clone(out.listed(o.Name)); list != nil {
			for i, s := range list {
				list[i] = secrets.Public(o.Secret, s)
			}
			out.list(o.Name, list)
		}
		switch v := o.Value.(type) {
		case *string:
			if *v != "" {
				*v = secrets.Public(o.Secret, *v)
			}
		case *[]string:
			*v = slices.Clone(*v)
			for i, s := range *v {
				(*v)[i] = secrets.Public(o.Secret, s)
			}
		case encoding.TextUnmarshaler:
			if text := o.Text(); o.Secret != "" && text != secrets.Public(o.Secret, text) {
				_ = v.UnmarshalText([]byte(secrets.Public(o.Secret, text))) // the text parsed before, and only the redaction mark is new
			}
		}
	}
	return out
}

// Read sets the options of a YAML or JSON file. Options set before the call
// keep their values, because flags override files. Secrets in the file are
// added to secrets.
func (p *Plan) Read(text []byte, secrets *redact.Secrets) error {
	if err := limit.Depth(text); err != nil {
		return err
	}
	top, err := parsePlan(text)
	if err != nil {
		secrets.Learn(string(text)) // the error may quote the text
		return err
	}
	options := p.Options()
	names := make([]string, len(options))
	for i, o := range options {
		names[i] = o.Name
	}
	lines := map[string]int{}
	before := slices.Clone(p.given)
	for i := 0; i < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		name := strings.ReplaceAll(key.Value, "_", "-")
		at := slices.IndexFunc(options, func(o Option) bool { return o.Name == name || slices.Contains(o.Aliases, name) })
		if at < 0 {
			return fmt.Errorf("line %d: %w", key.Line, unknownOption(key.Value, names))
		}
		name = names[at]
		if lines[name] > 0 {
			return fmt.Errorf("line %d: %s is already set on line %d, remove one of them", key.Line, key.Value, lines[name])
		}
		lines[name] = key.Line
		if slices.Contains(before, name) {
			continue
		}
		if err := options[at].read(value, secrets); err != nil {
			return fmt.Errorf("line %d: %s: %w", value.Line, key.Value, err)
		}
	}
	return nil
}

func unknownOption(name string, names []string) error {
	const all = "tacho bench --help-all lists all options"
	if nearest := spelling.Nearest(strings.ReplaceAll(name, "_", "-"), names); nearest != "" {
		return fmt.Errorf("unknown option %s, did you mean %s? (%s)", name, underscored(nearest), all)
	}
	return fmt.Errorf("unknown option %s (%s)", name, all)
}

// read sets the option to a value from a file.
func (o *Option) read(n *yaml.Node, secrets *redact.Secrets) error {
	texts, err := o.texts(n)
	for _, text := range texts {
		secrets.Public(o.Secret, text)
	}
	switch {
	case err != nil:
		return err
	case o.Secret == redact.InAll && slices.Equal(texts, []string{redact.Mark}):
		return nil // the key was redacted and comes from a flag or the environment
	case slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, redact.Mark) }):
		return fmt.Errorf("the file contains a redacted secret, set it with --%s", o.Name)
	case len(texts) == 0:
		*o.Value.(*[]string) = []string{}
		o.markGiven()
	}
	for _, text := range texts {
		if err := o.Set(text); err != nil {
			return err
		}
	}
	return nil
}

// texts returns the values of the option in command-line form.
func (o *Option) texts(n *yaml.Node) ([]string, error) {
	levels, object := o.mayBeList(), false
	switch o.Value.(type) {
	case *JSONObject, *workload.Ratios, *workload.MediaLimits:
		object = true
	}
	switch {
	case object && (n.Kind == yaml.MappingNode || n.ShortTag() == "!!null"):
		b, err := nodeJSON(n)
		return []string{string(b)}, err
	case n.Kind == yaml.SequenceNode && (levels || o.List()):
		var list []string
		for _, item := range n.Content {
			text, err := scalar(item)
			if err != nil {
				return list, err
			}
			list = append(list, text)
		}
		if levels {
			list = []string{strings.Join(list, ",")}
		}
		return list, nil
	}
	text, err := scalar(n)
	if _, is := o.Value.(*workload.Window); is && text == "" {
		text = "0-" // an empty window in a file means the full trace
	}
	return []string{text}, err
}

var errNoAliases = errors.New("a plan cannot contain aliases: write the value itself, in quotes if it starts with *")

// scalar returns one value in command-line form.
func scalar(n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.SequenceNode:
		return "", errors.New("want one value, not a list")
	case n.Kind == yaml.MappingNode:
		return "", errors.New("want one value, not a mapping; quote it if it is text")
	case n.Kind == yaml.AliasNode:
		return "", errNoAliases
	case n.ShortTag() == "!!null":
		return "", errors.New("no value, write one or remove the line")
	case n.ShortTag() == "!!float" && strings.EqualFold(strings.TrimPrefix(n.Value, "+"), ".inf"):
		return "inf", nil
	}
	return n.Value, nil
}

// nodeJSON encodes a YAML node as JSON.
func nodeJSON(n *yaml.Node) ([]byte, error) {
	switch {
	case n.Kind == yaml.SequenceNode:
		list := make([]json.RawMessage, len(n.Content))
		for i, item := range n.Content {
			b, err := nodeJSON(item)
			if err != nil {
				return nil, err
			}
			list[i] = b
		}
		return json.Marshal(list)
	case n.Kind == yaml.MappingNode:
		fields := map[string]json.RawMessage{}
		for i := 0; i < len(n.Content); i += 2 {
			b, err := nodeJSON(n.Content[i+1])
			if err != nil {
				return nil, err
			}
			fields[n.Content[i].Value] = b
		}
		return json.Marshal(fields)
	case n.Kind != yaml.ScalarNode:
		return nil, errNoAliases
	case n.ShortTag() == "!!null":
		return []byte("null"), nil
	case n.ShortTag() != "!!str":
		var v any
		if b, err := json.Marshal(json.RawMessage(n.Value)); err == nil {
			return b, nil // valid JSON as written: 1, 2.5, true
		}
		if err := n.Decode(&v); err != nil || reflect.TypeOf(v).Kind() == reflect.Float64 {
			return nil, fmt.Errorf("line %d: JSON cannot represent %s, quote it if it is text", n.Line, n.Value)
		}
		if reflect.TypeOf(v).Kind() != reflect.Struct { // YAML dates become strings
			return json.Marshal(v)
		}
	}
	return json.Marshal(n.Value)
}

// parsePlan parses a file as a mapping of options.
func parsePlan(text []byte) (*yaml.Node, error) {
	top, err := parseJSON(text)
	if err != nil {
		if top, err = parseYAML(text); err != nil {
			return nil, err
		}
	}
	if top.Kind != yaml.MappingNode {
		return nil, errors.New("want options with values, as in num_prompts: 100")
	}
	return top, nil
}

func parseYAML(text []byte) (*yaml.Node, error) {
	var first, more yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	switch err := d.Decode(&first); {
	case errors.Is(err, io.EOF):
		return &yaml.Node{Kind: yaml.MappingNode}, nil // an empty file
	case err != nil && strings.Contains(err.Error(), "anchor"):
		return nil, errNoAliases // the parser's error may quote a secret that starts with *
	case err != nil:
		return nil, fmt.Errorf("not valid JSON or YAML: %s", strings.TrimPrefix(err.Error(), "yaml: "))
	}
	if !errors.Is(d.Decode(&more), io.EOF) {
		return nil, errors.New("the file contains several documents, keep one")
	}
	return first.Content[0], nil
}

// parseJSON parses JSON with a JSON decoder, because YAML has different
// escapes.
func parseJSON(text []byte) (*yaml.Node, error) {
	r := jsonReader{Decoder: json.NewDecoder(bytes.NewReader(text)), text: text, line: 1}
	r.UseNumber()
	top, err := r.next()
	if err != nil {
		return nil, err
	}
	if _, err := r.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected text after the JSON object")
	}
	return top, nil
}

// jsonReader is a JSON decoder that tracks line numbers.
type jsonReader struct {
	*json.Decoder
	text []byte
	at   int64
	line int
}

func (r *jsonReader) next() (*yaml.Node, error) {
	token, err := r.Token()
	if err != nil {
		return nil, err
	}
	r.line += bytes.Count(r.text[r.at:r.InputOffset()], []byte("\n"))
	r.at = r.InputOffset()
	n := &yaml.Node{Kind: yaml.ScalarNode, Line: r.line}
	switch v := token.(type) {
	case json.Delim:
		n.Kind = yaml.MappingNode
		if v == '[' {
			n.Kind, n.Style = yaml.SequenceNode, yaml.FlowStyle
		}
		for r.More() {
			item, err := r.next()
			if err != nil {
				return nil, err
			}
			n.Content = append(n.Content, item)
		}
		_, err = r.Token() // closing bracket
	case string:
		n.SetString(v)
		if n.Style = 0; strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r >= 0x7f }) {
			n.Style = yaml.DoubleQuotedStyle
		}
	case json.Number:
		n.Value = v.String()
	case bool:
		n.Value = fmt.Sprint(v)
	case nil:
		n.Tag, n.Value = "!!null", "null"
	}
	return n, err
}
