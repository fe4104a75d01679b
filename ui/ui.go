// Package ui serves a folder of runs to a browser: a list of them, each as its
// page, several side by side, and those that go on as they happen.
//
// It is made for one person and one machine. Whoever may ask it anything may read
// all runs of the folder, so that it listens to strangers only with a token and
// over TLS; what it is told to write, it is told by its own page. Run files are
// taken for what anybody may have written.
package ui

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"

	"tacho/report/page"
)

//go:embed assets/*
var assets embed.FS

// Options are how a folder is served.
type Options struct {
	Dir   string                 // the folder
	Token string                 // what everybody must know who asks; empty is nothing
	Host  func(name string) bool // whether that is a name of this server
}

// A Server serves a folder. It is an http.Handler.
type Server struct {
	options Options
	write   string // what only our own page knows, and must say to change anything
	shell   []byte // that page
	policy  string // of it
	report  string // the policy of a run's page
	mux     http.ServeMux
	shelf   shelf
	pages   pageCache
	streams chan struct{} // those who watch
}

// mostStreams is how many may watch at a time.
const mostStreams = 64

// New is a server of a folder.
func New(o Options) (*Server, error) {
	s := &Server{options: o, write: rand.Text(), shelf: shelf{root: o.Dir}, streams: make(chan struct{}, mostStreams)}
	if err := s.makeShell(); err != nil {
		return nil, err
	}
	report, err := page.Policy()
	if err != nil {
		return nil, err
	}
	s.report = report + "; frame-ancestors 'self'; sandbox allow-scripts allow-downloads allow-modals"
	for pattern, handle := range map[string]http.HandlerFunc{
		"GET /{$}": s.home, "GET /api/runs": s.list, "GET /api/events": s.events, "GET /page": s.page, "GET /api/compare": s.compare,
		"POST /api/notes": s.own(s.note), "POST /api/delete": s.own(s.remove),
	} {
		s.mux.HandleFunc(pattern, handle)
	}
	return s, nil
}

// makeShell puts the page around everything together.
func (s *Server) makeShell() error {
	style, script, err := page.Shared()
	if err != nil {
		return err
	}
	d := page.Document{Style: style, Script: script, Allow: "connect-src 'self'; frame-src 'self'"}
	for _, name := range []string{"ui.html", "ui.css", "list.js", "live.js", "compare.js", "main.js"} {
		text, err := assets.ReadFile("assets/" + name)
		if err != nil {
			return err
		}
		switch name {
		case "ui.html":
			d.Frame = string(text)
		case "ui.css":
			d.Style = append(d.Style, text...)
		default:
			d.Script = append(d.Script, text...)
		}
	}
	d.Data, err = json.Marshal(map[string]string{"token": s.write, "folder": s.options.Dir})
	if err != nil {
		return err
	}
	var out bytes.Buffer
	s.policy = d.Policy() + "; frame-ancestors 'none'"
	err = d.Write(&out)
	s.shell = out.Bytes()
	return err
}

func (s *Server) home(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Security-Policy", s.policy)
	answer(w, "text/html; charset=utf-8", s.shell)
}

func answer(w http.ResponseWriter, kind string, body []byte) {
	w.Header().Set("Content-Type", kind)
	_, _ = w.Write(body) // who has gone gets nothing
}

func answerJSON(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "application/json", body)
}

// mostPages is how many pages of runs are kept in memory.
const mostPages = 8

// A pageCache keeps the pages that were asked for last: to read a large run again
// takes a while.
type pageCache struct {
	mu    sync.Mutex
	keys  []string // the latest last
	pages map[string][]byte
}

// get is the page of that key, made if it is not there.
func (c *pageCache) get(key string, make func() ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock() // one at a time: they are large
	if html, ok := c.pages[key]; ok {
		return html, nil
	}
	html, err := make()
	if err != nil {
		return nil, err
	}
	if c.pages == nil {
		c.pages = map[string][]byte{}
	}
	c.keys, c.pages[key] = append(c.keys, key), html
	if len(c.keys) > mostPages {
		delete(c.pages, c.keys[0])
		c.keys = c.keys[1:]
	}
	return html, nil
}

// notThere says that nobody knows a run.
func notThere(id string) error {
	return fmt.Errorf("there is no run %.40q: look at the list again", id)
}
