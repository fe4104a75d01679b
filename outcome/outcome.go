// Package outcome defines the results of a run. The code that measures a run and the code that reads a
// stored run both create an outcome, and reports use nothing else.
package outcome

import (
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/metric"
)

// A Run is one run and its levels, in the order of their coordinates.
type Run struct {
	About
	Notes  []metric.Reason `json:"notes,omitempty"` // on the run as a whole
	Levels []Level         `json:"levels"`
	// HeldProbe is the index of the level that met the limit found by a search.
	HeldProbe *int `json:"held_probe,omitempty"`

	Records func() iter.Seq2[*tacho.Record, error] `json:"-"` // the requests of all levels in one pass, without probes; nil if not available
}

const limitCode = "limit"

// LimitNote returns the note of a run that searched for the limit of a server.
func LimitNote(sentence string) metric.Reason {
	return metric.Reason{Code: limitCode, Severity: metric.Note, Text: sentence}
}

// IsLimit reports whether a note is a LimitNote.
func IsLimit(note metric.Reason) bool { return note.Code == limitCode }

const recordsCode = "records"

// RecordsReason returns the reason for a level whose stored records differ from the records it had when
// it ended. The latencies of the remaining records may be far off.
func RecordsReason(mismatch string) metric.Reason {
	return metric.Reason{Code: recordsCode, Severity: metric.Invalid, Text: mismatch +
		": copy the run again from its origin, or use tacho bench --resume"}
}

// LacksRecords returns the text of the RecordsReason of a level, or "" if there is none.
func (l *Level) LacksRecords() string {
	for _, r := range l.Summary.Config.Known {
		if r.Code == recordsCode {
			return r.Text
		}
	}
	return ""
}

// About describes a run.
type About struct {
	Name      string    `json:"name,omitempty"` // name of the directory
	Tool      string    `json:"tool,omitempty"`
	Version   string    `json:"version,omitempty"`
	Began     time.Time `json:"began"`
	Label     string    `json:"label,omitempty"`
	Backend   string    `json:"backend,omitempty"`
	Engine    string    `json:"engine,omitempty"` // of the first server, if it names itself
	Model     string    `json:"model,omitempty"`
	Tokenizer string    `json:"tokenizer,omitempty"` // as configured
	Dataset   string    `json:"dataset,omitempty"`
	URLs      []string  `json:"urls,omitempty"`
	GPUs      string    `json:"gpus,omitempty"`
	Metadata  []Field   `json:"metadata,omitempty"` // entries given by the user
	Varies    string    `json:"varies,omitempty"`   // the options that are lists: "num-prompts"
	Swept     string    `json:"swept,omitempty"`    // the option whose levels a sweep chose
	Args      []string  `json:"args,omitempty"`     // the command line without secrets
	Host      string    `json:"host,omitempty"`     // the machine that sent the load
}

// UnknownBuild reports whether a version does not identify a build. All builds without a commit have
// the same version.
func UnknownBuild(version string) bool { return version == "(devel)" || version == "unknown" }

// A Field is one named fact.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Level is one part of a run with a fixed load: its setting and its results.
type Level struct {
	Setting
	Summary metric.Summary `json:"summary"`

	Samples []instrument.Sample                    `json:"-"` // values of the metrics pages during the level
	Records func() iter.Seq2[*tacho.Record, error] `json:"-"` // its requests, without probes; nil if not available
}

// A Setting identifies a level and its start time.
type Setting struct {
	Index       int         `json:"index"`
	Coordinates Coordinates `json:"coordinates,omitempty"`        // the value of each list option
	Repeat      int         `json:"repeat,omitempty"`             // number of the repeat, from 1
	Name        string      `json:"name,omitempty"`               // as flags: "--num-prompts 4"
	Value       string      `json:"value,omitempty"`              // short form of Name: "4"
	Prompts     int         `json:"num_prompts,omitempty"`        // 0 means no limit
	Rate        float64     `json:"request_rate_per_s,omitempty"` // 0 means no pacing
	Concurrency int         `json:"max_concurrency,omitempty"`    // 0 means no limit
	Ramp        *Ramp       `json:"ramp,omitempty"`
	Epoch       time.Time   `json:"epoch"`       // origin of the times in its records
	Monotonic   float64     `json:"monotonic_s"` // the monotonic clock at Epoch
}

// A Ramp is a rising request rate.
type Ramp struct {
	Strategy string       `json:"strategy"` // linear or exponential
	StartRPS int          `json:"start_rps"`
	EndRPS   int          `json:"end_rps"`
	Changes  []RateChange `json:"changes"`
}

// A RateChange is the time at which a rising rate passed a whole number.
type RateChange struct {
	RPS int           `json:"rps"`
	At  time.Duration `json:"at_ns"` // from the epoch
}

// Predicted reports whether a model computed any part of the run.
func (r *Run) Predicted() bool {
	return slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Summary.Config.Predicted })
}

// Simulated reports whether a simulated engine served any part of a measured run.
func (r *Run) Simulated() bool {
	by := func(a *About) bool {
		return slices.ContainsFunc(a.URLs, func(url string) bool { return strings.HasPrefix(url, SimulatedEngine) })
	}
	return !r.Predicted() && (by(&r.About) || slices.ContainsFunc(r.Levels, func(l Level) bool { return l.Summary.Config.Simulated || by(r.Of(&l)) }))
}

// Invalid returns the number of INVALID levels.
func (r *Run) Invalid() (n int) {
	for i := range r.Levels {
		if r.Levels[i].Summary.Verdict.Severity == metric.Invalid {
			n++
		}
	}
	return n
}
