package jsonscan

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// ErrorText returns the text of err. If err contains a type error of encoding/json, ErrorText replaces the Go types
// with JSON types, for readers who wrote the JSON.
func ErrorText(err error) string {
	text := err.Error()
	var typed *json.UnmarshalTypeError
	if !errors.As(err, &typed) {
		return text
	}
	plain := "want " + inJSON(typed.Type) + ", not this " + typed.Value
	if typed.Field != "" {
		plain = typed.Field + ": " + plain
	}
	return strings.ReplaceAll(text, typed.Error(), plain)
}

// inJSON names the JSON type for a Go type.
func inJSON(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a string"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return inJSON(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number" // also for an integer out of range
}
