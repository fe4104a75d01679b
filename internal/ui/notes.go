package ui

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tacho-bench/tacho/report/page"
	"github.com/tacho-bench/tacho/store"
)

// Notes are the user's note and tags of a run, and the log of their changes.
type Notes struct {
	Text string   `json:"note,omitempty"`
	Tags []string `json:"tags,omitempty"`
	Log  []Change `json:"log,omitempty"` // latest last
}

// A Change is one change of a run.
type Change struct {
	At   time.Time `json:"at"`
	From string    `json:"from"` // address of the client
	What string    `json:"what"`
}

const mostNote = 20_000 // characters

// deletionLog is the file in the folder that lists deleted runs, one JSON object per
// line. It has no extension, so it is not read as a result.
const deletionLog = ".tacho-deleted"

// readNotes returns the notes of a run. Unreadable notes are ignored.
func (s *runList) readNotes(it *Item) (n Notes) {
	if b, err := s.readFile(it, store.NotesFile); err == nil && json.Unmarshal(b, &n) == nil {
		n.check()
	}
	return n
}

// check limits the length of notes.
func (n *Notes) check() {
	if utf8.RuneCountInString(n.Text) > mostNote {
		n.Text = string([]rune(n.Text)[:mostNote])
	}
	var tags []string
	for _, tag := range n.Tags {
		if len(tags) == 30 {
			break // before the search for duplicates, whose time is quadratic
		}
		tag = strings.Join(strings.Fields(tag), "-")
		if tag != "" && utf8.RuneCountInString(tag) <= 60 && !slices.Contains(tags, tag) {
			tags = append(tags, tag)
		}
	}
	n.Tags = tags
	n.Log = n.Log[max(0, len(n.Log)-200):]
	for i := range n.Log {
		n.Log[i].From, n.Log[i].What = page.Clip(n.Log[i].From), page.Clip(n.Log[i].What)
	}
}

// change replaces note and tags, and logs the difference.
func (n *Notes) change(to Notes, at time.Time, from string) {
	var what []string
	for _, tag := range to.Tags {
		if !slices.Contains(n.Tags, tag) {
			what = append(what, "tag added: "+tag)
		}
	}
	for _, tag := range n.Tags {
		if !slices.Contains(to.Tags, tag) {
			what = append(what, "tag removed: "+tag)
		}
	}
	if n.Text != to.Text {
		what = append(what, fmt.Sprintf("note changed from %d to %d characters", utf8.RuneCountInString(n.Text), utf8.RuneCountInString(to.Text)))
	}
	n.Text, n.Tags = to.Text, to.Tags
	if len(what) > 0 {
		n.Log = append(n.Log, Change{At: at.UTC(), From: from, What: strings.Join(what, "; ")})
	}
	n.check()
}

// clientOf returns the address of a client, without its port.
func clientOf(r *http.Request) string {
	if host, _, err := net.SplitHostPort(r.RemoteAddr); err == nil {
		return host
	}
	return r.RemoteAddr
}

// A request is a request of the page to change a run.
type request struct {
	Run  string   `json:"run"`
	Text string   `json:"note"`
	Tags []string `json:"tags"`
}

// changed returns the run that a request wants to change. If the request is invalid,
// changed answers it and returns nil.
func (s *Server) changed(w http.ResponseWriter, r *http.Request) (*Item, *request) {
	var c request
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		http.Error(w, fmt.Sprintf("invalid request: %v", err), http.StatusBadRequest)
		return nil, nil
	}
	items, err := s.runs.find([]string{c.Run})
	if err == nil && items[0].dir == "" {
		err = errors.New("only runs of tacho can be changed; this is a result of another tool")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return nil, nil
	}
	return items[0], &c
}

// note saves the notes of a run.
func (s *Server) note(w http.ResponseWriter, r *http.Request) {
	s.writes.Lock()
	defer s.writes.Unlock()
	it, c := s.changed(w, r)
	if it == nil {
		return
	}
	notes := s.runs.readNotes(it)
	to := Notes{Text: c.Text, Tags: c.Tags}
	to.check()
	notes.change(to, s.options.Now(), clientOf(r))
	b, err := json.MarshalIndent(notes, "", "  ")
	if err == nil {
		err = s.runs.writeFile(it, store.NotesFile, append(b, '\n'))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, notes)
}

// remove deletes the directory of a run.
func (s *Server) remove(w http.ResponseWriter, r *http.Request) {
	s.writes.Lock()
	defer s.writes.Unlock()
	it, _ := s.changed(w, r)
	if it == nil {
		return
	}
	if it.State == Running {
		http.Error(w, "the run is still running: stop it first", http.StatusConflict)
		return
	}
	if it.place == "." {
		http.Error(w, "only the directory of a run inside the folder can be deleted", http.StatusConflict)
		return
	}
	if err := s.runs.remove(it, s.options.Now(), clientOf(r)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answerJSON(w, map[string]string{"deleted": it.Place})
}

// A deletion is a line of the deletion log.
type deletion struct {
	At       time.Time `json:"at"`
	From     string    `json:"from"`
	Run      string    `json:"run"`
	Label    string    `json:"label,omitempty"`
	Requests int       `json:"requests"`
	Bytes    int64     `json:"bytes"`
	Notes    Notes     `json:"notes"`
	Error    string    `json:"error,omitempty"` // the run could not be deleted completely
}

// remove deletes the directory of a run. The notes of the run are deleted with it, so
// the folder's own log has the deletion. A run is not deleted without an entry there.
func (s *runList) remove(it *Item, at time.Time, from string) error {
	folder, err := s.openFolder()
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	d := deletion{At: at.UTC(), From: from, Run: it.place, Label: it.About.Label, Requests: it.Totals.Requests, Bytes: it.Bytes, Notes: it.Notes}
	if err := logDeletion(folder, d); err != nil {
		return err
	}
	if err := folder.RemoveAll(it.place); err != nil {
		d.Error = err.Error()
		return errors.Join(err, logDeletion(folder, d))
	}
	return nil
}

// logDeletion appends a line to the deletion log.
func logDeletion(folder *os.Root, d deletion) error {
	if info, err := folder.Lstat(deletionLog); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file: remove it", deletionLog)
	}
	line, err := json.Marshal(d)
	if err != nil {
		return err
	}
	f, err := folder.OpenFile(deletionLog, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
