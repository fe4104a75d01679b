// Package page writes runs as one HTML file. The file opens from disk, is
// self-contained, and has a bounded size for any run.
//
// Go fills in the data, and the scripts in assets draw it. The data is the JSON of the
// report, shortened, and a picture of each level: curves, time bins and a sample of its
// requests. The design rules are in assets/README.md.
package page

import (
	"embed"
	"encoding/json"
	"io"
	"slices"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
)

//go:embed assets/*.html assets/*.css assets/*.js
var assets embed.FS

// scripts are the parts of the page's script, in order.
var scripts = []string{"base", "state", "numbers", "draw", "figure", "header", "goals", "hero", "slo", "sweep", "dist", "time", "timeline", "view", "pinned", "where", "parts", "behind", "main"}

// MostBytes is the maximum size of a page.
const MostBytes = 5_000_000

// mostLevels is the maximum number of levels on a page, over all its runs.
const mostLevels = 120

// A page is the data of a page.
type page struct {
	Runs   []run     `json:"runs"`
	Shares []float64 `json:"shares"` // cumulative shares of the values of curves
	Code   gapCode   `json:"gap_code"`
	Edges  []float64 `json:"gap_edges"` // gaps in ms at which the colour changes

	Figures []figure `json:"figures"` // descriptions of the figures of a level

	Vocabulary metric.Vocabulary `json:"vocabulary"` // of the SLO form
}

// A figure describes a figure of a level.
type figure struct {
	Name  string      `json:"name"`
	Title string      `json:"title"`
	Unit  metric.Unit `json:"unit"`
	Doc   string      `json:"doc"`
}

// A run is the data of one run.
type run struct {
	About   json.RawMessage `json:"about"`
	Command string          `json:"command,omitempty"`
	Load    string          `json:"load,omitempty"` // of all levels: "1 to 6 req/s"
	Notes   []metric.Reason `json:"notes,omitempty"`
	Levels  []level         `json:"levels"`
	LeftOut int             `json:"left_out,omitempty"` // number of levels that do not fit
	Opens   int             `json:"opens"`              // level that is shown first
	Invalid int             `json:"invalid,omitempty"`  // number of INVALID levels, including those left out

	Simulated bool `json:"simulated,omitempty"`

	Conclusion conclusion.Conclusion `json:"conclusion"` // of all levels, including those left out
	Numbers    []conclusion.Number   `json:"numbers,omitempty"`
}

// A level is the data of one level.
type level struct {
	Setting json.RawMessage `json:"setting"`
	Summary json.RawMessage `json:"summary"`
	NoRate  bool            `json:"no_rate,omitempty"` // a burst, or too few requests for a throughput
	Picture *picture        `json:"picture,omitempty"` // nil if there are no records
	Against *levelChanges   `json:"against,omitempty"` // nil in the first run and for levels without a match
}

// edges are the default gaps, in ms, at which the colour changes.
var edges = []float64{8, 16, 32, 64, 128, 256}

// Write writes the page of runs. The colour of gaps between tokens changes at gapEdges,
// in ms; if gapEdges is empty, at the default edges.
func Write(w io.Writer, runs []outcome.Run, gapEdges []float64) error {
	if len(gapEdges) == 0 {
		gapEdges = edges
	}
	gapEdges = slices.Sorted(slices.Values(gapEdges[:min(len(gapEdges), len(edges))]))
	levels := 0
	for i := range runs {
		levels += len(runs[i].Levels)
	}
	room := mostLevels
	limits := limitsFor(min(levels, mostLevels))
	p := page{Shares: shares, Code: code, Edges: gapEdges, Vocabulary: metric.Words()}
	for _, f := range metric.Figures {
		p.Figures = append(p.Figures, figure{f.Name, f.Title, f.Unit, f.Doc})
	}
	for i := range runs {
		r, err := newRun(&runs[i], min(len(runs[i].Levels), room), limits)
		if err != nil {
			return err
		}
		room -= len(r.Levels)
		p.Runs = append(p.Runs, *r)
	}
	if err := p.compareWithFirst(runs); err != nil {
		return err
	}
	data, err := p.fit()
	if err != nil {
		return err
	}
	return assemble(w, data)
}

// fit encodes the data of the page. The limits usually make it fit. If they do not, fit
// drops the timelines and then the pictures, and the page says so.
func (p *page) fit() ([]byte, error) {
	data, err := json.Marshal(p) // Marshal escapes <, > and &, so the data can be inside a script element
	for _, cut := range []func(*level){func(l *level) { l.Picture.cutRows() }, func(l *level) { l.Picture = nil }} {
		if err != nil || len(data) < MostBytes*9/10 {
			break
		}
		for i := range p.Runs {
			for k := range p.Runs[i].Levels {
				cut(&p.Runs[i].Levels[k])
			}
		}
		data, err = json.Marshal(p)
	}
	return data, err
}

// newRun returns a run with its first n levels.
func newRun(from *outcome.Run, n int, limits limits) (*run, error) {
	pictures, err := gather(from, n, limits)
	if err != nil {
		return nil, err
	}
	about := from.About
	about.Args = nil // moved to Command
	r := &run{
		About: Clipped(about), Command: command(from.Args), LeftOut: len(from.Levels) - n, Levels: []level{}, Conclusion: conclusion.Of(from),
		Load: conclusion.LoadOf(from.Levels), Invalid: from.Invalid(), Simulated: from.Simulated(),
	}
	r.Numbers, r.Opens = r.Conclusion.Headline.Numbers(), r.Conclusion.Shown(from.Levels)
	r.Conclusion.LeftOut = r.Conclusion.LeftOut[:min(len(r.Conclusion.LeftOut), mostList)]
	for _, note := range from.Notes {
		note.Text = Clip(note.Text)
		if outcome.IsLimit(note) {
			continue // part of the conclusion
		}
		r.Notes = append(r.Notes, note)
	}
	for i := range from.Levels[:n] {
		l := &from.Levels[i]
		r.Levels = append(r.Levels, level{Setting: Clipped(l.Setting), Summary: Clipped(trimmed(l.Summary, limits.items)), NoRate: !l.HasRate(), Picture: pictures[i]})
	}
	return r, nil
}

// assemble writes the page of a report.
func assemble(w io.Writer, data []byte) error {
	frame, err := assets.ReadFile("assets/page.html")
	if err != nil {
		return err
	}
	d, err := document(string(frame), data)
	if err != nil {
		return err
	}
	return d.Write(w)
}

// document returns the page of a report.
func document(frame string, data []byte) (*Document, error) {
	d := &Document{Frame: frame, Data: data, Script: []byte("'use strict';\n")}
	for _, name := range scripts {
		text, err := assets.ReadFile("assets/" + name + ".js")
		if err != nil {
			return nil, err
		}
		d.Script = append(d.Script, text...)
	}
	var err error
	d.Style, err = assets.ReadFile("assets/style.css")
	return d, err
}
