package plain

import (
	"encoding/json"
	"errors"
)

// A TextOr is a text, or a list of parts: the form in which most protocols have
// what a message says.
type TextOr[T any] struct {
	Text  string
	Parts []T // nil means Text
}

// MarshalJSON implements json.Marshaler.
func (c TextOr[T]) MarshalJSON() ([]byte, error) {
	if c.Parts != nil {
		return Marshal(c.Parts)
	}
	return Marshal(c.Text)
}

// UnmarshalJSON implements json.Unmarshaler.
func (c *TextOr[T]) UnmarshalJSON(b []byte) error {
	*c = TextOr[T]{}
	if json.Unmarshal(b, &c.Text) == nil {
		return nil
	}
	if json.Unmarshal(b, &c.Parts) == nil {
		return nil
	}
	return errors.New("content must be a text or a list of parts")
}
