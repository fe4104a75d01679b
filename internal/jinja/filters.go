package jinja

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// arguments are what a filter was called with besides its value.
type arguments struct {
	list  []any
	named map[string]any
}

// get is an argument by place or name, or the default.
func (a arguments) get(i int, name string, otherwise any) any {
	if i < len(a.list) {
		return a.list[i]
	}
	if v, ok := a.named[name]; ok {
		return v
	}
	return otherwise
}

type filterFunc func(s *state, v any, a arguments) (any, error)

// filterNamed finds a filter; nil where there is none.
func filterNamed(name string) filterFunc {
	switch name {
	case "map":
		return filterMap
	case "select", "reject", "selectattr", "rejectattr":
		return func(s *state, v any, a arguments) (any, error) { return filterSelect(v, a, name) }
	}
	return filters[name]
}

// filters are those that need no other filter.
var filters = map[string]filterFunc{
	"trim":       filterTrim,
	"tojson":     filterJSON,
	"length":     filterLength,
	"count":      filterLength,
	"first":      filterFirst,
	"last":       filterLast,
	"join":       filterJoin,
	"default":    filterDefault,
	"d":          filterDefault,
	"replace":    filterReplace,
	"items":      filterItems,
	"dictsort":   filterDictSort,
	"sort":       filterSort,
	"unique":     filterUnique,
	"reverse":    filterReverse,
	"int":        filterInt,
	"float":      filterFloat,
	"abs":        filterAbs,
	"round":      filterRound,
	"sum":        filterSum,
	"min":        func(_ *state, v any, _ arguments) (any, error) { return extreme(v, -1) },
	"max":        func(_ *state, v any, _ arguments) (any, error) { return extreme(v, 1) },
	"indent":     filterIndent,
	"list":       filterList,
	"string":     onText(func(t string) string { return t }),
	"safe":       onText(func(t string) string { return t }),
	"upper":      onText(strings.ToUpper),
	"lower":      onText(strings.ToLower),
	"title":      onText(title),
	"capitalize": onText(capitalize),
	"from_json":  filterFromJSON, // servers add these two
	"fromjson":   filterFromJSON,
	"format":     filterFormat,
	"escape":     onText(escapeHTML),
	"e":          onText(escapeHTML),
}

func onText(f func(string) string) filterFunc {
	return func(_ *state, v any, _ arguments) (any, error) { return f(text(v)), nil }
}

func escapeHTML(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", "'", "&#39;", `"`, "&#34;").Replace(s)
}

func capitalize(s string) string {
	_, size := utf8.DecodeRuneInString(s)
	return strings.ToUpper(s[:size]) + strings.ToLower(s[size:])
}

func title(s string) string {
	start := true
	return strings.Map(func(r rune) rune {
		defer func() { start = unicode.IsSpace(r) || strings.ContainsRune("-({[<", r) }()
		if start {
			return unicode.ToUpper(r)
		}
		return unicode.ToLower(r)
	}, s)
}

func filterTrim(_ *state, v any, a arguments) (any, error) {
	if chars, ok := a.get(0, "chars", nil).(string); ok {
		return strings.Trim(text(v), chars), nil
	}
	return strings.TrimFunc(text(v), isPythonSpace), nil
}

func filterLength(_ *state, v any, _ arguments) (any, error) {
	if s, ok := v.(string); ok {
		return int64(utf8.RuneCountInString(s)), nil
	}
	if isGenerator(v) {
		return nil, errNoLength
	}
	items, err := iterate(v)
	return int64(len(items)), err
}

func filterFirst(_ *state, v any, _ arguments) (any, error) {
	if g, ok := v.(*generator); ok {
		first, ok, err := g.next()
		if !ok {
			return undefined{"the first item of nothing"}, err
		}
		return first, err
	}
	items, err := iterate(v)
	if err != nil || len(items) == 0 {
		return undefined{"the first item of nothing"}, err
	}
	return items[0], nil
}

func filterLast(_ *state, v any, _ arguments) (any, error) {
	if isGenerator(v) {
		return nil, errNoLength
	}
	items, err := iterate(v)
	if err != nil || len(items) == 0 {
		return undefined{"the last item of nothing"}, err
	}
	return items[len(items)-1], nil
}

func filterJoin(_ *state, v any, a arguments) (any, error) {
	items, err := iterate(v)
	if err != nil {
		return nil, err
	}
	name := a.get(1, "attribute", nil)
	parts := make([]string, len(items))
	for i, it := range items {
		if name != nil {
			it = item(it, name)
		}
		parts[i] = text(it)
	}
	return strings.Join(parts, text(a.get(0, "d", ""))), nil
}

func filterDefault(_ *state, v any, a arguments) (any, error) {
	_, missing := v.(undefined)
	if missing || truthy(a.get(1, "boolean", false)) && !truthy(v) {
		return a.get(0, "default_value", ""), nil
	}
	return v, nil
}

func filterReplace(_ *state, v any, a arguments) (any, error) {
	n := -1
	if c, ok := integer(a.get(2, "count", nil)); ok {
		n = int(c)
	}
	out := strings.Replace(text(v), text(a.get(0, "old", "")), text(a.get(1, "new", "")), n)
	if len(out) > maxOutput {
		return nil, errTooLarge
	}
	return out, nil
}

func pair(a, b any) *list { return &list{[]any{a, b}, true} }

func dictItems(d *Dict) *list {
	out := &list{items: []any{}}
	for _, k := range d.keys {
		out.items = append(out.items, pair(k, d.values[k]))
	}
	return out
}

func filterItems(_ *state, v any, _ arguments) (any, error) {
	return lazily(func() ([]any, error) {
		switch d := v.(type) {
		case undefined:
			return nil, nil
		case *Dict:
			return dictItems(d).items, nil
		}
		return nil, fmt.Errorf("%s has no items", kindOf(v))
	}), nil
}

func filterDictSort(s *state, v any, _ arguments) (any, error) {
	d, ok := v.(*Dict)
	if !ok {
		return nil, fmt.Errorf("%s has no items", kindOf(v))
	}
	return filterSort(s, dictItems(d), arguments{})
}

func filterFromJSON(_ *state, v any, _ arguments) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("%s is no JSON", kindOf(v))
	}
	return FromJSON([]byte(s))
}

func filterFormat(_ *state, v any, a arguments) (any, error) {
	if len(a.named) == 0 {
		return percent(text(v), &list{a.list, true})
	}
	if len(a.list) > 0 {
		return nil, errors.New("values with and without a name")
	}
	d := NewDict()
	for name, value := range a.named {
		d.set(name, value)
	}
	return percent(text(v), d)
}

func filterSort(_ *state, v any, a arguments) (any, error) {
	items, err := iterate(v)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	name := a.get(2, "attribute", nil)
	exact := truthy(a.get(1, "case_sensitive", false))
	key := func(v any) any {
		if name != nil {
			v = item(v, name)
		}
		if s, ok := v.(string); ok && !exact {
			return strings.ToLower(s)
		}
		return v
	}
	var failed error
	slices.SortStableFunc(items, func(x, y any) int {
		c, err := order(key(x), key(y))
		failed = errors.Join(failed, err)
		return c
	})
	if truthy(a.get(0, "reverse", false)) {
		slices.Reverse(items)
	}
	return &list{items: items}, failed
}

func filterUnique(_ *state, v any, _ arguments) (any, error) {
	return lazily(func() ([]any, error) {
		items, err := iterate(v)
		var out []any
		for _, it := range items {
			if !slices.ContainsFunc(out, func(o any) bool { return equal(o, it) }) {
				out = append(out, it)
			}
		}
		return out, err
	}), nil
}

func filterReverse(_ *state, v any, _ arguments) (any, error) {
	items, err := iterate(v)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, ok := v.(string); ok {
		var b strings.Builder
		for _, c := range items {
			b.WriteString(text(c))
		}
		return b.String(), nil
	}
	if isGenerator(v) {
		return &list{items: items}, nil
	}
	return lazily(func() ([]any, error) { return items, nil }), nil
}

func filterInt(_ *state, v any, a arguments) (any, error) {
	if f, ok := number(v); ok && math.Abs(f) < 1<<62 {
		return int64(f), nil
	}
	if s, ok := v.(string); ok {
		s = strings.TrimSpace(s)
		if n, err := strconv.ParseInt(s, 10, 64); err == nil {
			return n, nil
		}
		if f, err := strconv.ParseFloat(s, 64); err == nil && math.Abs(f) < 1<<62 {
			return int64(f), nil
		}
	}
	return a.get(0, "default", int64(0)), nil
}

func filterFloat(_ *state, v any, a arguments) (any, error) {
	if f, ok := number(v); ok {
		return f, nil
	}
	if s, ok := v.(string); ok {
		if f, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
			return f, nil
		}
	}
	return a.get(0, "default", 0.0), nil
}

func filterAbs(_ *state, v any, _ arguments) (any, error) {
	if n, ok := integer(v); ok {
		return max(n, -n), nil
	}
	if f, ok := number(v); ok {
		return math.Abs(f), nil
	}
	return nil, fmt.Errorf("%s is no number", kindOf(v))
}

func filterRound(_ *state, v any, a arguments) (any, error) {
	f, ok := number(v)
	if !ok {
		return nil, fmt.Errorf("%s is no number", kindOf(v))
	}
	precision, _ := integer(a.get(0, "precision", int64(0)))
	scale := math.Pow(10, float64(precision))
	switch text(a.get(1, "method", "common")) {
	case "ceil":
		return math.Ceil(f*scale) / scale, nil
	case "floor":
		return math.Floor(f*scale) / scale, nil
	}
	return math.RoundToEven(f*scale) / scale, nil
}

func filterSum(_ *state, v any, a arguments) (any, error) {
	items, err := iterate(v)
	if err != nil {
		return nil, err
	}
	name := a.get(0, "attribute", nil)
	total := a.get(1, "start", int64(0))
	for _, it := range items {
		if name != nil {
			it = item(it, name)
		}
		if total, err = add(total, it); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// extreme is the largest item, or the smallest for sign -1.
func extreme(v any, sign int) (any, error) {
	items, err := iterate(v)
	if err != nil || len(items) == 0 {
		return undefined{"the extreme of nothing"}, err
	}
	best := items[0]
	for _, it := range items[1:] {
		c, err := order(it, best)
		if err != nil {
			return nil, err
		}
		if c*sign > 0 {
			best = it
		}
	}
	return best, nil
}

func filterIndent(_ *state, v any, a arguments) (any, error) {
	indent, ok := a.get(0, "width", int64(4)).(string)
	if n, isInt := integer(a.get(0, "width", int64(4))); isInt && !ok {
		indent = strings.Repeat(" ", int(min(max(n, 0), 1000)))
	}
	blank := truthy(a.get(2, "blank", false))
	lines := strings.Split(text(v), "\n")
	for i := range lines {
		if i == 0 && !truthy(a.get(1, "first", false)) || lines[i] == "" && !blank && i > 0 {
			continue
		}
		lines[i] = indent + lines[i]
	}
	return strings.Join(lines, "\n"), nil
}

func filterList(_ *state, v any, _ arguments) (any, error) {
	items, err := iterate(v)
	return &list{items: slices.Clone(items)}, err
}

// filterMap is an attribute of each item, or what a filter makes of it.
func filterMap(s *state, v any, a arguments) (any, error) {
	return mapped(v, func() (eachFunc, error) {
		if name, ok := a.named["attribute"]; ok {
			return func(it any) (any, bool, error) {
				got := item(it, name)
				if _, missing := got.(undefined); missing {
					got = a.get(99, "default", got)
				}
				return got, true, nil
			}, nil
		}
		if len(a.list) == 0 {
			return nil, errors.New("map needs an attribute or a filter")
		}
		f := filterNamed(text(a.list[0]))
		if f == nil {
			return nil, fmt.Errorf("filter %q is not supported", text(a.list[0]))
		}
		return func(it any) (any, bool, error) {
			out, err := f(s, it, arguments{a.list[1:], a.named})
			return out, true, err
		}, nil
	}), nil
}

// filterSelect keeps the items that pass a test, or those that do not.
func filterSelect(v any, a arguments, name string) (any, error) {
	return mapped(v, func() (eachFunc, error) {
		args := a.list
		var attribute any
		if strings.HasSuffix(name, "attr") {
			if len(args) == 0 {
				return nil, errors.New("an attribute is missing")
			}
			attribute, args = args[0], args[1:]
		}
		var test testFunc // nil is whether the item is true
		if len(args) > 0 {
			if test = tests[text(args[0])]; test == nil {
				return nil, fmt.Errorf("test %q is not supported", text(args[0]))
			}
			args = args[1:]
		}
		return func(it any) (any, bool, error) {
			subject := it
			if attribute != nil {
				subject = item(it, attribute)
			}
			ok, err := truthy(subject), error(nil)
			if test != nil {
				ok, err = test(subject, args)
			}
			return it, ok != strings.HasPrefix(name, "reject"), err
		}, nil
	}), nil
}
