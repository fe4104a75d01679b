// Package plain encodes JSON with < > & as they are: a prompt is no web page,
// and escaping would change the length of what is sent.
package plain

import (
	"bytes"
	"encoding/json"
)

// Marshal is json.Marshal without the escapes that are for web pages.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), nil
}
