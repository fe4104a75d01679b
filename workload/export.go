package workload

import (
	"encoding/json"
	"io"

	"github.com/tacho-bench/tacho"
)

// WriteLine writes a session as a line for the custom dataset.
func WriteLine(w io.Writer, s *tacho.Session) error {
	var e entry
	if len(s.Turns) == 1 {
		e = entryOf(&s.Turns[0].Request)
	} else {
		for i := range s.Turns {
			t := &s.Turns[i]
			one := entryOf(&t.Request)
			one.ThinkS, one.AtS, one.After = t.Think.Seconds(), t.At.Seconds(), t.After
			e.Turns = append(e.Turns, one)
		}
	}
	enc := json.NewEncoder(w) // Encode ends the line
	enc.SetEscapeHTML(false)
	return enc.Encode(&e)
}

func entryOf(q *tacho.Request) entry {
	e := entry{
		IDs: q.Input.IDs, Messages: q.Input.Messages, OutputTokens: q.MaxTokens, Extra: q.Extra, Model: q.Model, IgnoreEOS: q.IgnoreEOS,
		Labels: pairsOf(q.Labels), Headers: pairsOf(q.Header),
	}
	if e.Scorer = q.Scorer; q.Reference != "" {
		e.Reference = asJSON(q.Reference)
	}
	if q.Input.Audio != nil {
		e.Audio = audioURL(q.Input.Audio)
	}
	if q.Input.Text != "" {
		e.Prompt = &q.Input.Text
	}
	return e
}

func pairsOf(labels tacho.Labels) map[string]string {
	if labels == nil {
		return nil
	}
	out := map[string]string{}
	for _, l := range labels {
		out[l.Key] = l.Value
	}
	return out
}
