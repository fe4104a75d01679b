package jinja

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// method returns a method of a string, list or mapping, or nil if there is no such
// method.
func method(of any, name string) *callable {
	var f func(args arguments) (any, error)
	switch of := of.(type) {
	case string:
		m := stringMethods[name]
		if name == "format" { // braces looks up methods itself
			m = func(s string, a arguments) (any, error) { return a.braces(s, a) }
		}
		if m != nil {
			f = func(a arguments) (any, error) { return m(of, a) }
		}
	case *Dict:
		if m := dictMethods[name]; m != nil {
			f = func(a arguments) (any, error) { return m(of, a) }
		}
	case *list:
		if m := listMethods[name]; m != nil {
			f = func(a arguments) (any, error) { return m(of, a) }
		}
	}
	if f == nil {
		return nil
	}
	return &callable{name, func(s *state, args []any, kwargs map[string]any) (any, error) {
		s.value(of)
		v, err := f(arguments{s.budget, args, kwargs})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return v, nil
	}}
}

// isPythonSpace reports whether str.strip removes r.
func isPythonSpace(r rune) bool { return unicode.IsSpace(r) || r >= 0x1c && r <= 0x1f }

type stringMethod func(s string, a arguments) (any, error)

var stringMethods = map[string]stringMethod{
	"strip": func(s string, a arguments) (any, error) {
		return strip(s, a, strings.TrimFunc), nil
	},
	"lstrip": func(s string, a arguments) (any, error) {
		return strip(s, a, strings.TrimLeftFunc), nil
	},
	"rstrip": func(s string, a arguments) (any, error) {
		return strip(s, a, strings.TrimRightFunc), nil
	},
	"upper":      func(s string, _ arguments) (any, error) { return strings.ToUpper(s), nil },
	"lower":      func(s string, _ arguments) (any, error) { return strings.ToLower(s), nil },
	"title":      func(s string, _ arguments) (any, error) { return title(s), nil },
	"capitalize": func(s string, _ arguments) (any, error) { return capitalize(s), nil },
	"startswith": func(s string, a arguments) (any, error) { return affix(s, a, strings.HasPrefix) },
	"endswith":   func(s string, a arguments) (any, error) { return affix(s, a, strings.HasSuffix) },
	"removeprefix": func(s string, a arguments) (any, error) {
		return strings.TrimPrefix(s, a.text(a.get(0, "prefix", ""))), nil
	},
	"removesuffix": func(s string, a arguments) (any, error) {
		return strings.TrimSuffix(s, a.text(a.get(0, "suffix", ""))), nil
	},
	"replace": func(s string, a arguments) (any, error) { return filterReplace(nil, s, a) },
	"split":   func(s string, a arguments) (any, error) { return split(s, a, false) },
	"rsplit":  func(s string, a arguments) (any, error) { return split(s, a, true) },
	"join": func(s string, a arguments) (any, error) {
		items, err := a.iterate(a.get(0, "iterable", nil))
		parts := make([]string, len(items))
		for i, it := range items {
			parts[i] = a.text(it)
		}
		return a.join(parts, s), err
	},
	"find":  func(s string, a arguments) (any, error) { return find(s, a, strings.Index), nil },
	"rfind": func(s string, a arguments) (any, error) { return find(s, a, strings.LastIndex), nil },
	"index": func(s string, a arguments) (any, error) {
		if i := find(s, a, strings.Index); i >= 0 {
			return i, nil
		}
		return nil, errors.New("substring not found")
	},
	"count": func(s string, a arguments) (any, error) {
		return int64(strings.Count(s, a.text(a.get(0, "sub", "")))), nil
	},
	"splitlines": splitLines,
	"isdigit":    func(s string, _ arguments) (any, error) { return s != "" && !strings.ContainsFunc(s, notDigit), nil },
	"isspace": func(s string, _ arguments) (any, error) {
		return s != "" && strings.TrimFunc(s, isPythonSpace) == "", nil
	},
	"isalpha": func(s string, _ arguments) (any, error) {
		return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) }), nil
	},
	"isupper": func(s string, _ arguments) (any, error) { return isCase(s, unicode.IsLower, unicode.IsUpper), nil },
	"islower": func(s string, _ arguments) (any, error) { return isCase(s, unicode.IsUpper, unicode.IsLower), nil },
}

func notDigit(r rune) bool { return !unicode.IsDigit(r) }

func strip(s string, a arguments, trim func(string, func(rune) bool) string) string {
	if set, ok := a.get(0, "chars", nil).(string); ok {
		return trim(s, in(set))
	}
	return trim(s, isPythonSpace)
}

// in returns a function that reports whether a character is one of chars. It takes the same time for any number of
// chars.
func in(chars string) func(rune) bool {
	set := map[rune]bool{}
	for _, r := range chars {
		set[r] = true
	}
	return func(r rune) bool { return set[r] }
}

// affix reports whether s starts or ends with a text, or with one of a tuple of texts.
func affix(s string, a arguments, has func(string, string) bool) (any, error) {
	switch v := a.get(0, "prefix", nil).(type) {
	case string:
		return has(s, v), nil
	case *list:
		return slices.ContainsFunc(v.items, func(p any) bool { return has(s, a.text(p)) }), nil
	}
	return nil, errors.New("a string is needed")
}

func find(s string, a arguments, index func(string, string) int) int64 {
	i := index(s, a.text(a.get(0, "sub", "")))
	if i < 0 {
		return -1
	}
	return int64(len([]rune(s[:i])))
}

// split splits a string at a separator, or at white space if no separator is given.
func split(s string, a arguments, fromRight bool) (any, error) {
	limit := -1
	if n, ok := integer(a.get(1, "maxsplit", nil)); ok && n >= 0 {
		limit = int(n)
	}
	var parts []string
	separator, ok := a.get(0, "sep", nil).(string)
	a.spend(itemCost * len(s)) // the parts, and a copy of the text
	switch {
	case ok && separator == "":
		return nil, errors.New("empty separator")
	case !ok:
		parts = splitSpaces(s, limit, fromRight)
	case fromRight && limit >= 0:
		parts = strings.Split(s, separator)
		if n := len(parts) - limit; n > 1 {
			parts = append([]string{strings.Join(parts[:n], separator)}, parts[n:]...)
		}
	case limit >= 0:
		parts = strings.SplitN(s, separator, limit+1)
	default:
		parts = strings.Split(s, separator)
	}
	return stringList(parts), nil
}

func splitSpaces(s string, limit int, fromRight bool) []string {
	fields := strings.FieldsFunc(s, isPythonSpace)
	if limit < 0 || len(fields) <= limit {
		return fields
	}
	var parts []string
	// The last part keeps the white space at its far end.
	if fromRight {
		s = strings.TrimRightFunc(s, isPythonSpace)
	} else {
		s = strings.TrimLeftFunc(s, isPythonSpace)
	}
	for range limit {
		if fromRight {
			i := strings.LastIndexFunc(s, isPythonSpace)
			parts = append(parts, strings.TrimLeftFunc(s[i:], isPythonSpace))
			s = strings.TrimRightFunc(s[:i], isPythonSpace)
		} else {
			i := strings.IndexFunc(s, isPythonSpace)
			parts = append(parts, s[:i])
			s = strings.TrimLeftFunc(s[i:], isPythonSpace)
		}
	}
	parts = append(parts, s)
	if fromRight {
		slices.Reverse(parts)
	}
	return parts
}

func splitLines(s string, a arguments) (any, error) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	if s = strings.TrimSuffix(s, "\n"); s == "" {
		return &list{items: []any{}}, nil
	}
	a.spendTimes(strings.Count(s, "\n"), 2*itemCost)
	return stringList(strings.Split(s, "\n")), nil
}

func stringList(parts []string) *list {
	l := &list{items: make([]any, len(parts))}
	for i, p := range parts {
		l.items[i] = p
	}
	return l
}

type dictMethod func(d *Dict, a arguments) (any, error)

var dictMethods = map[string]dictMethod{
	"get": func(d *Dict, a arguments) (any, error) {
		key := a.get(0, "key", nil)
		if v, ok := d.values[key]; hashable(key) && ok {
			return v, nil
		}
		return a.get(1, "default", nil), nil
	},
	"keys": func(d *Dict, _ arguments) (any, error) { return &list{items: slices.Clone(d.keys)}, nil },
	"values": func(d *Dict, _ arguments) (any, error) {
		l := &list{items: make([]any, len(d.keys))}
		for i, k := range d.keys {
			l.items[i] = d.values[k]
		}
		return l, nil
	},
	"items": func(d *Dict, a arguments) (any, error) { return a.dictItems(d), nil },
}

type listMethod func(l *list, a arguments) (any, error)

var listMethods = map[string]listMethod{
	"index": func(l *list, a arguments) (any, error) {
		i := slices.IndexFunc(l.items, func(v any) bool { return a.equal(v, a.get(0, "value", nil)) })
		if i < 0 {
			return nil, errors.New("the value is not in the list")
		}
		return int64(i), nil
	},
	"count": func(l *list, a arguments) (any, error) {
		n := int64(0)
		for _, v := range l.items {
			if a.equal(v, a.get(0, "value", nil)) {
				n++
			}
		}
		return n, nil
	},
}
