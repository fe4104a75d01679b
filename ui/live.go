package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"tacho/internal/wholefile"
	"tacho/report/page"
	"tacho/store"
)

// lookEvery is how often the folder is looked at while somebody watches.
const lookEvery = time.Second

// events tells a browser what changes: the list, and how runs stand that go on.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "too many watch: close a page", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	to := &stream{w: w, out: http.NewResponseController(w), live: map[string]string{}}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		if err := to.look(&s.shelf); err != nil {
			return // the browser is gone, or the folder
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// A stream is what one browser has been told.
type stream struct {
	w    http.ResponseWriter
	out  *http.ResponseController
	list *string           // nil: nothing yet
	live map[string]string // stamps of what was told, by item
}

// look tells what is new.
func (t *stream) look(shelf *shelf) error {
	items, err := shelf.look()
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, it := range items {
		list.WriteString(it.ID + it.stamp)
	}
	if now := list.String(); t.list == nil || *t.list != now { // an empty list is told, too
		t.list = &now
		if err := t.send("runs", items); err != nil {
			return err
		}
	}
	for _, it := range items {
		if it.State == Running {
			if err := t.tell(it); err != nil {
				return err
			}
		}
	}
	return nil
}

// tell sends how a run stands, where that has changed.
func (t *stream) tell(it *Item) error {
	path := filepath.Join(it.dir, store.LiveFile)
	stamp := stampOf(path)
	if t.live[it.ID] == stamp {
		return nil
	}
	b, err := wholefile.Read(path)
	var snapshot any
	if err != nil || json.Unmarshal(b, &snapshot) != nil {
		return nil //nolint:nilerr // it is over, or somebody else's: the list will say so
	}
	t.live[it.ID] = stamp
	return t.send("live", map[string]any{"run": it.ID, "snapshot": page.Clipped(snapshot)})
}

func (t *stream) send(event string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintf(t.w, "event: %s\ndata: %s\n\n", event, b); err != nil {
		return err
	}
	return t.out.Flush()
}
