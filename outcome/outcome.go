// Package outcome is what a run came to, whoever tells it: those who measured,
// or those who read it back from disk. Reports are made of nothing else.
package outcome

import (
	"iter"
	"slices"
	"time"

	"tacho"
	"tacho/instrument"
	"tacho/metric"
)

// A Run is one run and its levels, in the order of their coordinates.
type Run struct {
	About
	Notes  []metric.Reason `json:"notes,omitempty"` // on the run as a whole
	Levels []Level         `json:"levels"`
	// HeldProbe is the index of the level that held at the limit that a search found.
	HeldProbe *int `json:"held_probe,omitempty"`

	Records func() iter.Seq2[*tacho.Record, error] `json:"-"` // the requests of all levels in one pass, probes left out; nil where they are not at hand
}

const limitCode = "limit"

// LimitNote is the note of a run that searched for the limit of a server.
func LimitNote(sentence string) metric.Reason {
	return metric.Reason{Code: limitCode, Severity: metric.Note, Text: sentence}
}

// IsLimit says whether a note is such a one.
func IsLimit(note metric.Reason) bool { return note.Code == limitCode }

const recordsCode = "records"

// RecordsReason is the reason against a level whose records are not those that it
// had when it ended: latencies of the others may be far off.
func RecordsReason(mismatch string) metric.Reason {
	return metric.Reason{Code: recordsCode, Severity: metric.Invalid, Text: mismatch +
		": copy the run again from where it was made, or measure the level again (tacho bench --resume)"}
}

// LacksRecords is the text of such a reason; empty if the level has none.
func (l *Level) LacksRecords() string {
	for _, r := range l.Summary.Config.Known {
		if r.Code == recordsCode {
			return r.Text
		}
	}
	return ""
}

// About is what a run was.
type About struct {
	Name      string    `json:"name,omitempty"` // of its directory
	Tool      string    `json:"tool,omitempty"`
	Version   string    `json:"version,omitempty"`
	Began     time.Time `json:"began"`
	Label     string    `json:"label,omitempty"`
	Backend   string    `json:"backend,omitempty"`
	Model     string    `json:"model,omitempty"`
	Tokenizer string    `json:"tokenizer,omitempty"` // as it was asked for
	Dataset   string    `json:"dataset,omitempty"`
	URLs      []string  `json:"urls,omitempty"`
	GPUs      string    `json:"gpus,omitempty"`
	Metadata  []Field   `json:"metadata,omitempty"` // entries that the user gave
	Varies    string    `json:"varies,omitempty"`   // the options that are lists: "num-prompts"
	Swept     string    `json:"swept,omitempty"`    // the option that found its own levels
	Args      []string  `json:"args,omitempty"`     // the command line, secrets taken out
	Host      string    `json:"host,omitempty"`     // the machine the load came from
}

// UnknownBuild says whether a version does not tell which build it was: builds without a
// commit all have the same one.
func UnknownBuild(version string) bool { return version == "(devel)" || version == "unknown" }

// A Field is one named fact.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Level is one part of a run, with fixed load: what it was, and what it came
// to.
type Level struct {
	Setting
	Summary metric.Summary `json:"summary"`

	Samples []instrument.Sample                    `json:"-"` // what metrics pages said meanwhile
	Records func() iter.Seq2[*tacho.Record, error] `json:"-"` // its requests, probes left out; nil where they are not at hand
}

// A Setting is what sets a level apart, and when it began.
type Setting struct {
	Index       int         `json:"index"`
	Coordinates Coordinates `json:"coordinates,omitempty"`        // its value of each option that is a list
	Repeat      int         `json:"repeat,omitempty"`             // which of several that are alike it is, from 1
	Name        string      `json:"name,omitempty"`               // as flags: "--num-prompts 4"
	Value       string      `json:"value,omitempty"`              // the same, short: "4"
	Prompts     int         `json:"num_prompts,omitempty"`        // 0 is no end
	Rate        float64     `json:"request_rate_per_s,omitempty"` // 0 is all at once
	Concurrency int         `json:"max_concurrency,omitempty"`    // 0 is no limit
	Ramp        *Ramp       `json:"ramp,omitempty"`
	Epoch       time.Time   `json:"epoch"`       // the times of its records count from here
	Monotonic   float64     `json:"monotonic_s"` // the monotonic clock at Epoch
}

// A Ramp is a request rate that rises.
type Ramp struct {
	Strategy string       `json:"strategy"` // linear or exponential
	StartRPS int          `json:"start_rps"`
	EndRPS   int          `json:"end_rps"`
	Changes  []RateChange `json:"changes"`
}

// A RateChange is a moment at which a rising rate passed a whole number.
type RateChange struct {
	RPS int           `json:"rps"`
	At  time.Duration `json:"at_ns"` // from the epoch
}

// Predicted says whether a model computed any of the run.
func (r *Run) Predicted() bool {
	return slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Summary.Config.Predicted })
}
