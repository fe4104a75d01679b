package cli_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tacho-bench/tacho/internal/must"
)

const (
	directorySchema = "run-directory.schema.json" // in docs
	reportSchema    = "report.schema.json"
)

// A schema is the subset of JSON Schema used here.
type schema struct {
	Ref        string            `json:"$ref"`
	Defs       map[string]schema `json:"$defs"`
	Type       oneOrMore         `json:"type"`
	Properties map[string]schema `json:"properties"`
	Required   []string          `json:"required"`
	Further    *bool             `json:"additionalProperties"`
	Items      *schema           `json:"items"`
	AnyOf      []schema          `json:"anyOf"`
	Enum       []any             `json:"enum"`
	Minimum    *float64          `json:"minimum"`
	Patterns   map[string]schema `json:"patternProperties"` // the empty pattern matches all names
}

// oneOrMore is a string or a list of strings.
type oneOrMore []string

func (o *oneOrMore) UnmarshalJSON(b []byte) error {
	if b[0] == '[' {
		return json.Unmarshal(b, (*[]string)(o))
	}
	*o = []string{""}
	return json.Unmarshal(b, &(*o)[0])
}

// docs is the absolute path of the documents, because scripts change the
// working directory.
var docs, _ = filepath.Abs("../../docs")

func readSchema(name string) (root schema, err error) {
	b, err := os.ReadFile(filepath.Join(docs, name))
	if err != nil {
		return root, err
	}
	return root, json.Unmarshal(b, &root)
}

// check returns an error if v does not match s.
func (root *schema) check(s *schema, path string, v any) error {
	if s.Ref != "" {
		def := root.Defs[strings.TrimPrefix(s.Ref, "#/$defs/")]
		s = &def
	}
	if len(s.AnyOf) > 0 { // the other alternative is null
		if v == nil {
			return nil
		}
		return root.check(&s.AnyOf[0], path, v)
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		return fmt.Errorf("%s: %v is none of %v", path, v, s.Enum)
	}
	n, isNumber := v.(float64)
	if isNumber && s.Minimum != nil && n < *s.Minimum {
		return fmt.Errorf("%s: %v is below %v", path, n, *s.Minimum)
	}
	if len(s.Type) == 0 || (v == nil && slices.Contains(s.Type, "null")) {
		return nil
	}
	ok := false
	switch s.Type[0] {
	case "string":
		_, ok = v.(string)
	case "boolean":
		_, ok = v.(bool)
	case "number":
		ok = isNumber
	case "integer":
		ok = isNumber && n == math.Trunc(n)
	case "array":
		var list []any
		if list, ok = v.([]any); ok {
			return root.checkList(s, path, list)
		}
	case "object":
		var o map[string]any
		if o, ok = v.(map[string]any); ok {
			return root.checkObject(s, path, o)
		}
	}
	if !ok {
		return fmt.Errorf("%s: %v is no %s", path, v, s.Type[0])
	}
	return nil
}

func (root *schema) checkList(s *schema, path string, list []any) error {
	for i, item := range list {
		if err := root.check(s.Items, fmt.Sprintf("%s[%d]", path, i), item); err != nil {
			return err
		}
	}
	return nil
}

func (root *schema) checkObject(s *schema, path string, o map[string]any) error {
	for _, name := range s.Required {
		if _, ok := o[name]; !ok {
			return fmt.Errorf("%s: no %s", path, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o)) {
		p, known := s.Properties[name]
		if !known && s.Further != nil && !*s.Further {
			return fmt.Errorf("%s: %s is not in the schema", path, name)
		}
		if !known && s.Patterns != nil {
			p, known = s.Patterns[""], true
		}
		if known {
			if err := root.check(&p, path+"."+name, o[name]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (root *schema) checkText(def string, text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return root.check(&schema{Ref: "#/$defs/" + def}, def, v)
}

// checkWhole checks a text against the schema itself.
func (root *schema) checkWhole(text []byte) error {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err
	}
	return root.check(root, "", v)
}

// conforms checks the files of a run against the published schema: conforms
// DIR.
func conforms(ts *testscript.TestScript, _ bool, args []string) {
	root, err := readSchema(directorySchema)
	ts.Check(err)
	manifest, err := os.ReadFile(ts.MkAbs(filepath.Join(args[0], "manifest.json")))
	ts.Check(err)
	ts.Check(root.checkText("manifest", manifest))
	if summary, err := os.ReadFile(ts.MkAbs(filepath.Join(args[0], "summary.json"))); err == nil {
		whole, err := readSchema(reportSchema)
		ts.Check(err)
		ts.Check(whole.checkWhole(summary))
	}
	for name, def := range map[string]string{"stages": "stage", "records": "record", "instruments": "reading"} {
		b, err := os.ReadFile(ts.MkAbs(filepath.Join(args[0], name+".jsonl")))
		ts.Check(err)
		for line := range bytes.Lines(b) {
			if err := root.checkText(def, line); err != nil {
				ts.Fatalf("%s.jsonl: %v\n%s", name, err, line)
			}
		}
	}
}

// The schema check detects invalid runs.
func TestSchemaFindsFault(t *testing.T) {
	root := must.Get(readSchema(directorySchema))(t)
	const whole = `{"index":0,"epoch":"x","monotonic_s":1.5,"config":{}}`
	if err := root.checkText("stage", []byte(whole)); err != nil {
		t.Error(err)
	}
	for _, change := range [][2]string{{`"index":0,`, ``}, {`:0,`, `:-1,`}, {`:0,`, `:"0",`}, {`:0,`, `:0.5,`}, {`:0,`, `:0,"more":1,`}, {`:0,`, `:0,"max_concurrency":0,`}, {`{}`, `[]`}} {
		bad := strings.Replace(whole, change[0], change[1], 1)
		if err := root.checkText("stage", []byte(bad)); err == nil {
			t.Errorf("no fault in %s", bad)
		}
	}
}
