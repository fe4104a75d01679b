// Package report prints the outcome of one or several runs, with one source file per
// format. A format is a pure function of a Report: it reads no clock, no environment
// and no terminal, and it computes nothing beyond the results of package metric.
//
// The package also parses reports with vLLM's layout (Parse) and prints them again,
// byte for byte.
package report

import (
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/outcome"
)

// A Report is the input of a format: one run or several.
type Report struct {
	Runs     []outcome.Run `json:"runs"`
	Style    string        `json:"-"` // style of the classic block: one of Styles; empty means current
	Rows     string        `json:"-"` // kind of rows in tables: one of RowKinds; empty means level
	Columns  string        `json:"-"` // columns of rows of levels: ColumnsMain or ColumnsAll; empty means ColumnsMain
	Detailed bool          `json:"-"` // vLLM's result includes the numbers and text of every request

	Wide  int  `json:"-"` // width of tables and curves in cells; 0 means unlimited
	Wrap  int  `json:"-"` // width of sentences and facts in cells; 0 means unlimited
	Brief bool `json:"-"` // the text format has only the details that matter for the run
	ASCII bool `json:"-"` // the screen shows ASCII only

	Thresholds []float64 `json:"-"` // gaps between tokens, in ms, at which the page's timeline changes colour; empty means the page's default
}

// levels iterates over all levels of all runs, each with its run.
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
	Ext       string // file extension; empty means txt
	Binary    bool   // not text
}

func (f FormatOf[T]) String() string { return f.Name }

// A Format is one way to print a Report.
type Format = FormatOf[Report]

// Formats are all formats, in the order of the help text.
var Formats = []Format{textFormat, classicFormat, levelsFormat, curveFormat, paretoFormat, jsonFormat, flatFormat, csvFormat, markdownFormat, parquetFormat, openMetricsFormat, vllmFormat, htmlFormat}

// FormatNamed returns the format with the given name.
func FormatNamed(name string) (Format, error) { return named(Formats, "format", name) }

// Write prints a report in the format with the given name.
func Write(w io.Writer, format string, r *Report) error {
	f, err := FormatNamed(format)
	if err != nil {
		return err
	}
	return f.Render(w, r)
}

// named returns the item of list with the given name.
func named[T fmt.Stringer](list []T, what, name string) (T, error) {
	for _, item := range list {
		if item.String() == name {
			return item, nil
		}
	}
	var none T
	return none, spelling.Unknown(what, name, strings.Split(Names(list), ", "))
}

// Names joins the names of all items of a list, for help texts.
func Names[T fmt.Stringer](list []T) string {
	var names []string
	for _, item := range list {
		names = append(names, item.String())
	}
	return strings.Join(names, ", ")
}
