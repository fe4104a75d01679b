package ui

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"

	"tacho/compare"
	"tacho/metric"
	"tacho/outcome"
	"tacho/report/page"
	"tacho/store"
)

// mostRuns is how many runs are shown together.
const mostRuns = 12

func (s *Server) list(w http.ResponseWriter, _ *http.Request) {
	items, err := s.shelf.look()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, items)
}

// asked are the items that a request names; nil where it was told what is wrong.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) []*Item {
	ids := r.URL.Query()["run"]
	if len(ids) == 0 || len(ids) > mostRuns {
		http.Error(w, "choose one run at least, and twelve at most", http.StatusBadRequest)
		return nil
	}
	items, err := s.shelf.find(ids)
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil
	}
	return items
}

// page is the report of one run, or of several on the same axes.
func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	items := s.asked(w, r)
	if items == nil {
		return
	}
	var key strings.Builder
	for _, it := range items {
		key.WriteString(it.ID + it.stamp + stampOf(filepath.Join(it.dir, store.RecordsFile)))
	}
	html, err := s.pages.get(key.String(), func() ([]byte, error) { return makePage(items) })
	if err != nil {
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	w.Header().Set("Content-Security-Policy", s.report)
	answer(w, "text/html; charset=utf-8", html)
}

// makePage is the page that the run wrote itself, where this program would write
// the same around its data; else it is made of the run.
func makePage(items []*Item) ([]byte, error) {
	if len(items) == 1 && items[0].State == Over && items[0].Problem == "" && !items[0].lacks {
		if html, err := os.ReadFile(filepath.Join(items[0].dir, store.PageFile)); err == nil && page.IsOurs(html) {
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

// compare says how runs differ from the first.
func (s *Server) compare(w http.ResponseWriter, r *http.Request) {
	items := s.asked(w, r)
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
		sides = append(sides, compare.Side{Name: page.Clip(it.About.Name), Runs: runs})
	}
	c, err := compare.Compare(sides, o)
	if err != nil && !errors.Is(err, compare.ErrNoLevel) { // then they share axes at least
		http.Error(w, err.Error(), http.StatusUnprocessableEntity)
		return
	}
	answer(w, "application/json", page.Clipped(c))
}
