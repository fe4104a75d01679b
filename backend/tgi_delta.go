package backend

import (
	"github.com/tacho-bench/tacho/internal/jsonscan"
)

// A tgiDelta is the decoded content of one stream event. The slices are valid until the next Decode.
type tgiDelta struct {
	Token   bool   // the event carries a token, possibly without text
	Text    []byte // text of the token
	Special bool   // the token is not part of the generated text
	Scored  bool   // the token has a log probability
	Last    bool   // the stream ends with this event, and Whole is the complete text
	Whole   []byte
	Finish  []byte // finish reason, if the request asked for details
	Input   int    // prompt tokens counted by the server
	Output  int    // output tokens counted by the server
	Counted bool   // Input and Output are set
	Error   []byte // error message of the server
	Failed  bool   // the event is an error

	scan jsonscan.Scanner
}

// Decode decodes an event. Decode fails if the event is not a JSON object. Fields of the wrong type are treated as
// absent.
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
	case "logprob":
		d.Scored = s.Type() != 'n'
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
