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

// Dict is a mapping that keeps the order of its keys, like Python's dict.
type Dict struct {
	keys   []any
	values map[any]any
}

// NewDict returns a mapping of alternating keys and values.
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

// namespace is a mapping whose attributes templates can assign.
type namespace struct{ values map[string]any }

// undefined is the value of an undefined name.
type undefined struct{ name string }

// callable is a function, a macro or a method.
type callable struct {
	name string
	call func(s *state, args []any, kwargs map[string]any) (any, error)
}

// FromJSON parses JSON into values for Render. It keeps the order of keys.
func FromJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeJSON(d, 0)
	if err != nil {
		return nil, fmt.Errorf("read JSON: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("read JSON: data after the value")
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

// fromGo converts a caller's value into a template value.
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

// text implements Python's str(v).
func (b *budget) text(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case undefined:
		return ""
	}
	return b.repr(v)
}

// repr implements Python's b.repr(v).
func (b *budget) repr(v any) string {
	var w strings.Builder
	b.writeRepr(&w, v, 0)
	return w.String()
}

func (b *budget) writeRepr(w *strings.Builder, v any, depth int) {
	checkDepth(depth)
	b.spend(itemCost)
	switch v := v.(type) {
	case *list:
		b.writeReprs(w, v, depth)
	case *Dict:
		b.spend(2)
		w.WriteByte('{')
		for i, k := range v.keys {
			if i > 0 {
				w.WriteString(", ")
			}
			b.writeRepr(w, k, depth+1)
			w.WriteString(": ")
			b.writeRepr(w, v.values[k], depth+1)
		}
		w.WriteByte('}')
	default:
		text := scalarRepr(v)
		b.spend(len(text) + len(": , "))
		w.WriteString(text)
	}
}

// writeReprs writes a list or a tuple.
func (b *budget) writeReprs(w *strings.Builder, l *list, depth int) {
	b.spend(2)
	opening, closing := "[", "]"
	switch {
	case l.tuple && len(l.items) == 1:
		opening, closing = "(", ",)"
	case l.tuple:
		opening, closing = "(", ")"
	}
	w.WriteString(opening)
	for i, item := range l.items {
		if i > 0 {
			w.WriteString(", ")
		}
		b.writeRepr(w, item, depth+1)
	}
	w.WriteString(closing)
}

// scalarRepr is repr for values without other values in them.
func scalarRepr(v any) string {
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

// quote returns a string literal in Python's format.
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

// number returns v as a float for arithmetic. Booleans count as numbers.
func number(v any) (float64, bool) {
	if n, ok := integer(v); ok {
		return float64(n), true
	}
	f, ok := v.(float64)
	return f, ok
}

// integer returns v as an integer. Booleans count as integers.
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

func (b *budget) equal(x, y any) bool { return b.equalAt(x, y, 0) }

func (b *budget) equalAt(x, y any, depth int) bool {
	checkDepth(depth)
	b.spend(itemCost)
	if n, ok := number(x); ok {
		m, ok := number(y)
		return ok && n == m
	}
	switch x := x.(type) {
	case nil:
		return y == nil
	case string:
		s, ok := y.(string)
		b.spend(min(len(x), len(s)))
		return ok && x == s
	case undefined:
		_, ok := y.(undefined)
		return ok
	case *list:
		l, ok := y.(*list)
		return ok && x.tuple == l.tuple && slices.EqualFunc(x.items, l.items, func(v, w any) bool { return b.equalAt(v, w, depth+1) })
	case *Dict:
		d, ok := y.(*Dict)
		if !ok || len(x.keys) != len(d.keys) {
			return false
		}
		for _, k := range x.keys {
			if v, ok := d.values[k]; !ok || !b.equalAt(x.values[k], v, depth+1) {
				return false
			}
		}
		return true
	}
	return x == y
}

// order returns a negative number if x < y, zero if x == y and a positive number if x >
// y.
func (b *budget) order(x, y any) (int, error) { return b.orderAt(x, y, 0) }

func (b *budget) orderAt(x, y any, depth int) (int, error) {
	checkDepth(depth)
	b.spend(itemCost)
	if n, ok := number(x); ok {
		if m, ok := number(y); ok {
			switch {
			case n < m:
				return -1, nil
			case n > m:
				return 1, nil
			}
			return 0, nil
		}
	}
	if v, ok := x.(string); ok {
		if w, ok := y.(string); ok {
			b.spend(min(len(v), len(w)))
			return strings.Compare(v, w), nil
		}
	}
	v, ok1 := x.(*list)
	w, ok2 := y.(*list)
	if !ok1 || !ok2 {
		return 0, fmt.Errorf("%s and %s cannot be compared", kindOf(x), kindOf(y))
	}
	for i := range min(len(v.items), len(w.items)) {
		if c, err := b.orderAt(v.items[i], w.items[i], depth+1); err != nil || c != 0 {
			return c, err
		}
	}
	return len(v.items) - len(w.items), nil
}

// kindOf names the type of a value for errors.
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

// iterate returns the items of a value.
func (b *budget) iterate(v any) ([]any, error) {
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
		b.spend(2 * itemCost * utf8.RuneCountInString(v))
		var items []any
		for _, r := range v {
			items = append(items, string(r))
		}
		return items, nil
	}
	return nil, fmt.Errorf("%s cannot be iterated over", kindOf(v))
}

// contains implements Python's item in container.
func (b *budget) contains(container, item any) (bool, error) {
	switch c := container.(type) {
	case string:
		s, ok := item.(string)
		if !ok {
			return false, fmt.Errorf("%s cannot be in a string", kindOf(item))
		}
		b.spend(len(c))
		return strings.Contains(c, s), nil
	case *Dict:
		if !hashable(item) {
			return false, fmt.Errorf("%s cannot be a key", kindOf(item))
		}
		_, ok := c.values[item]
		return ok, nil
	}
	items, err := b.iterate(container)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(items, func(v any) bool { return b.equal(v, item) }), nil
}

// hashable reports whether v can be a key.
func hashable(v any) bool {
	switch v.(type) {
	case nil, bool, int64, float64, string:
		return true
	}
	return false
}
