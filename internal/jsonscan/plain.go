package jsonscan

import (
	"encoding"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
)

// Plain is the text of an error, with what encoding/json says of Go's types in
// the words of somebody who wrote the JSON.
func Plain(err error) string {
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

// inJSON is what a value of a type is in JSON.
func inJSON(t reflect.Type) string {
	if reflect.PointerTo(t).Implements(reflect.TypeFor[encoding.TextUnmarshaler]()) {
		return "a text"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return inJSON(t.Elem())
	case reflect.String:
		return "a text"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "a whole number" // of the size that it may have
}
