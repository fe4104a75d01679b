package backend

import (
	"tacho/internal/jsonscan"
)

// A tgiDelta is what a client wants to know of one stream event. Its slices are
// valid until the next Decode.
type tgiDelta struct {
	Token   bool   // the event brings a token, perhaps without a text
	Text    []byte // of the token
	Special bool   // the token is no part of the generated text
	Last    bool   // the stream ends here, and Whole is all of it
	Whole   []byte
	Finish  []byte // the finish reason, if details were asked for
	Input   int    // tokens in the prompt, as the server counts
	Output  int    // tokens generated, as the server counts
	Counted bool   // Input and Output are given
	Error   []byte // the server's words for what went wrong
	Failed  bool   // the event is an error

	scan jsonscan.Scanner
}

// Decode reads an event. It fails if the event is not a JSON object; fields of
// the wrong type count as absent.
func (d *tgiDelta) Decode(event []byte) error {
	*d = tgiDelta{
		Text: d.Text[:0], Whole: d.Whole[:0], Finish: d.Finish[:0], Error: d.Error[:0],
		scan: d.scan,
	}
	return d.scan.Document(event, d.member)
}

func (d *tgiDelta) member(key []byte) {
	s := &d.scan
	switch string(key) {
	case "token":
		d.Token = s.Object(d.token)
	case "generated_text":
		d.Whole, d.Last = s.String(d.Whole[:0])
	case "details":
		d.Counted = s.Object(d.details)
	case "error":
		d.Error, d.Failed = s.Failure(d.Error[:0])
	}
}

func (d *tgiDelta) token(key []byte) {
	s := &d.scan
	switch string(key) {
	case "text":
		d.Text, _ = s.String(d.Text[:0])
	case "special":
		d.Special = s.Type() == 't'
	}
}

func (d *tgiDelta) details(key []byte) {
	s := &d.scan
	switch string(key) {
	case "finish_reason":
		d.Finish, _ = s.String(d.Finish[:0])
	case "generated_tokens":
		d.Output = s.Natural()
	case "input_length":
		d.Input = s.Natural()
	}
}
