// Package report shows summaries: one file for each format. A format is a pure
// function of a Report; it reads no clock, no environment and no terminal, and
// it computes nothing that package metric has not computed.
//
// The package also reads reports of this family that others have written
// (Parse) and prints them again, byte for byte.
package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"tacho/metric"
)

// A Report is everything a format may print.
type Report struct {
	Title  string    `json:"title"`
	Began  time.Time `json:"began"`
	Meta   []Field   `json:"meta,omitempty"`   // facts worth repeating: target, model, dataset, version
	Varies string    `json:"varies,omitempty"` // what differs between the stages: "concurrency", "req/s"
	Style  string    `json:"-"`                // of the classic block: one of Styles; empty is the current one
	Stages []Stage   `json:"stages"`
}

// A Field is one named fact.
type Field struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// A Stage is the part of a Report about one stage.
type Stage struct {
	Name    string         `json:"name"`
	Value   string         `json:"value,omitempty"` // of what varies
	Summary metric.Summary `json:"summary"`
}

// A Format is one way to print a Report.
type Format struct {
	Name, Doc string
	Render    func(w io.Writer, r *Report) error
}

// Formats are all the formats, in the order help prints them.
var Formats = []Format{textFormat, classicFormat, levelsFormat, jsonFormat, csvFormat}

// FormatNamed is the format of that name.
func FormatNamed(name string) (Format, error) {
	return named(Formats, func(f Format) string { return f.Name }, "format", name)
}

func named[T any](list []T, nameOf func(T) string, what, name string) (T, error) {
	var names []string
	for _, item := range list {
		if nameOf(item) == name {
			return item, nil
		}
		names = append(names, nameOf(item))
	}
	var zero T
	return zero, fmt.Errorf("unknown %s %q: want one of %s", what, name, strings.Join(names, ", "))
}
