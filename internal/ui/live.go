package ui

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/report/page"
	"github.com/tacho-bench/tacho/store"
)

// events streams changes to a browser: the list of runs and the state of running runs.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "too many open pages: close one", http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	to := &stream{w: w, out: http.NewResponseController(w), live: map[string]string{}}
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		if err := to.look(&s.runs); err != nil {
			return // the browser disconnected, or the folder was removed
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		}
	}
}

// A stream tracks the state that was sent to one browser.
type stream struct {
	w    http.ResponseWriter
	out  *http.ResponseController
	list *string           // nil before the first list
	live map[string]string // stamps of the sent states, by item
}

// look sends the changes since the last call.
func (t *stream) look(from *runList) error {
	items, err := from.look()
	if err != nil {
		return err
	}
	var list strings.Builder
	for _, it := range items {
		list.WriteString(it.ID + it.stamp)
	}
	if now := list.String(); t.list == nil || *t.list != now { // an empty list is sent, too
		t.list = &now
		if err := t.send("runs", items); err != nil {
			return err
		}
	}
	for _, it := range items {
		if it.State == Running {
			if err := t.sendLive(from, it); err != nil {
				return err
			}
		}
	}
	return nil
}

// sendLive sends the state of a run if it changed since the last call.
func (t *stream) sendLive(from *runList, it *Item) error {
	stamp := stampOf(filepath.Join(it.dir, store.LiveFile))
	if t.live[it.ID] == stamp {
		return nil
	}
	b, err := from.readFile(it, store.LiveFile)
	var snapshot any
	if err != nil || json.Unmarshal(b, &snapshot) != nil {
		return nil //nolint:nilerr // the run ended or the file is damaged, and the list shows it
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
