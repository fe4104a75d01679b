package jinja

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The values of templates are nil, bool, int64, float64, string, *list, *Dict,
// *generator, *namespace, *callable and undefined.

// A Dict is a mapping that keeps the order of its keys, as Python's does.
type Dict struct {
	keys   []any
	values map[any]any
}

// NewDict makes a mapping of keys and values in turn.
func NewDict(pairs ...any) *Dict {
	d := &Dict{values: map[any]any{}}
	for i := 0; i+1 < len(pairs); i += 2 {
		d.set(fromGo(pairs[i]), fromGo(pairs[i+1]))
	}
	return d
}

func (d *Dict) set(key, value any) {
	if _, ok := d.values[key]; !ok {
		d.keys = append(d.keys, key)
	}
	d.values[key] = value
}

type list struct {
	items []any
	tuple bool
}

// A namespace is a mapping that templates can assign to.
type namespace struct{ values map[string]any }

// undefined is what a name stands for that nobody defined.
type undefined struct{ name string }

// A callable is a function, a macro or a method.
type callable struct {
	name string
	call func(s *state, args []any, kwargs map[string]any) (any, error)
}

// FromJSON reads JSON into values that Render takes, with the order of keys kept.
func FromJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeJSON(d, 0)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read JSON: more follows the value")
	}
	return v, nil
}

func decodeJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("nested deeper than %d", maxDepth)
	}
	t, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case json.Number:
		if n, err := strconv.ParseInt(t.String(), 10, 64); err == nil {
			return n, nil
		}
		return t.Float64()
	case json.Delim:
		if t == '[' {
			return decodeJSONList(d, depth)
		}
		return decodeJSONDict(d, depth)
	}
	return t, nil
}

func decodeJSONList(d *json.Decoder, depth int) (any, error) {
	l := &list{items: []any{}}
	for d.More() {
		v, err := decodeJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		l.items = append(l.items, v)
	}
	_, err := d.Token()
	return l, err
}

func decodeJSONDict(d *json.Decoder, depth int) (any, error) {
	dict := NewDict()
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, err
		}
		v, err := decodeJSON(d, depth+1)
		if err != nil {
			return nil, err
		}
		dict.set(key, v)
	}
	_, err := d.Token()
	return dict, err
}

// fromGo turns a value of the caller into one of a template.
func fromGo(v any) any {
	switch v := v.(type) {
	case int:
		return int64(v)
	case []any:
		l := &list{items: make([]any, len(v))}
		for i, item := range v {
			l.items[i] = fromGo(item)
		}
		return l
	}
	return v
}

func truthy(v any) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case *list:
		return len(v.items) > 0
	case *Dict:
		return len(v.keys) > 0
	}
	return true
}

// text is str(v) in Python.
func text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	return repr(v)
}

// repr is repr(v) in Python.
func repr(v any) string {
	switch v := v.(type) {
	case nil:
		return "None"
	case bool:
		if v {
			return "True"
		}
		return "False"
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return formatFloat(v)
	case string:
		return quote(v)
	case undefined:
		return "Undefined"
	case *list:
		items := make([]string, len(v.items))
		for i, item := range v.items {
			items[i] = repr(item)
		}
		switch {
		case v.tuple && len(items) == 1:
			return "(" + items[0] + ",)"
		case v.tuple:
			return "(" + strings.Join(items, ", ") + ")"
		}
		return "[" + strings.Join(items, ", ") + "]"
	case *Dict:
		items := make([]string, len(v.keys))
		for i, k := range v.keys {
			items[i] = repr(k) + ": " + repr(v.values[k])
		}
		return "{" + strings.Join(items, ", ") + "}"
	case *callable:
		return "<function " + v.name + ">"
	}
	return fmt.Sprintf("<%T>", v)
}

func formatFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	if a := math.Abs(f); a != 0 && (a < 1e-4 || a >= 1e16) {
		return strconv.FormatFloat(f, 'e', -1, 64)
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0"
	}
	return s
}

// quote is a string literal as Python prints it.
func quote(s string) string {
	q := byte('\'')
	if strings.Contains(s, "'") && !strings.Contains(s, `"`) {
		q = '"'
	}
	b := []byte{q}
	for _, r := range s {
		switch {
		case r == rune(q) || r == '\\':
			b = append(b, '\\', byte(r))
		case r == '\n':
			b = append(b, `\n`...)
		case r == '\r':
			b = append(b, `\r`...)
		case r == '\t':
			b = append(b, `\t`...)
		case r < ' ' || r == 0x7f:
			b = fmt.Appendf(b, `\x%02x`, r)
		case unicode.IsPrint(r):
			b = utf8.AppendRune(b, r)
		case r < 0x100:
			b = fmt.Appendf(b, `\x%02x`, r)
		case r < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			b = fmt.Appendf(b, `\U%08x`, r)
		}
	}
	return string(append(b, q))
}

// number is v as a float, for arithmetic; booleans are numbers too.
func number(v any) (float64, bool) {
	if n, ok := integer(v); ok {
		return float64(n), true
	}
	f, ok := v.(float64)
	return f, ok
}

// integer is v as an integer; booleans are integers too.
func integer(v any) (int64, bool) {
	switch v := v.(type) {
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	case int64:
		return v, true
	}
	return 0, false
}

func equal(a, b any) bool {
	if x, ok := number(a); ok {
		y, ok := number(b)
		return ok && x == y
	}
	switch a := a.(type) {
	case nil:
		return b == nil
	case string:
		s, ok := b.(string)
		return ok && a == s
	case undefined:
		_, ok := b.(undefined)
		return ok
	case *list:
		l, ok := b.(*list)
		return ok && a.tuple == l.tuple && slices.EqualFunc(a.items, l.items, equal)
	case *Dict:
		d, ok := b.(*Dict)
		if !ok || len(a.keys) != len(d.keys) {
			return false
		}
		for _, k := range a.keys {
			if v, ok := d.values[k]; !ok || !equal(a.values[k], v) {
				return false
			}
		}
		return true
	}
	return a == b
}

// order is negative, zero or positive as a comes before, with or after b.
func order(a, b any) (int, error) {
	if x, ok := number(a); ok {
		if y, ok := number(b); ok {
			switch {
			case x < y:
				return -1, nil
			case x > y:
				return 1, nil
			}
			return 0, nil
		}
	}
	if x, ok := a.(string); ok {
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), nil
		}
	}
	x, ok1 := a.(*list)
	y, ok2 := b.(*list)
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("%s and %s cannot be compared", kindOf(a), kindOf(b))
	}
	for i := range min(len(x.items), len(y.items)) {
		if c, err := order(x.items[i], y.items[i]); err != nil || c != 0 {
			return c, err
		}
	}
	return len(x.items) - len(y.items), nil
}

// kindOf names the kind of a value in errors.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "a boolean"
	case int64, float64:
		return "a number"
	case string:
		return "a string"
	case *list:
		return "a list"
	case *Dict:
		return "a mapping"
	case undefined:
		return "undefined " + v.name
	case *callable:
		return "a function"
	case *generator:
		return "a generator"
	}
	return "an object"
}

// iterate is the items of a value.
func iterate(v any) ([]any, error) {
	switch v := v.(type) {
	case *list:
		return v.items, nil
	case *Dict:
		return v.keys, nil
	case undefined:
		return nil, nil
	case *generator:
		return v.rest()
	case string:
		var items []any
		for _, r := range v {
			items = append(items, string(r))
		}
		return items, nil
	}
	return nil, fmt.Errorf("%s cannot be iterated over", kindOf(v))
}

// contains is item in container.
func contains(container, item any) (bool, error) {
	switch c := container.(type) {
	case string:
		s, ok := item.(string)
		if !ok {
			return false, fmt.Errorf("%s cannot be in a string", kindOf(item))
		}
		return strings.Contains(c, s), nil
	case *Dict:
		if !hashable(item) {
			return false, fmt.Errorf("%s cannot be a key", kindOf(item))
		}
		_, ok := c.values[item]
		return ok, nil
	}
	items, err := iterate(container)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(items, func(v any) bool { return equal(v, item) }), nil
}

// hashable says whether a value can be a key.
func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}
