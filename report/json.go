package report

import (
	"encoding/json"
	"io"
	"math"

	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

var jsonFormat = Format{
	Name: "json", Ext: "json", Doc: "everything, for programs; null means not measured",
	Render: func(w io.Writer, r *Report) error { return writeIndented(w, r.Document()) },
}

// schema names the format of the JSON. It changes if readers would break.
const schema = "tacho.report/1"

// Document returns the report as the value that the JSON format encodes.
func (r *Report) Document() any {
	type run struct {
		outcome.Run
		Conclusion conclusion.Conclusion `json:"conclusion"`
		Repeats    []outcome.Repeats     `json:"repeats,omitempty"`
	}
	out := struct {
		Schema string `json:"schema"`
		Runs   []run  `json:"runs"`
	}{Schema: schema}
	for i := range r.Runs {
		out.Runs = append(out.Runs, run{r.Runs[i], conclusion.Of(&r.Runs[i]), r.Runs[i].Repeats()})
	}
	return out
}

func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

type jsonBlock struct {
	Line    int        `json:"line"`
	Style   string     `json:"style"` // empty if the generation is unknown
	Before  string     `json:"text_before"`
	Values  jsonValues `json:"values"`
	Unknown []string   `json:"unknown,omitempty"`
}

func renderFileJSON(w io.Writer, f *File) error {
	out := struct {
		Schema string      `json:"schema"`
		Blocks []jsonBlock `json:"blocks"`
		After  string      `json:"text_after"`
		Notes  []FileNote  `json:"notes,omitempty"`
	}{Schema: "tacho.blocks/1", After: f.After, Notes: f.Notes}
	for _, b := range f.Blocks {
		out.Blocks = append(out.Blocks, jsonBlock{b.Line, b.Style(), b.Before, jsonValues{b}, b.Unknown()})
	}
	return writeIndented(w, out)
}

// jsonValues encodes the numbers of a block as one object, in their order.
type jsonValues struct{ block *Block }

// MarshalJSON implements json.Marshaler.
func (v jsonValues) MarshalJSON() ([]byte, error) {
	text := []byte("{")
	for value := range v.block.Values() {
		if len(text) > 1 {
			text = append(text, ',')
		}
		key, err := json.Marshal(value.Key)
		if err != nil {
			return nil, err
		}
		text = append(append(text, key...), ':')
		// The reference sometimes printed nan and inf, which JSON cannot represent.
		if math.IsNaN(value.Number) || math.IsInf(value.Number, 0) {
			text = append(text, "null"...)
			continue
		}
		number, err := json.Marshal(value.Number)
		if err != nil {
			return nil, err
		}
		text = append(text, number...)
	}
	return append(text, '}'), nil
}
