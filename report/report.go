// Package report shows outcomes, of one run or several: one file for each
// format. A format is a pure function of a Report; it reads no clock, no
// environment and no terminal, and it computes nothing that package metric has
// not computed.
//
// The package also reads reports of this family that others have written
// (Parse) and prints them again, byte for byte.
package report

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"tacho/internal/spelling"
	"tacho/outcome"
)

// A Report is everything a format may print: one run, or several.
type Report struct {
	Runs     []outcome.Run `json:"runs"`
	Style    string        `json:"-"` // of the classic block: one of Styles; empty is the current one
	Rows     string        `json:"-"` // of tables: what a line is of, one of RowKinds; empty is a level
	Detailed bool          `json:"-"` // of vLLM's result: with every request's numbers and text

	Wide  int  `json:"-"` // of a screen: cells in a line; 0 is as many as there are
	ASCII bool `json:"-"` // of a screen: it has no block characters

	Thresholds []float64 `json:"-"` // of the page: gaps between tokens at which the timeline's colours change, in milliseconds; none is its own
}

// levels are all levels of all runs, each with its run.
func (r *Report) levels() iter.Seq2[*outcome.Run, *outcome.Level] {
	return func(yield func(*outcome.Run, *outcome.Level) bool) {
		for i := range r.Runs {
			for k := range r.Runs[i].Levels {
				if !yield(&r.Runs[i], &r.Runs[i].Levels[k]) {
					return
				}
			}
		}
	}
}

// A FormatOf is one way to print a T.
type FormatOf[T any] struct {
	Name, Doc string
	Render    func(w io.Writer, it *T) error
	Ext       string // of its files; empty is that of a text
	Binary    bool   // it is no text
}

func (f FormatOf[T]) String() string { return f.Name }

// A Format is one way to print a Report.
type Format = FormatOf[Report]

// Formats are all the formats, in the order help prints them.
var Formats = []Format{textFormat, classicFormat, levelsFormat, curveFormat, paretoFormat, jsonFormat, csvFormat, jsonlFormat, markdownFormat, parquetFormat, openMetricsFormat, vllmFormat, htmlFormat}

// FormatNamed is the format of that name.
func FormatNamed(name string) (Format, error) { return named(Formats, "format", name) }

// named is the one of list that is called name.
func named[T fmt.Stringer](list []T, what, name string) (T, error) {
	for _, item := range list {
		if item.String() == name {
			return item, nil
		}
	}
	var none T
	return none, spelling.Unknown(what, name, strings.Split(Names(list), ", "))
}

// Names are the names of all of a list, for help.
func Names[T fmt.Stringer](list []T) string {
	var names []string
	for _, item := range list {
		names = append(names, item.String())
	}
	return strings.Join(names, ", ")
}
