package jinja

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// filterJSON implements json.dumps with ensure_ascii=False, which servers use for chat
// templates.
func filterJSON(_ *state, v any, a arguments) (any, error) {
	w := jsonWriter{budget: a.budget, itemSeparator: ", ", keySeparator: ": "}
	switch indent := a.get(1, "indent", nil).(type) {
	case int64:
		w.indent = strings.Repeat(" ", int(min(max(indent, 0), 1000)))
		w.pretty = true
	case string:
		w.indent, w.pretty = indent, true
	}
	if w.pretty {
		w.itemSeparator = ","
	}
	if s, ok := a.get(2, "separators", nil).(*list); ok && len(s.items) == 2 {
		w.itemSeparator, w.keySeparator = a.text(s.items[0]), a.text(s.items[1])
	}
	w.ascii = truthy(a.get(0, "ensure_ascii", false))
	w.sorted = truthy(a.get(3, "sort_keys", false))
	if err := w.write(v, 0); err != nil {
		return nil, err
	}
	return w.b.String(), nil
}

type jsonWriter struct {
	*budget
	b                           strings.Builder
	itemSeparator, keySeparator string
	indent                      string
	pretty, ascii, sorted       bool
}

func (w *jsonWriter) write(v any, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("nested deeper than %d", maxDepth)
	}
	w.spend(itemCost)
	switch v := v.(type) {
	case nil:
		w.b.WriteString("null")
	case bool:
		w.b.WriteString(strings.ToLower(w.repr(v)))
	case int64, float64:
		w.b.WriteString(w.repr(v))
	case string:
		w.string(v)
	case *list:
		return w.sequence('[', ']', len(v.items), depth, func(i int) error { return w.write(v.items[i], depth+1) })
	case *Dict:
		keys := v.keys
		if w.sorted {
			keys = slices.SortedFunc(slices.Values(keys), func(a, b any) int { return strings.Compare(w.text(a), w.text(b)) })
		}
		return w.sequence('{', '}', len(keys), depth, func(i int) error {
			w.string(w.jsonKey(keys[i]))
			w.spend(len(w.keySeparator))
			w.b.WriteString(w.keySeparator)
			return w.write(v.values[keys[i]], depth+1)
		})
	default:
		return fmt.Errorf("%s cannot be encoded as JSON", kindOf(v))
	}
	return nil
}

// jsonKey returns a key in json.dumps format.
func (b *budget) jsonKey(k any) string {
	switch k := k.(type) {
	case nil:
		return "null"
	case bool:
		return strings.ToLower(b.repr(k))
	}
	return b.text(k)
}

func (w *jsonWriter) sequence(opening, closing byte, n, depth int, item func(i int) error) error {
	w.b.WriteByte(opening)
	for i := range n {
		if i > 0 {
			w.spend(len(w.itemSeparator))
			w.b.WriteString(w.itemSeparator)
		}
		w.newline(depth + 1)
		if err := item(i); err != nil {
			return err
		}
	}
	if n > 0 {
		w.newline(depth)
	}
	w.b.WriteByte(closing)
	return nil
}

func (w *jsonWriter) newline(depth int) {
	if w.pretty {
		w.b.WriteByte('\n')
		w.spendTimes(depth, len(w.indent))
		for range depth {
			w.b.WriteString(w.indent)
		}
	}
}

var jsonEscapes = map[rune]string{
	'"': `\"`, '\\': `\\`, '\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`,
}

func (w *jsonWriter) string(s string) {
	w.spend(len(s))
	w.b.WriteByte('"')
	for _, r := range s {
		switch escape, ok := jsonEscapes[r]; {
		case ok:
			w.b.WriteString(escape)
		case r < ' ':
			fmt.Fprintf(&w.b, `\u%04x`, r)
		case w.ascii && r >= 0x10000:
			fmt.Fprintf(&w.b, `\u%04x\u%04x`, 0xd800+(r-0x10000)>>10, 0xdc00+(r-0x10000)&0x3ff)
		case w.ascii && r >= utf8.RuneSelf:
			fmt.Fprintf(&w.b, `\u%04x`, r)
		default:
			w.b.WriteRune(r)
		}
	}
	w.b.WriteByte('"')
}
