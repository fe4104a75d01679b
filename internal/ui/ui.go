// Package ui serves a folder of runs to a browser: a list, a report of each run,
// comparisons of several runs, and the live state of running runs.
//
// It is made for one user on one machine. Every client with access can read all runs of
// the folder, so remote access requires a token and TLS. Only its own page may change
// runs. Run files are untrusted input.
package ui

import (
	"bytes"
	"crypto/rand"
	"embed"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/report/page"
)

//go:embed assets/*
var assets embed.FS

// Options configure a Server.
type Options struct {
	Dir   string                 // folder of runs
	Token string                 // access token; required
	Host  func(name string) bool // reports whether name is a name of this server
	Now   func() time.Time       // the clock of the logs
}

// A Server serves a folder of runs. It is an http.Handler.
type Server struct {
	options Options
	session string // value of the cookie, new for each Server, so that a stolen cookie is useless after a restart
	shell   []byte // the page around list and reports
	policy  string // security policy of shell
	report  string // security policy of a report
	mux     http.ServeMux
	runs    runList
	writes  sync.Mutex // one change at a time
	pages   pageCache
	streams chan struct{} // limits concurrent event streams
}

// New returns a server of a folder.
func New(o Options) (*Server, error) {
	if o.Token == "" {
		return nil, errors.New("a token is required")
	}
	s := &Server{options: o, session: rand.Text(), runs: runList{root: o.Dir}, streams: make(chan struct{}, 64)} // event streams at once
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
		"POST /api/notes": bounded(s.note), "POST /api/delete": bounded(s.remove),
	} {
		s.mux.HandleFunc(pattern, handle)
	}
	return s, nil
}

// makeShell assembles the page around list and reports.
func (s *Server) makeShell() error {
	style, script, err := page.Shared()
	if err != nil {
		return err
	}
	d := page.Document{Style: style, Script: script, Allow: "connect-src 'self'; frame-src 'self'"}
	for _, name := range []string{"ui.html", "ui.css", "list.js", "trend.js", "live.js", "compare.js", "main.js"} {
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
	d.Data, err = json.Marshal(map[string]string{"folder": s.options.Dir})
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
	_, _ = w.Write(body) // the client may have disconnected
}

func answerJSON(w http.ResponseWriter, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer(w, "application/json", body)
}

// A pageCache caches the latest reports, because reading a large run takes a while.
type pageCache struct {
	mu    sync.Mutex
	keys  []string // latest last
	pages map[string][]byte
}

// get returns the page for a key. It calls make if the page is not cached.
func (c *pageCache) get(key string, make func() ([]byte, error)) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock() // pages are large, so only one is made at a time
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
	if len(c.keys) > 8 {
		delete(c.pages, c.keys[0])
		c.keys = c.keys[1:]
	}
	return html, nil
}
