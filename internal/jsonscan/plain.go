package jsonscan

import (
	"encoding/json"
	"errors"
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
	plain := "a value of another type is expected than this " + typed.Value
	if typed.Field != "" {
		plain = typed.Field + ": " + plain
	}
	return strings.ReplaceAll(text, typed.Error(), plain)
}
