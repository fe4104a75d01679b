// Package fakehub is a hub of models and datasets for tests. It implements the part of the Hugging Face API used by
// tacho, and injects faults.
package fakehub

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// A Hub serves datasets and models. Set its fields before the first request.
type Hub struct {
	URL          string
	Files        map[string]map[string]string // contents by "name@revision" and path
	Token        string                       // required bearer token; empty means none
	Gated        bool                         // all access to files is denied
	BreakAfter   int                          // number of bytes after which a response breaks off; 0 means never
	LengthError  int64                        // added to the announced length of a file
	WrongContent bool                         // serve other contents than announced

	mu       sync.Mutex
	requests []string // method and path of every request
	store    *httptest.Server
}

// New starts a hub and stops it at the end of the test. Like the real hub, it redirects downloads to a second
// server.
func New(t *testing.T) *Hub {
	t.Helper()
	h := &Hub{Files: map[string]map[string]string{}}
	front := httptest.NewServer(http.HandlerFunc(h.serve))
	h.store = httptest.NewServer(http.HandlerFunc(h.bytes))
	t.Cleanup(front.Close)
	t.Cleanup(h.store.Close)
	h.URL = front.URL
	return h
}

// Commit returns the commit of a repository at a revision.
func Commit(name, revision string) string {
	sum := sha256.Sum256([]byte(name + "@" + revision))
	return hex.EncodeToString(sum[:20])
}

// Requests returns all requests so far.
func (h *Hub) Requests() []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.requests)
}

func (h *Hub) serve(w http.ResponseWriter, r *http.Request) {
	h.mu.Lock()
	h.requests = append(h.requests, r.Method+" "+r.URL.Path)
	h.mu.Unlock()
	if h.Token != "" && r.Header.Get("Authorization") != "Bearer "+h.Token {
		w.Header().Set("X-Error-Code", "GatedRepo")
		http.Error(w, "gated", http.StatusUnauthorized)
		return
	}
	for _, kind := range []string{"/api/datasets/", "/api/models/"} {
		if rest, ok := strings.CutPrefix(r.URL.Path, kind); ok {
			h.list(w, rest)
			return
		}
	}
	rest := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/datasets"), "/")
	name, rest, cut := strings.Cut(rest, "/resolve/")
	commit, file, split := strings.Cut(rest, "/")
	for at, files := range h.Files {
		n, revision, _ := strings.Cut(at, "@")
		if content, there := files[file]; cut && split && n == name && Commit(n, revision) == commit && there {
			h.send(w, r, at, file, content)
			return
		}
	}
	http.NotFound(w, r)
}

func (h *Hub) list(w http.ResponseWriter, rest string) {
	name, revision, _ := strings.Cut(rest, "/revision/")
	files, ok := h.Files[name+"@"+revision]
	if !ok {
		w.Header().Set("X-Error-Code", "RepoNotFound")
		http.Error(w, "no such repository", http.StatusNotFound)
		return
	}
	type sibling struct {
		Name string `json:"rfilename"`
	}
	answer := struct {
		ID       string    `json:"id"`
		SHA      string    `json:"sha"`
		Siblings []sibling `json:"siblings"`
	}{name, Commit(name, revision), []sibling{{".gitattributes"}, {"README.md"}}}
	for f := range files {
		answer.Siblings = append(answer.Siblings, sibling{f})
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// send sends the properties of a file and the address of its contents.
func (h *Hub) send(w http.ResponseWriter, r *http.Request, at, file, content string) {
	if h.Gated {
		http.Error(w, "ask for access", http.StatusForbidden)
		return
	}
	sum := sha256.Sum256([]byte(content))
	w.Header().Set("X-Repo-Commit", "c0ffee")
	w.Header().Set("X-Linked-Etag", `"`+hex.EncodeToString(sum[:])+`"`)
	w.Header().Set("X-Linked-Size", strconv.FormatInt(int64(len(content))+h.LengthError, 10))
	http.Redirect(w, r, h.store.URL+"/?at="+url.QueryEscape(at)+"&file="+url.QueryEscape(file), http.StatusFound)
}

// bytes sends the contents of a file from the requested offset.
func (h *Hub) bytes(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "" {
		http.Error(w, "the token is not for me", http.StatusBadRequest)
		return
	}
	content := h.Files[r.URL.Query().Get("at")][r.URL.Query().Get("file")]
	if h.WrongContent {
		content = strings.ToUpper(content)
	}
	h.mu.Lock()
	h.requests = append(h.requests, "GET bytes "+r.Header.Get("Range"))
	h.mu.Unlock()
	from := 0
	if text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes="); ok {
		from, _ = strconv.Atoi(strings.TrimSuffix(text, "-"))
		if from >= len(content) {
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(content)-1, len(content)))
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(content)-from))
	if from > 0 {
		w.WriteHeader(http.StatusPartialContent)
	}
	content = content[from:]
	if h.BreakAfter > 0 && len(content) > h.BreakAfter {
		_, _ = w.Write([]byte(content[:h.BreakAfter]))
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	_, _ = w.Write([]byte(content))
}
