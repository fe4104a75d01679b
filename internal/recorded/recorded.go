// Package recorded serves recorded answers of inference servers that the simulator
// does not emulate. Only tests use it.
//
// Each file in testdata has the answers of one server, named after the backend. A
// line "-- POST /path --" begins the answer to a request, and a line "@10ms" sets
// the time after the request at which the following lines are sent. The last newline
// of a document is not sent.
package recorded

import (
	"embed"
	"io"
	"net/http"
	"strings"
	"time"
)

//go:embed testdata/*.txt
var files embed.FS

// A Server answers with a recording. Requests without a recorded answer get status
// 404.
type Server map[string][]piece // by method and path

// A piece is the part of an answer that the server sends at one time.
type piece struct {
	at   time.Duration // after the request
	text string
}

// Open returns the recording for a backend, or nil if there is none.
func Open(backend string) Server {
	// Both of Infinity's backends send requests to the same server.
	b, err := files.ReadFile("testdata/" + strings.TrimSuffix(backend, "-clip") + ".txt")
	if err != nil {
		return nil
	}
	s, name := Server{}, ""
	for line := range strings.Lines(string(b)) {
		mark := strings.TrimSpace(line)
		at, err := time.ParseDuration(strings.TrimPrefix(mark, "@"))
		switch {
		case strings.HasPrefix(mark, "-- "):
			name = strings.Trim(mark, "- ")
			s[name] = []piece{{}}
		case name == "": // a comment above the first answer
		case err == nil && mark[0] == '@':
			s[name] = append(s[name], piece{at: at})
		default:
			s[name][len(s[name])-1].text += line
		}
	}
	return s
}

// ServeHTTP implements http.Handler.
func (s Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // the client may have disconnected
	pieces, ok := s[r.Method+" "+r.URL.Path]
	if !ok {
		http.NotFound(w, r)
		return
	}
	stream := strings.HasPrefix(pieces[len(pieces)-1].text, "data:")
	w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream", false: "application/json"}[stream])
	sent := time.Duration(0)
	for _, p := range pieces {
		select {
		case <-time.After(p.at - sent):
		case <-r.Context().Done():
			return
		}
		sent = p.at
		if !stream {
			p.text = strings.TrimSuffix(p.text, "\n")
		}
		_, _ = io.WriteString(w, p.text)
		_ = http.NewResponseController(w).Flush()
	}
}
