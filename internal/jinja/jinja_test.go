package jinja

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// beyond lists templates Python renders and this package rejects.
var beyond = []string{"joiner", "batch"}

// ahead lists templates this package renders and plain jinja2 rejects, because servers
// add the statement.
var ahead = []string{"{% generation %}"}

func containsAny(s string, parts []string) bool {
	for _, p := range parts {
		if strings.Contains(s, p) {
			return true
		}
	}
	return false
}

// TestSameAsPython compares with cases.json, which testdata/cases.py generates with
// Python's jinja2.
func TestSameAsPython(t *testing.T) {
	data := must.Get(os.ReadFile("testdata/cases.json"))(t)
	var file struct {
		Variables json.RawMessage
		Cases     []struct{ Template, Want, Error string }
	}
	must.Do(t, json.Unmarshal(data, &file))
	parsed := must.Get(FromJSON(file.Variables))(t)
	d, ok := parsed.(*Dict)
	if !ok {
		t.Fatalf("variables are %T", parsed)
	}
	variables := map[string]any{}
	for _, k := range d.keys {
		variables[newBudget(nil).text(k)] = d.values[k]
	}
	now := time.Date(2026, 11, 5, 9, 7, 3, 0, time.UTC)
	for _, c := range file.Cases {
		got, err := render(c.Template, variables, now)
		switch {
		case containsAny(c.Template, ahead):
			if err != nil {
				t.Errorf("%s\n%v", c.Template, err)
			}
		case containsAny(c.Template, beyond) || c.Error != "":
			if err == nil {
				t.Errorf("%s\nrendered %q, want an error like %q", c.Template, got, c.Error)
			}
		case err != nil:
			t.Errorf("%s\n%v", c.Template, err)
		default:
			if diff := cmp.Diff(c.Want, got); diff != "" {
				t.Errorf("%s\n(-want +got)\n%s", c.Template, diff)
			}
		}
	}
}

func render(source string, variables map[string]any, now time.Time) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	return t.Render(variables, now)
}

func TestRaiseSaysWhatTheTemplateSays(t *testing.T) {
	_, err := render("{{ raise_exception('a system message is not allowed') }}", nil, time.Time{})
	if want := "the template rejects the conversation: a system message is not allowed"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestGoValues(t *testing.T) {
	got, err := render("{{ a }} {{ b[1] }} {{ c.x }} {{ c | tojson }}", map[string]any{
		"a": 3, "b": []any{1, "two"}, "c": NewDict("x", []any{true, nil}),
	}, time.Time{})
	if want := `3 two [True, None] {"x": [true, null]}`; got != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}

// TestFromJSON covers the JSON filters of some servers. jinja2 has no such filters.
func TestFromJSON(t *testing.T) {
	got, err := render(`{{ '{"b": [1, 2.5], "a": null}' | from_json }} {{ ('[1, "x"]' | fromjson)[1] }}`, nil, time.Time{})
	if want := "{'b': [1, 2.5], 'a': None} x"; got != want || err != nil {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
	for _, source := range []string{"{{ '[1' | from_json }}", "{{ '1 2' | from_json }}", "{{ 3 | from_json }}"} {
		if got, err := render(source, nil, time.Time{}); err == nil {
			t.Errorf("%s: %q, want an error", source, got)
		}
	}
}

// TestLimits checks templates that would need unreasonable time or memory.
func TestLimits(t *testing.T) {
	for name, source := range map[string]string{
		"long loop":    "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
		"recursion":    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"huge string":  "{{ 'x' * 999999999999 }}",
		"doubling":     "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"parentheses":  "{{ " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + " }}",
		"blocks":       strings.Repeat("{% if true %}", 5000) + strings.Repeat("{% endif %}", 5000),
		"nots":         "{{ " + strings.Repeat("not ", 5000) + "1 }}",
		"signs":        "{{ " + strings.Repeat("-", 5000) + "1 }}",
		"huge list":    "{{ [1, 2] * 99999999 }}",
		"long range":   "{{ range(-9223372036854775807, 9223372036854775807) }}",
		"wide field":   "{{ '%999999999d' % 1 }}",
		"wide format":  "{{ '{:999999999}'.format(1) }}",
		"nested lists": "{{ " + strings.Repeat("[", 5000) + strings.Repeat("]", 5000) + " }}",
	} {
		if _, err := render(source, nil, time.Time{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzTemplate(f *testing.F) {
	data := must.Get(os.ReadFile("testdata/cases.json"))(f)
	var file struct{ Cases []struct{ Template string } }
	must.Do(f, json.Unmarshal(data, &file))
	for _, c := range file.Cases {
		f.Add(c.Template)
	}
	for _, source := range bombs {
		if !testing.Short() {
			f.Add(source)
		}
	}
	f.Fuzz(func(_ *testing.T, source string) {
		// Templates in which each step takes long need many seconds to reach the limit.
		if strings.Count(source, "for") > 2 || strings.Contains(source, "macro") {
			return
		}
		_, _ = render(source, map[string]any{"s": "text", "n": 3, "list": []any{1, "a", nil}, "d": NewDict("a", 1)}, time.Time{})
	})
}
