package score

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
)

// A BFCLKey is the reference of the scorer bfcl: a category of the Berkeley Function Calling Leaderboard, the functions
// offered, and the accepted calls.
type BFCLKey struct {
	Category  string                      `json:"category"`
	Functions []bfclFunction              `json:"function"`
	Truth     []map[string]map[string]any `json:"ground_truth"`
}

type bfclFunction struct {
	Name       string `json:"name"`
	Parameters struct {
		Properties map[string]bfclType `json:"properties"`
		Required   []string            `json:"required"`
	} `json:"parameters"`
}

type bfclType struct {
	Type  string    `json:"type"`
	Items *bfclType `json:"items"`
}

// A call is a function call with its arguments as Python values: int64, float64, string, bool, nil, []any and
// map[string]any.
type call struct {
	name string
	args map[string]any
}

// bfcl scores tool calls as ast_checker.py of bfcl-eval does. The names of functions match with dots or underscores.
func bfcl(a *Answer, q *tacho.Request) Result {
	var key BFCLKey
	d := json.NewDecoder(strings.NewReader(q.Reference))
	d.UseNumber()
	if err := d.Decode(&key); err != nil {
		return Result{Mark: LeftOut, Why: "the reference has no answer key"}
	}
	if strings.Contains(key.Category, "java") {
		return Result{Mark: LeftOut, Why: "calls of Java and JavaScript are not checked"}
	}
	calls, why := callsOf(a)
	switch {
	case strings.Contains(key.Category, "irrelevance"):
		return markOf(why == "" && len(calls) == 0 || why == noCalls)
	case strings.Contains(key.Category, "relevance"):
		return markOf(why == "" && len(calls) > 0)
	case why != "":
		return Result{Mark: Wrong, Why: why}
	}
	return markOf(key.matches(calls))
}

// noCalls is the reason that an answer contains no call.
const noCalls = "no tool call"

// callsOf returns the calls of an answer: the tool calls, or else the calls in its text.
func callsOf(a *Answer) ([]call, string) {
	if len(a.Calls) == 0 {
		calls, ok := callsInText(a.Content)
		if !ok {
			return nil, noCalls
		}
		return calls, ""
	}
	var out []call
	for _, c := range a.Calls {
		v, err := parseJSON(c.Arguments)
		args, ok := pythonOf(v).(map[string]any)
		if err != nil || !ok {
			return nil, "arguments are not a JSON object"
		}
		out = append(out, call{c.Name, args})
	}
	return out, ""
}

// pythonOf converts JSON with json.Number to the values that Python's parser makes of it.
func pythonOf(v any) any {
	switch v := v.(type) {
	case json.Number:
		if n, err := v.Int64(); err == nil {
			return n
		}
		f, _ := v.Float64() // saturates
		return f
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = pythonOf(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = pythonOf(v[k])
		}
		return out
	}
	return v
}

// matches compares calls with the key. Expected calls take the first call that fits, in order and without going back.
func (key *BFCLKey) matches(calls []call) bool {
	many := strings.Contains(key.Category, "parallel")
	if len(key.Functions) == 0 || len(key.Truth) == 0 || many && len(calls) != len(key.Truth) || !many && len(calls) != 1 {
		return false
	}
	used := make([]bool, len(calls))
	for _, truth := range key.Truth[:len(calls)] {
		found := -1
		for i := range calls {
			if !used[i] && key.fits(calls[i], truth, many || strings.Contains(key.Category, "multiple")) {
				found = i
				break
			}
		}
		if found < 0 {
			return false
		}
		used[found] = true
	}
	return true
}

// fits compares one call with one expected call. The expected function has the name of the key if several are offered.
func (key *BFCLKey) fits(c call, truth map[string]map[string]any, byName bool) bool {
	names := slices.Sorted(maps.Keys(truth))
	if len(names) != 1 {
		return false
	}
	f, accepted := &key.Functions[0], truth[names[0]]
	if byName {
		i := slices.IndexFunc(key.Functions, func(f bfclFunction) bool { return f.Name == names[0] })
		if i < 0 {
			return false
		}
		f = &key.Functions[i]
	}
	underscores := func(name string) string { return strings.ReplaceAll(name, ".", "_") }
	if underscores(c.name) != underscores(f.Name) {
		return false
	}
	for _, name := range f.Parameters.Required {
		if _, given := c.args[name]; !given {
			return false
		}
	}
	for name, value := range c.args {
		typ, known := f.Parameters.Properties[name]
		list, keyed := pythonOf(accepted[name]).([]any)
		if !known || !keyed || !typ.accepts(value, list) {
			return false
		}
	}
	for name, list := range accepted {
		all, _ := pythonOf(list).([]any)
		if _, given := c.args[name]; !given && !slices.Contains(all, any("")) {
			return false
		}
	}
	return true
}

// kindOf returns the type of a value, as type() of Python does.
func kindOf(v any) string {
	switch v.(type) {
	case string:
		return "string"
	case int64:
		return "integer"
	case float64:
		return "float"
	case bool:
		return "boolean"
	case []any:
		return "array"
	case map[string]any:
		return "dict"
	}
	return "none"
}

// python is the type of a schema as kindOf names it.
func (t *bfclType) python() string {
	switch t.Type {
	case "tuple":
		return "array"
	case "any":
		return "string"
	}
	return t.Type
}

// accepts checks the type of a value and compares it with the accepted values.
func (t *bfclType) accepts(value any, accepted []any) bool {
	want := t.python()
	if n, whole := value.(int64); whole && want == "float" {
		value = float64(n)
	}
	nested := ""
	if want == "array" && t.Items != nil {
		nested = t.Items.python()
	}
	variable, ok := checkType(value, accepted, want, nested)
	switch {
	case !ok:
		return false
	case variable:
	case want == "dict":
		return acceptsDict(value, accepted)
	case want == "array" && nested == "dict":
		return acceptsDicts(value, accepted)
	case want == "string":
		return slices.ContainsFunc(accepted, func(a any) bool {
			text, is := a.(string)
			return is && plain(text) == plain(value)
		})
	case want == "array":
		list, _ := value.([]any)
		return slices.ContainsFunc(accepted, func(a any) bool { return equal(plainAll(list), plainAll(elements(a))) })
	}
	return slices.ContainsFunc(accepted, func(a any) bool { return equal(value, a) })
}

// checkType checks the type of a value. variable reports whether the key names a variable, which has another type than
// the schema. If nested is not empty, each element has that type, or the type of an accepted list.
func checkType(value any, accepted []any, want, nested string) (variable, ok bool) {
	keyed := "" // type of the accepted values
	for _, a := range accepted {
		if a != any("") {
			keyed = kindOf(a)
			break
		}
	}
	variable = keyed != "" && keyed != want
	if kindOf(value) == want {
		if nested == "" {
			return variable, true
		}
		items, _ := value.([]any)
		for _, a := range accepted {
			list, isList := a.([]any)
			fits := func(item any) bool { _, ok := checkType(item, list, nested, ""); return ok }
			if !isList || !slices.ContainsFunc(items, func(item any) bool { return !fits(item) }) {
				return variable, true
			}
		}
	}
	if keyed != "" && kindOf(value) == keyed {
		return true, true
	}
	return false, false
}

// acceptsDict compares an object with accepted objects, whose values are lists of accepted values.
func acceptsDict(value any, accepted []any) bool {
	members, _ := value.(map[string]any)
	return slices.ContainsFunc(accepted, func(a any) bool {
		options, isDict := a.(map[string]any)
		if !isDict {
			return false
		}
		for name, v := range members {
			list := elements(options[name])
			if !slices.ContainsFunc(list, func(o any) bool { return equal(plain(v), plain(o)) }) {
				return false
			}
		}
		for name, o := range options {
			if _, given := members[name]; !given && !slices.Contains(elements(o), any("")) {
				return false
			}
		}
		return true
	})
}

func acceptsDicts(value any, accepted []any) bool {
	items, _ := value.([]any)
	return slices.ContainsFunc(accepted, func(a any) bool {
		options := elements(a)
		if len(options) != len(items) {
			return false
		}
		for i := range items {
			if _, isDict := items[i].(map[string]any); !isDict || !acceptsDict(items[i], options[i:i+1]) {
				return false
			}
		}
		return true
	})
}

// elements returns the elements of a list, or the characters of a text, as Python's loops do.
func elements(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case string:
		var out []any
		for _, r := range v {
			out = append(out, string(r))
		}
		return out
	}
	return nil
}

// plain returns a text without the characters that do not count. Other values stay as they are.
func plain(v any) any {
	text, is := v.(string)
	if !is {
		return v
	}
	drop := func(r rune) rune {
		if strings.ContainsRune(" ,./-_*^", r) {
			return -1
		}
		return r
	}
	return strings.ReplaceAll(strings.ToLower(strings.Map(drop, text)), "'", `"`)
}

func plainAll(list []any) any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = plain(list[i])
	}
	return out
}

// equal compares values as Python does: 1, 1.0 and True are equal.
func equal(a, b any) bool {
	x, numberA := numberOf(a)
	y, numberB := numberOf(b)
	if numberA || numberB {
		return numberA && numberB && x == y
	}
	switch a := a.(type) {
	case []any:
		b, is := b.([]any)
		return is && slices.EqualFunc(a, b, equal)
	case map[string]any:
		b, is := b.(map[string]any)
		return is && maps.EqualFunc(a, b, equal)
	}
	return a == b
}

func numberOf(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return math.NaN(), false
}
