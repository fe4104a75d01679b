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

// arguments are the arguments of a filter besides its value.
type arguments struct {
	*budget
	list  []any
	named map[string]any
}

// get returns an argument by position or name, or the default.
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

// filterNamed returns a filter, or nil if the filter is unknown.
func filterNamed(name string) filterFunc {
	switch name {
	case "map":
		return filterMap
	case "select", "reject", "selectattr", "rejectattr":
		return func(s *state, v any, a arguments) (any, error) { return filterSelect(v, a, name) }
	}
	return filters[name]
}

// filters contains the filters that do not call other filters.
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
	"min":        func(_ *state, v any, a arguments) (any, error) { return a.extreme(v, -1) },
	"max":        func(_ *state, v any, a arguments) (any, error) { return a.extreme(v, 1) },
	"indent":     filterIndent,
	"list":       filterList,
	"string":     onText(func(t string) string { return t }),
	"safe":       onText(func(t string) string { return t }),
	"upper":      onText(strings.ToUpper),
	"lower":      onText(strings.ToLower),
	"title":      onText(title),
	"capitalize": onText(capitalize),
	"from_json":  filterFromJSON, // added by servers, not part of jinja2
	"fromjson":   filterFromJSON,
	"format":     filterFormat,
	"escape":     onText(escapeHTML),
	"e":          onText(escapeHTML),
}

func onText(f func(string) string) filterFunc {
	return func(_ *state, v any, a arguments) (any, error) { return f(a.text(v)), nil }
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
		return strings.TrimFunc(a.text(v), in(chars)), nil
	}
	return strings.TrimFunc(a.text(v), isPythonSpace), nil
}

func filterLength(_ *state, v any, a arguments) (any, error) {
	if s, ok := v.(string); ok {
		return int64(utf8.RuneCountInString(s)), nil
	}
	if isGenerator(v) {
		return nil, errNoLength
	}
	items, err := a.iterate(v)
	return int64(len(items)), err
}

func filterFirst(_ *state, v any, a arguments) (any, error) {
	if g, ok := v.(*generator); ok {
		first, ok, err := g.next()
		if !ok {
			return undefined{"the first item of nothing"}, err
		}
		return first, err
	}
	items, err := a.iterate(v)
	if err != nil || len(items) == 0 {
		return undefined{"the first item of nothing"}, err
	}
	return items[0], nil
}

func filterLast(_ *state, v any, a arguments) (any, error) {
	if isGenerator(v) {
		return nil, errNoLength
	}
	items, err := a.iterate(v)
	if err != nil || len(items) == 0 {
		return undefined{"the last item of nothing"}, err
	}
	return items[len(items)-1], nil
}

func filterJoin(_ *state, v any, a arguments) (any, error) {
	items, err := a.iterate(v)
	if err != nil {
		return nil, err
	}
	name := a.get(1, "attribute", nil)
	parts := make([]string, len(items))
	for i, it := range items {
		if name != nil {
			it = a.item(it, name)
		}
		parts[i] = a.text(it)
	}
	return a.join(parts, a.text(a.get(0, "d", ""))), nil
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
	from, old, with := a.text(v), a.text(a.get(0, "old", "")), a.text(a.get(1, "new", ""))
	times := strings.Count(from, old)
	if n >= 0 {
		times = min(times, n)
	}
	a.spend(len(from))
	a.spendTimes(times, len(with))
	return strings.Replace(from, old, with, n), nil
}

func (b *budget) dictItems(d *Dict) *list {
	b.spend(entryCost * len(d.keys))
	out := &list{items: []any{}}
	for _, k := range d.keys {
		out.items = append(out.items, &list{[]any{k, d.values[k]}, true})
	}
	return out
}

func filterItems(_ *state, v any, a arguments) (any, error) {
	return lazily(func() ([]any, error) {
		switch d := v.(type) {
		case undefined:
			return nil, nil
		case *Dict:
			return a.dictItems(d).items, nil
		}
		return nil, fmt.Errorf("%s has no items", kindOf(v))
	}), nil
}

func filterDictSort(s *state, v any, _ arguments) (any, error) {
	d, ok := v.(*Dict)
	if !ok {
		return nil, fmt.Errorf("%s has no items", kindOf(v))
	}
	return filterSort(s, s.dictItems(d), arguments{budget: s.budget})
}

func filterFromJSON(_ *state, v any, a arguments) (any, error) {
	s, ok := v.(string)
	if !ok {
		return nil, fmt.Errorf("%s is not JSON", kindOf(v))
	}
	a.spendTimes(len(s), parsedCost)
	return FromJSON([]byte(s))
}

func filterFormat(_ *state, v any, a arguments) (any, error) {
	if len(a.named) == 0 {
		return a.percent(a.text(v), &list{a.list, true})
	}
	if len(a.list) > 0 {
		return nil, errors.New("positional and named values cannot be mixed")
	}
	d := NewDict()
	for name, value := range a.named {
		d.set(name, value)
	}
	return a.percent(a.text(v), d)
}

func filterSort(_ *state, v any, a arguments) (any, error) {
	items, err := a.iterate(v)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	name := a.get(2, "attribute", nil)
	exact := truthy(a.get(1, "case_sensitive", false))
	key := func(v any) any {
		if name != nil {
			v = a.item(v, name)
		}
		if s, ok := v.(string); ok && !exact {
			a.spend(len(s))
			return strings.ToLower(s)
		}
		return v
	}
	var failed error
	slices.SortStableFunc(items, func(x, y any) int {
		c, err := a.order(key(x), key(y))
		failed = errors.Join(failed, err)
		return c
	})
	if truthy(a.get(0, "reverse", false)) {
		slices.Reverse(items)
	}
	return &list{items: items}, failed
}

func filterUnique(_ *state, v any, a arguments) (any, error) {
	return lazily(func() ([]any, error) {
		items, err := a.iterate(v)
		var out []any
		for _, it := range items {
			if !slices.ContainsFunc(out, func(o any) bool { return a.equal(o, it) }) {
				out = append(out, it)
			}
		}
		return out, err
	}), nil
}

func filterReverse(_ *state, v any, a arguments) (any, error) {
	items, err := a.iterate(v)
	if err != nil {
		return nil, err
	}
	items = slices.Clone(items)
	slices.Reverse(items)
	if _, ok := v.(string); ok {
		var b strings.Builder
		for _, c := range items {
			b.WriteString(a.text(c))
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

func filterAbs(_ *state, v any, a arguments) (any, error) {
	if n, ok := integer(v); ok {
		return max(n, -n), nil
	}
	if f, ok := number(v); ok {
		return math.Abs(f), nil
	}
	return nil, fmt.Errorf("%s is not a number", kindOf(v))
}

func filterRound(_ *state, v any, a arguments) (any, error) {
	f, ok := number(v)
	if !ok {
		return nil, fmt.Errorf("%s is not a number", kindOf(v))
	}
	precision, _ := integer(a.get(0, "precision", int64(0)))
	scale := math.Pow(10, float64(precision))
	switch a.text(a.get(1, "method", "common")) {
	case "ceil":
		return math.Ceil(f*scale) / scale, nil
	case "floor":
		return math.Floor(f*scale) / scale, nil
	}
	return math.RoundToEven(f*scale) / scale, nil
}

func filterSum(_ *state, v any, a arguments) (any, error) {
	items, err := a.iterate(v)
	if err != nil {
		return nil, err
	}
	name := a.get(0, "attribute", nil)
	total := a.get(1, "start", int64(0))
	for _, it := range items {
		if name != nil {
			it = a.item(it, name)
		}
		if total, err = a.add(total, it); err != nil {
			return nil, err
		}
	}
	return total, nil
}

// extreme returns the largest item, or the smallest if sign is -1.
func (b *budget) extreme(v any, sign int) (any, error) {
	items, err := b.iterate(v)
	if err != nil || len(items) == 0 {
		return undefined{"the extreme of nothing"}, err
	}
	best := items[0]
	for _, it := range items[1:] {
		c, err := b.order(it, best)
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
	lines := strings.Split(a.text(v), "\n")
	a.spendTimes(len(lines), len(indent))
	for i := range lines {
		if i == 0 && !truthy(a.get(1, "first", false)) || lines[i] == "" && !blank && i > 0 {
			continue
		}
		lines[i] = indent + lines[i]
	}
	return strings.Join(lines, "\n"), nil
}

func filterList(_ *state, v any, a arguments) (any, error) {
	items, err := a.iterate(v)
	return &list{items: slices.Clone(items)}, err
}

// filterMap returns an attribute of each item, or the result of a filter for each item.
func filterMap(s *state, v any, a arguments) (any, error) {
	return a.mapped(v, func() (eachFunc, error) {
		if name, ok := a.named["attribute"]; ok {
			return func(it any) (any, bool, error) {
				got := s.item(it, name)
				if _, missing := got.(undefined); missing {
					got = a.get(99, "default", got)
				}
				return got, true, nil
			}, nil
		}
		if len(a.list) == 0 {
			return nil, errors.New("map needs an attribute or a filter")
		}
		f := filterNamed(s.text(a.list[0]))
		if f == nil {
			return nil, fmt.Errorf("filter %q is not supported", s.text(a.list[0]))
		}
		return func(it any) (any, bool, error) {
			out, err := f(s, it, arguments{a.budget, a.list[1:], a.named})
			return out, true, err
		}, nil
	}), nil
}

// filterSelect keeps the items that pass a test (select) or fail it (reject).
func filterSelect(v any, a arguments, name string) (any, error) {
	return a.mapped(v, func() (eachFunc, error) {
		args := a.list
		var attribute any
		if strings.HasSuffix(name, "attr") {
			if len(args) == 0 {
				return nil, errors.New("an attribute is missing")
			}
			attribute, args = args[0], args[1:]
		}
		var test testFunc // if nil, test whether the item is true
		if len(args) > 0 {
			if test = tests[a.text(args[0])]; test == nil {
				return nil, fmt.Errorf("test %q is not supported", a.text(args[0]))
			}
			args = args[1:]
		}
		return func(it any) (any, bool, error) {
			subject := it
			if attribute != nil {
				subject = a.item(it, attribute)
			}
			ok, err := truthy(subject), error(nil)
			if test != nil {
				ok, err = test(a.budget, subject, args)
			}
			return it, ok != strings.HasPrefix(name, "reject"), err
		}, nil
	}), nil
}
