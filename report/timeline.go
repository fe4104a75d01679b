package report

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"errors"
	"html/template"
	"io"
	"iter"

	"tacho"
	"tacho/outcome"
)

//go:embed timeline.html
var timelinePage string

var timelineTemplate = template.Must(template.New("timeline").Parse(timelinePage))

var timelineFormat = Format{
	Name: "timeline", Doc: "an HTML page with every request of one level on a time axis",
	Render: func(w io.Writer, r *Report) error {
		var found *outcome.Level
		for _, level := range r.levels() {
			if found != nil {
				return errors.New("a timeline is of one level: name it with --level")
			}
			found = level
		}
		if found == nil || found.Records == nil {
			return errors.New("a timeline is drawn from records, and there are none here")
		}
		limits := r.Thresholds
		if limits == nil {
			limits = []float64{25, 50}
		}
		return timeline(w, found.Records(), limits)
	},
}

// timeline draws every request as a bar on a time axis, from when it was due
// to its end: the wait in the client, the time to the first token, and then one
// piece for each gap between tokens, coloured by the thresholds (milliseconds)
// it passes. The page needs nothing but a browser.
func timeline(w io.Writer, records iter.Seq2[*tacho.Record, error], thresholds []float64) error {
	type bar struct {
		ID     string    `json:"id"`
		Due    float64   `json:"due"`
		Sent   float64   `json:"sent"`
		End    float64   `json:"end"`
		Tokens []float64 `json:"tokens"`
		Output int       `json:"output"`
		Failed string    `json:"failed,omitempty"`
	}
	bars := []bar{}
	for r, err := range records {
		if err != nil {
			return err
		}
		b := bar{ID: r.ID, Due: seconds(r.Due), Sent: seconds(r.Sent), End: seconds(r.End), Output: r.Output, Tokens: make([]float64, len(r.Events))}
		if r.Sent == tacho.Never {
			b.Sent = b.End
		}
		for i, e := range r.Events {
			b.Tokens[i] = seconds(e.At)
		}
		if !r.OK() {
			b.Failed = r.Failure.Error()
		}
		bars = append(bars, b)
	}
	data, err := json.Marshal(struct {
		Thresholds []float64 `json:"thresholds"`
		Bars       []bar     `json:"bars"`
	}{thresholds, bars})
	if err != nil {
		return err
	}
	out := bufio.NewWriter(w)
	// json.Marshal writes <, > and & as escapes, so the data cannot end the script it stands in.
	if err := timelineTemplate.Execute(out, template.JS(data)); err != nil { //nolint:gosec // see above
		return err
	}
	return out.Flush()
}
