package wire

import (
	"bytes"
	"encoding/json"
	"errors"
)

// Marshal is json.Marshal without HTML escaping of < > &, which would change the length of the request.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}

// A TextOr is a text or a list of parts. Most protocols use this form for the content of a message.
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
	return errors.New("content must be a string or a list of parts")
}
