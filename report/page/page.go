// Package page writes runs as one HTML file: it opens from disk, loads nothing,
// and stays small whatever the run was.
//
// Go fills in data, and the scripts in assets draw it. The data is the report's
// own JSON, cut to a length, and for each level a picture: what a page can show
// of its requests. The rules of the look are in assets/README.md.
package page

import (
	"embed"
	"encoding/json"
	"io"
	"slices"

	"tacho/metric"
	"tacho/outcome"
	"tacho/report/conclusion"
)

//go:embed assets/*.html assets/*.css assets/*.js
var assets embed.FS

// scripts are the parts of the one script, in their order.
var scripts = []string{"base", "state", "draw", "figure", "header", "sweep", "dist", "time", "timeline", "view", "where", "parts", "behind", "main"}

// MostBytes is how long a page is at most.
const MostBytes = 5_000_000

// mostLevels is how many levels a page has, of all its runs together.
const mostLevels = 120

// A page is the data of a page.
type page struct {
	Runs   []run     `json:"runs"`
	Shares []float64 `json:"shares"` // at which curves have their values
	Code   gapCode   `json:"gap_code"`
	Edges  []float64 `json:"gap_edges"` // ms, at which the colours of gaps change

	Figures []figure `json:"figures"` // what a level may have figures of
}

// A figure is what the page says of a figure of a level.
type figure struct {
	Name  string      `json:"name"`
	Title string      `json:"title"`
	Unit  metric.Unit `json:"unit"`
	Doc   string      `json:"doc"`
}

// A run is one run as the page has it.
type run struct {
	About   json.RawMessage `json:"about"`
	Command string          `json:"command,omitempty"`
	Notes   []metric.Reason `json:"notes,omitempty"`
	Levels  []level         `json:"levels"`
	LeftOut int             `json:"left_out,omitempty"` // levels that the page has no room for

	Conclusion conclusion.Conclusion `json:"conclusion"` // of all levels, also of those that are left out
}

// A level is one level as the page has it.
type level struct {
	Setting json.RawMessage `json:"setting"`
	Summary json.RawMessage `json:"summary"`
	Picture *picture        `json:"picture,omitempty"` // nil where there are no records
	Against *against        `json:"against,omitempty"` // nil in the first run, and if it has no such level
}

// edges are where the colours of gaps change, in milliseconds.
var edges = []float64{8, 16, 32, 64, 128, 256}

// Write writes the page of runs. The colours of gaps between tokens change at
// the given milliseconds, or else at those of the look.
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
	p := page{Shares: shares, Code: code, Edges: gapEdges}
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

// fit is the page's data in JSON. The limits make it fit; should they not, what
// is long goes, and the page says of such a level that it has none.
func (p *page) fit() ([]byte, error) {
	data, err := json.Marshal(p) // <, > and & are escapes in it, so that it can stand inside a script
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

// newRun is a run with its first n levels.
func newRun(from *outcome.Run, n int, limits limits) (*run, error) {
	pictures, err := gather(from, n, limits)
	if err != nil {
		return nil, err
	}
	about := from.About
	about.Args = nil // they are the command
	r := &run{About: Clipped(about), Command: command(from.Args), LeftOut: len(from.Levels) - n, Levels: []level{}, Conclusion: conclusion.Of(from)}
	r.Conclusion.LeftOut = r.Conclusion.LeftOut[:min(len(r.Conclusion.LeftOut), mostList)]
	for _, note := range from.Notes {
		note.Text = Clip(note.Text)
		if outcome.IsLimit(note) {
			continue // it is in the conclusion
		}
		r.Notes = append(r.Notes, note)
	}
	for i := range from.Levels[:n] {
		l := &from.Levels[i]
		r.Levels = append(r.Levels, level{Setting: Clipped(l.Setting), Summary: Clipped(trimmed(l.Summary, limits.items)), Picture: pictures[i]})
	}
	return r, nil
}

// assemble puts the page of a report together.
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

// document is the page of a report.
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
