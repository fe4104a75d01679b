//go:build real

package cluster_test

import (
	"bytes"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// The key of a plan reaches the agents and the server, but no disk: not in NATS, a spool or
// the run directory.
func TestRealSecretsReachNoDisk(t *testing.T) {
	const secret, header = "sk-canary-4711-of-the-plan", "canary-of-a-header"
	f := newField(t, here())
	nodes := f.nats()
	f.serve()
	f.answer(before)
	var shown, hidden atomic.Int64
	target := must.Get(url.Parse(f.target))(t)
	sim := httputil.NewSingleHostReverseProxy(target)
	sim.ErrorLog = log.New(io.Discard, "", 0) // a killed agent disconnects
	door := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") == "Bearer "+secret && r.Header.Get("X-Private") == header {
			shown.Add(1)
		} else {
			hidden.Add(1)
		}
		sim.ServeHTTP(w, r)
	}))
	defer door.Close()
	f.target = door.URL
	agents := []*process{f.agent("agent-0"), f.agent("agent-1")}
	key := filepath.Join(t.TempDir(), "key") // the only file with the key
	must.Do(t, os.WriteFile(key, []byte(secret), 0o600))
	p := f.bench(2, "--api-key-file", key, "--header", "X-Private="+header, "--agent-timeout", "300")
	f.awaitKept() // spools and streams have records now
	noneHas(t, f.dir, secret, header)
	agents[1].kill() // its spool remains
	noneHas(t, f.dir, secret, header)
	agents = append(agents, f.agent("agent-1"))
	f.answer(requests)
	f.end(p, "agent-lost")
	for _, n := range nodes {
		n.kill()
	}
	noneHas(t, f.dir, secret, header)
	if shown.Load() < 60 || hidden.Load() > 0 {
		t.Errorf("the server was shown both in %d requests, and not in %d", shown.Load(), hidden.Load())
	}
	for _, p := range append(agents, p) {
		if said := p.out.String(); strings.Contains(said, secret) || strings.Contains(said, header) {
			t.Errorf("somebody said it:\n%s", said)
		}
	}
}

// noneHas fails the test if files below a directory contain a word.
func noneHas(t *testing.T, dir string, words ...string) {
	t.Helper()
	files := 0
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return nil //nolint:nilerr // files come and go
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return nil //nolint:nilerr // likewise
		}
		files++
		for _, w := range words {
			if bytes.Contains(text, []byte(w)) {
				t.Errorf("%s holds %q", path, w)
			}
		}
		return nil
	}))
	if files < 10 {
		t.Errorf("only %d files were looked at", files)
	}
}
