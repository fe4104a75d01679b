package jinja

import (
	"errors"
	"strings"
	"unicode"
)

type testFunc func(b *budget, v any, args []any) (bool, error)

// tests are the tests available after "is".
var tests = map[string]testFunc{
	"defined":   func(b *budget, v any, _ []any) (bool, error) { _, missing := v.(undefined); return !missing, nil },
	"undefined": func(b *budget, v any, _ []any) (bool, error) { _, missing := v.(undefined); return missing, nil },
	"none":      func(b *budget, v any, _ []any) (bool, error) { return v == nil, nil },
	"string":    isKind[string],
	"mapping":   isKind[*Dict],
	"boolean":   isKind[bool],
	"float":     isKind[float64],
	"integer":   isKind[int64],
	"callable":  isKind[*callable],
	"true":      func(b *budget, v any, _ []any) (bool, error) { return v == true, nil },
	"false":     func(b *budget, v any, _ []any) (bool, error) { return v == false, nil },
	"number":    func(b *budget, v any, _ []any) (bool, error) { _, ok := number(v); return ok, nil },
	"iterable":  func(b *budget, v any, _ []any) (bool, error) { return isSequence(v) || isGenerator(v), nil },
	"sequence":  func(b *budget, v any, _ []any) (bool, error) { return isSequence(v), nil },
	"lower": func(b *budget, v any, _ []any) (bool, error) {
		return isCase(b.text(v), unicode.IsUpper, unicode.IsLower), nil
	},
	"upper": func(b *budget, v any, _ []any) (bool, error) {
		return isCase(b.text(v), unicode.IsLower, unicode.IsUpper), nil
	},
	"odd":         func(b *budget, v any, _ []any) (bool, error) { return b.remainder(v, int64(2), 1) },
	"even":        func(b *budget, v any, _ []any) (bool, error) { return b.remainder(v, int64(2), 0) },
	"divisibleby": withArgument(func(b *budget, v, by any) (bool, error) { return b.remainder(v, by, 0) }),
	"in":          withArgument(func(b *budget, v, in any) (bool, error) { return b.contains(in, v) }),
	"sameas":      withArgument(func(b *budget, v, arg any) (bool, error) { return b.equal(v, arg), nil }),
	"eq":          comparing("=="),
	"equalto":     comparing("=="),
	"ne":          comparing("!="),
	"lt":          comparing("<"),
	"lessthan":    comparing("<"),
	"gt":          comparing(">"),
	"greaterthan": comparing(">"),
	"le":          comparing("<="),
	"ge":          comparing(">="),
}

func isSequence(v any) bool {
	switch v.(type) {
	case *list, *Dict, undefined, string:
		return true
	}
	return false
}

func isGenerator(v any) bool {
	_, ok := v.(*generator)
	return ok
}

func isKind[T any](_ *budget, v any, _ []any) (bool, error) {
	_, ok := v.(T)
	return ok, nil
}

// isCase reports whether s has letters of the wanted case and none of the other case.
func isCase(s string, other, wanted func(rune) bool) bool {
	return strings.ContainsFunc(s, wanted) && !strings.ContainsFunc(s, other)
}

func withArgument(f func(b *budget, v, arg any) (bool, error)) testFunc {
	return func(b *budget, v any, args []any) (bool, error) {
		if len(args) != 1 {
			return false, errors.New("one argument is needed")
		}
		return f(b, v, args[0])
	}
}

func comparing(op string) testFunc {
	return withArgument(func(b *budget, v, arg any) (bool, error) { return b.compareValues(op, v, arg) })
}

func (b *budget) remainder(v, by any, want int64) (bool, error) {
	got, err := arithmetic("%", v, by)
	return err == nil && b.equal(got, want), err
}
