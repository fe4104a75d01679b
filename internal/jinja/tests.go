package jinja

import (
	"errors"
	"strings"
	"unicode"
)

type testFunc func(v any, args []any) (bool, error)

// tests are what may follow is.
var tests = map[string]testFunc{
	"defined":     func(v any, _ []any) (bool, error) { _, missing := v.(undefined); return !missing, nil },
	"undefined":   func(v any, _ []any) (bool, error) { _, missing := v.(undefined); return missing, nil },
	"none":        func(v any, _ []any) (bool, error) { return v == nil, nil },
	"string":      isKind[string],
	"mapping":     isKind[*Dict],
	"boolean":     isKind[bool],
	"float":       isKind[float64],
	"integer":     isKind[int64],
	"callable":    isKind[*callable],
	"true":        func(v any, _ []any) (bool, error) { return v == true, nil },
	"false":       func(v any, _ []any) (bool, error) { return v == false, nil },
	"number":      func(v any, _ []any) (bool, error) { _, ok := number(v); return ok, nil },
	"iterable":    func(v any, _ []any) (bool, error) { return isSequence(v) || isGenerator(v), nil },
	"sequence":    func(v any, _ []any) (bool, error) { return isSequence(v), nil },
	"lower":       func(v any, _ []any) (bool, error) { return isCase(text(v), unicode.IsUpper, unicode.IsLower), nil },
	"upper":       func(v any, _ []any) (bool, error) { return isCase(text(v), unicode.IsLower, unicode.IsUpper), nil },
	"odd":         func(v any, _ []any) (bool, error) { return remainder(v, int64(2), 1) },
	"even":        func(v any, _ []any) (bool, error) { return remainder(v, int64(2), 0) },
	"divisibleby": withArgument(func(v, by any) (bool, error) { return remainder(v, by, 0) }),
	"in":          withArgument(func(v, in any) (bool, error) { return contains(in, v) }),
	"sameas":      withArgument(func(a, b any) (bool, error) { return equal(a, b), nil }),
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

func isKind[T any](v any, _ []any) (bool, error) {
	_, ok := v.(T)
	return ok, nil
}

// isCase says that s has letters of the case wanted and none of the other.
func isCase(s string, other, wanted func(rune) bool) bool {
	return strings.ContainsFunc(s, wanted) && !strings.ContainsFunc(s, other)
}

func withArgument(f func(v, arg any) (bool, error)) testFunc {
	return func(v any, args []any) (bool, error) {
		if len(args) != 1 {
			return false, errors.New("one argument is needed")
		}
		return f(v, args[0])
	}
}

func comparing(op string) testFunc {
	return withArgument(func(v, arg any) (bool, error) { return compareValues(op, v, arg) })
}

func remainder(v, by any, want int64) (bool, error) {
	got, err := arithmetic("%", v, by)
	return err == nil && equal(got, want), err
}
