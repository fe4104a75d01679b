package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"tacho/internal/wholefile"
	"tacho/report/page"
	"tacho/store"
)

// Notes are what people say of a run.
type Notes struct {
	Text string   `json:"note,omitempty"`
	Tags []string `json:"tags,omitempty"`
}

const (
	mostNote = 20_000 // characters
	mostTags = 30
	mostTag  = 60 // characters
)

// readNotes are those of a run; what cannot be read was never said.
func readNotes(dir string) (n Notes) {
	if b, err := wholefile.Read(filepath.Join(dir, store.NotesFile)); err == nil && json.Unmarshal(b, &n) == nil {
		n.check()
	}
	return n
}

// check cuts notes to a length, whoever wrote them.
func (n *Notes) check() {
	if utf8.RuneCountInString(n.Text) > mostNote {
		n.Text = string([]rune(n.Text)[:mostNote])
	}
	var tags []string
	for _, tag := range n.Tags {
		tag = strings.Join(strings.Fields(tag), "-")
		if tag != "" && utf8.RuneCountInString(tag) <= mostTag && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	n.Tags = tags[:min(len(tags), mostTags)]
}

// A change is what our page asks for.
type change struct {
	Run string `json:"run"`
	Notes
}

// changed is the kept run that a request is about; nil where it was told what is
// wrong.
func (s *Server) changed(w http.ResponseWriter, r *http.Request) (*Item, *change) {
	var c change
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, fmt.Sprintf("what was asked for cannot be read: %v", err), http.StatusBadRequest)
		return nil, nil
	}
	items, err := s.shelf.find([]string{c.Run})
	if err == nil && items[0].dir == "" {
		err = errors.New("only runs that tacho keeps can be changed; this is a result that somebody else wrote")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil, nil
	}
	return items[0], &c
}

// note keeps what somebody says of a run, beside it.
func (s *Server) note(w http.ResponseWriter, r *http.Request) {
	it, c := s.changed(w, r)
	if it == nil {
		return
	}
	c.check()
	b, err := json.MarshalIndent(c.Notes, "", "  ")
	if err == nil {
		err = wholefile.Write(filepath.Join(it.dir, store.NotesFile), append(b, '\n'))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, c.Notes)
}

// remove deletes the directory of a run.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	it, _ := s.changed(w, r)
	if it == nil {
		return
	}
	if it.State == Running {
		http.Error(w, "this run goes on: stop it first", http.StatusConflict)
		return
	}
	if info, err := os.Lstat(it.dir); err != nil || !info.IsDir() || it.dir == s.options.Dir {
		http.Error(w, "only a run's own directory, inside the folder, is deleted here", http.StatusConflict)
		return
	}
	if err := os.RemoveAll(it.dir); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, map[string]string{"deleted": page.Clip(it.Place)})
}
