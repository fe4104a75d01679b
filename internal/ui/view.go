package ui

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/conclusion"
	"github.com/tacho-bench/tacho/report/page"
	"github.com/tacho-bench/tacho/store"
)

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	items, err := s.runs.look()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, items)
}

// requested returns the items that a request names. If the request is invalid, requested
// answers it and returns nil.
func (s *Server) requested(w http.ResponseWriter, r *http.Request) []*Item {
	ids := r.URL.Query()["run"]
	if len(ids) == 0 || len(ids) > 12 {
		http.Error(w, "choose 1 to 12 runs", http.StatusBadRequest)
		return nil
	}
	items, err := s.runs.find(ids)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil
	}
	return items
}

// page serves the report of one run, or of several on the same axes.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	items := s.requested(w, r)
	if items == nil {
		return
	}
	var key strings.Builder
	for _, it := range items {
		key.WriteString(it.ID + it.stamp + stampOf(filepath.Join(it.dir, store.RecordsFile)))
	}
	html, err := s.pages.get(key.String(), func() ([]byte, error) { return s.makePage(items) })
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Security-Policy", s.report)
	answer(w, "text/html; charset=utf-8", html)
}

// makePage returns the report file of a run if this program would write the same page
// around its data, otherwise a new page.
func (s *Server) makePage(items []*Item) ([]byte, error) {
	if len(items) == 1 && items[0].State == Over && items[0].Problem == "" && !items[0].lacks {
		if html, err := s.runs.readFile(items[0], store.PageFile); err == nil && page.IsOurs(html) {
			return html, nil
		}
	}
	var runs []outcome.Run
	for _, it := range items {
		more, err := it.open()
		if err != nil {
			return nil, err
		}
		runs = append(runs, more...)
	}
	var html bytes.Buffer
	err := page.Write(&html, runs, nil)
	return html.Bytes(), err
}

// compare serves the differences of runs from the first run.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	items := s.requested(w, r)
	if items == nil {
		return
	}
	var o compare.Options
	for _, name := range compare.Quantities {
		q, err := metric.ParseQuantity(name)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		o.Quantities = append(o.Quantities, q)
	}
	var sides []compare.Side
	for _, it := range items {
		runs, err := it.open()
		if err != nil {
			http.Error(w, err.Error(), http.StatusUnprocessableEntity)
			return
		}
		sides = append(sides, compare.Side{Name: page.Clip(shortName(it, items)), Runs: runs})
	}
	c, err := compare.Compare(sides, o)
	if err != nil && !errors.Is(err, compare.ErrNoLevel) { // without a common level, the curves still share their axes
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	out := comparison{Comparison: page.Clipped(c), Titles: map[string]string{}}
	for side := 1; side < len(c.Sides); side++ {
		out.Conclusions = append(out.Conclusions, conclusion.OfComparison(c, side))
	}
	for _, q := range o.Quantities {
		out.Titles[q.Name] = q.Title
	}
	for i := range c.Levels {
		out.Loads = append(out.Loads, loadOf(&c.Levels[i], len(c.Sides)))
	}
	answerJSON(w, out)
}

// shortName returns the label of a run if no other run has the label, otherwise the name
// of the run.
func shortName(it *Item, all []*Item) string {
	label := it.About.Label
	if label == "" || slices.ContainsFunc(all, func(other *Item) bool { return other != it && other.About.Label == label }) {
		return it.About.Name
	}
	return label
}

// loadOf names the load of a level, and says if a run is INVALID there.
func loadOf(l *compare.Level, sides int) string {
	name := conclusion.LoadOf([]outcome.Level{*l.Of(0)[0]})
	for side := range sides {
		for _, level := range l.Of(side) {
			if level.Summary.Verdict.Severity == metric.Invalid {
				return name + " (INVALID)"
			}
		}
	}
	return name
}

// A comparison is a comparison with its conclusions and names.
type comparison struct {
	Comparison  json.RawMessage   `json:"comparison"`
	Conclusions []string          `json:"conclusions"` // of each side except the first
	Titles      map[string]string `json:"titles"`      // of the quantities
	Loads       []string          `json:"loads"`       // of the levels
}
