package score

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/tacho-bench/tacho"
)

// Bounds of a validation. Schemas and answers come from outside.
const (
	maxSchema     = 1 << 20
	maxDepth      = 256
	schemaTimeout = 5 * time.Second
)

func validJSON(a *Answer, _ *tacho.Request) Result {
	text, fenced := withoutFence(a.Content)
	if _, err := parseJSON(text); err != nil {
		return Result{Mark: Wrong, Why: cutOr(a, "not JSON"), Unparsed: fenced}
	}
	return Result{Mark: Right, Unparsed: fenced}
}

func validSchema(a *Answer, q *tacho.Request) Result {
	schema, err := schemas.of(schemaText(q))
	if err != nil {
		return Result{Mark: LeftOut, Why: err.Error()}
	}
	text, fenced := withoutFence(a.Content)
	value, err := parseJSON(text)
	if err != nil {
		return Result{Mark: Wrong, Why: cutOr(a, "not JSON"), Unparsed: fenced}
	}
	valid := make(chan bool, 1)
	go func() { valid <- schema.Validate(value) == nil }()
	select {
	case ok := <-valid:
		r := markOf(ok)
		if r.Unparsed = fenced; !ok {
			r.Why = "JSON, but not valid against the schema"
		}
		return r
	case <-time.After(schemaTimeout):
		schemas.drop(schemaText(q))
		return Result{Mark: LeftOut, Why: "the validation takes too long"}
	}
}

// cutOr returns the reason for broken JSON: the answer was cut, or another.
func cutOr(a *Answer, other string) string {
	if a.Finish == "length" {
		return "cut by length"
	}
	return other
}

// withoutFence removes one fence of Markdown around a text.
func withoutFence(text string) (string, bool) {
	text = strings.TrimSpace(text)
	inside, begins := strings.CutPrefix(text, "```")
	inside, ends := strings.CutSuffix(inside, "```")
	if !begins || !ends {
		return text, false
	}
	if _, after, ok := strings.Cut(inside, "\n"); ok { // the first line names the language
		inside = after
	}
	return strings.TrimSpace(inside), true
}

// parseJSON parses one JSON value with nothing after it. Numbers keep their digits.
func parseJSON(text string) (any, error) {
	if tooDeep([]byte(text)) {
		return nil, errors.New("too many levels")
	}
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("text after the value")
	}
	return v, nil
}

// tooDeep reports whether brackets are nested deeper than maxDepth. Brackets in texts count, too, because a text has
// hardly ever as many.
func tooDeep(text []byte) bool {
	depth := 0
	for _, c := range text {
		switch c {
		case '{', '[':
			if depth++; depth > maxDepth {
				return true
			}
		case '}', ']':
			depth = max(depth-1, 0) // a bracket in a text closes nothing
		}
	}
	return false
}

// schemaText returns the schema of a request: its reference, or the schema that the server must follow.
func schemaText(q *tacho.Request) string {
	if strings.TrimSpace(q.Reference) != "" {
		return q.Reference
	}
	body, err := json.Marshal(q.Extra)
	if err != nil {
		return ""
	}
	var extra struct {
		StructuredOutputs struct {
			JSON json.RawMessage `json:"json"`
		} `json:"structured_outputs"`
		ResponseFormat struct {
			JSONSchema struct {
				Schema json.RawMessage `json:"schema"`
			} `json:"json_schema"`
		} `json:"response_format"`
	}
	if json.Unmarshal(body, &extra) != nil {
		return ""
	}
	if extra.StructuredOutputs.JSON != nil {
		return string(extra.StructuredOutputs.JSON)
	}
	return string(extra.ResponseFormat.JSONSchema.Schema)
}

// schemas caches compiled schemas, because most requests have the same.
var schemas schemaCache

type schemaCache struct {
	mu  sync.Mutex
	all map[string]compiled
}

type compiled struct {
	schema *jsonschema.Schema
	err    error
}

// mostSchemas bounds the cache.
const mostSchemas = 10_000

func (c *schemaCache) of(text string) (*jsonschema.Schema, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if found, ok := c.all[text]; ok {
		return found.schema, found.err
	}
	if c.all == nil || len(c.all) >= mostSchemas {
		c.all = map[string]compiled{}
	}
	schema, err := compile(text)
	c.all[text] = compiled{schema, err}
	return schema, err
}

// drop leaves out the other answers for a schema that takes too long.
func (c *schemaCache) drop(text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all[text] = compiled{err: errors.New("the validation takes too long")}
}

// compile compiles a schema of Draft 2020-12 with format checks. It loads no other documents.
func compile(text string) (*jsonschema.Schema, error) {
	if text == "" {
		return nil, errors.New("no schema")
	}
	if len(text) > maxSchema || tooDeep([]byte(text)) {
		return nil, errors.New("the schema is too large")
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader([]byte(text)))
	if err != nil {
		return nil, errors.New("the schema is not JSON")
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	c.UseLoader(noLoader{})
	if err := c.AddResource("schema.json", doc); err != nil {
		return nil, errors.New("the schema is not valid")
	}
	schema, err := c.Compile("schema.json")
	if err != nil {
		return nil, errors.New("the schema is not valid")
	}
	return schema, nil
}

// noLoader refuses references to other documents.
type noLoader struct{}

func (noLoader) Load(string) (any, error) { return nil, errors.New("other documents are not loaded") }
