// Package page writes runs as one HTML file: it opens from disk, loads nothing,
// and stays small whatever the run was.
//
// Go fills in data, and the scripts in assets draw it. The data is the report's
// own JSON, cut to a length, and for each level a picture: what a page can show
// of its requests. The rules of the look are in assets/README.md.
package page

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"tacho/metric"
	"tacho/outcome"
)

//go:embed assets/*.html assets/*.css assets/*.js
var assets embed.FS

// scripts are the parts of the one script, in their order.
var scripts = []string{"state", "draw", "figure", "header", "sweep", "dist", "time", "timeline", "view", "where", "parts", "behind", "main"}

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
	Answer  []string        `json:"answer"` // what it came to, in sentences
	Knee    *int            `json:"knee"`   // the place of the last level that keeps up; null where there is none, or nobody knows
	Levels  []level         `json:"levels"`
	LeftOut int             `json:"left_out,omitempty"` // levels that the page has no room for
}

// A level is one level as the page has it.
type level struct {
	Setting json.RawMessage `json:"setting"`
	Summary json.RawMessage `json:"summary"`
	Picture *picture        `json:"picture,omitempty"` // nil where there are no records
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
	good, _ := knee(from.Levels[:n])
	r := &run{
		About: clipped(about), Command: command(from.Args), LeftOut: len(from.Levels) - n,
		Knee: good, Answer: answer(from.Levels[:n]), Levels: []level{},
	}
	for _, note := range from.Notes {
		note.Text = clip(note.Text)
		r.Notes = append(r.Notes, note)
	}
	for i := range from.Levels[:n] {
		l := &from.Levels[i]
		r.Levels = append(r.Levels, level{clipped(l.Setting), clipped(trimmed(l.Summary, limits.items)), pictures[i]})
	}
	return r, nil
}

// assemble puts the page together. Its policy lets nothing in but its own script
// and its own style, by their hashes.
func assemble(w io.Writer, data []byte) error {
	files := map[string][]byte{}
	var script bytes.Buffer
	script.WriteString("'use strict';\n")
	for _, name := range append(suffixed(scripts, ".js"), "style.css", "page.html") {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		files[name] = text
		if strings.HasSuffix(name, ".js") {
			script.Write(text)
		}
	}
	style := files["style.css"]
	policy := fmt.Sprintf("default-src 'none'; script-src %s; style-src %s; img-src data: blob:; base-uri 'none'; form-action 'none'", hash(script.Bytes()), hash(style))
	out := bufio.NewWriter(w) // keeps the first error for Flush
	rest := string(files["page.html"])
	for _, hole := range []struct {
		mark string
		fill []byte
	}{{"/*POLICY*/", []byte(policy)}, {"/*STYLE*/", style}, {"/*DATA*/", data}, {"/*SCRIPT*/", script.Bytes()}} {
		before, after, _ := strings.Cut(rest, hole.mark)
		_, _ = out.WriteString(before)
		_, _ = out.Write(hole.fill)
		rest = after
	}
	_, _ = out.WriteString(rest)
	return out.Flush()
}

func suffixed(names []string, suffix string) (out []string) {
	for _, name := range names {
		out = append(out, name+suffix)
	}
	return out
}

// hash is the source of a policy that allows just this text.
func hash(text []byte) string {
	sum := sha256.Sum256(text)
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
