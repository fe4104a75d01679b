//go:build engines

package backend_test

import (
	"bufio"
	"bytes"
	"crypto/rand"
	"flag"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/transport"
)

// Tests with real servers, if available from package registries: `make test-engines`. With -update, the streams are
// stored in testdata/engines, and TestCapturedStreams reads them without a server.
var update = flag.Bool("update", false, "keep the streams of the servers in testdata/engines")

// installed returns the Python of an environment with the package, below .cache.
func installed(t *testing.T, name, pkg string) (python string) {
	t.Helper()
	dir := must.Get(filepath.Abs(filepath.Join("..", ".cache", name)))(t)
	python = filepath.Join(dir, "bin", "python")
	mark := filepath.Join(dir, "installed-"+pkg)
	if _, err := os.Stat(mark); err == nil {
		return python
	}
	for _, words := range [][]string{{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "-q", pkg}} {
		if out, err := exec.CommandContext(t.Context(), words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(words, " "), err, out)
		}
	}
	must.Do(t, os.WriteFile(mark, nil, 0o644))
	return python
}

// tinyModel returns the file of a model with random weights.
func tinyModel(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tiny.gguf")
	must.Do(t, writeTinyGGUF(path))
	return path
}

// startServer runs a server until the test ends. startServer finds the address after word in the server's output.
func startServer(t *testing.T, cmd *exec.Cmd, word string) string {
	t.Helper()
	out, in, err := os.Pipe()
	must.Do(t, err)
	cmd.Stdout, cmd.Stderr = in, in
	must.Do(t, cmd.Start())
	_ = in.Close() // the server owns the pipe now
	t.Cleanup(func() { _ = cmd.Process.Signal(os.Interrupt); _ = cmd.Wait(); _ = out.Close() })
	var log strings.Builder
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		log.WriteString(lines.Text() + "\n")
		if _, address, ok := strings.Cut(lines.Text(), word); ok {
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return strings.Trim(strings.Fields(address)[0], `"`)
		}
	}
	t.Fatalf("the server did not start:\n%s", log.String())
	return ""
}

// freePort returns an unused port, because this server does not report its port.
func freePort(t *testing.T) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer func() { _ = l.Close() }()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// A recorder forwards requests to a server and stores the responses.
type recorder struct {
	mu   sync.Mutex
	last bytes.Buffer
}

func (r *recorder) start(t *testing.T, server string) string {
	t.Helper()
	target := must.Get(url.Parse(server))(t)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.FlushInterval = -1
	proxy.ModifyResponse = func(resp *http.Response) error {
		r.mu.Lock()
		r.last.Reset()
		r.mu.Unlock()
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.TeeReader(resp.Body, r), resp.Body}
		return nil
	}
	srv := httptest.NewServer(proxy)
	t.Cleanup(srv.Close)
	return srv.URL
}

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last.Write(b)
}

func (r *recorder) keep(t *testing.T, name string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if *update {
		path := filepath.Join("testdata", "engines", name+".txt")
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, r.last.Bytes(), 0o644))
	}
}

// detected returns the result of Detect.
func detected(t *testing.T, server string) (kind, evidence string) {
	t.Helper()
	client := must.Get(transport.New(transport.Options{BaseURL: server}))(t)
	defer client.Close()
	found, evidence, err := backend.Detect(t.Context(), backend.Options{Client: client})
	must.Do(t, err)
	return found.Name, evidence
}

// engineKey is the API key for servers that require one.
var engineKey = "sk-" + rand.Text()

// askTokens is the number of tokens requested from real servers.
const askTokens = 24

// recordStream sends a request in one of the server's protocols and stores the response.
func recordStream(t *testing.T, engine, server string, kind backend.Kind) *tacho.Record {
	t.Helper()
	var rec recorder
	b := newBackend(t, kind.Name, rec.start(t, server), backend.Options{Model: "tiny", APIKey: engineKey, KeepText: true, Extra: map[string]any{"seed": 3}})
	r := &tacho.Request{ID: "r1", Input: tacho.Input{Text: "on the other hand"}, MaxTokens: askTokens, IgnoreEOS: kind.ExactLength}
	got := send(t.Context(), t, b, r)
	rec.keep(t, engine+"-"+kind.Name)
	if got.Failure != nil {
		t.Fatal(got.Failure)
	}
	if got.OutputFrom != tacho.FromUsage || got.Output == 0 || got.Output > askTokens || len(got.Events) == 0 || got.Finish == "" {
		t.Errorf("%d tokens by %s in %d events, %+v, finish %q", got.Output, got.OutputFrom, len(got.Events), got.Usage, got.Finish)
	}
	checkTimes(t, got)
	return got
}

// sendConcurrently sends requests of a kind from several workers over one transport and returns the number of
// requests started over.
func sendConcurrently(t *testing.T, server string, kind backend.Kind) (client *transport.Client, startedOver int) {
	t.Helper()
	const workers, each = 16, 12
	client = must.Get(transport.New(transport.Options{BaseURL: server}))(t)
	t.Cleanup(client.Close)
	b := must.Get(kind.New(backend.Options{Client: client, Model: "tiny"}))(t)
	var again atomic.Int64
	var all sync.WaitGroup
	for range workers {
		all.Go(func() {
			for range each {
				call, err := b.Prepare(&tacho.Request{Input: tacho.Input{Text: "on the other hand"}, MaxTokens: 4})
				if err != nil {
					t.Error(err)
					return
				}
				rec := &tacho.Record{Timeline: tacho.NewTimeline(0)}
				call.Do(t.Context(), time.Now(), rec, tacho.CallOptions{})
				if rec.Failure != nil {
					t.Errorf("%v, on connection %d", rec.Failure, rec.Conns)
				}
				if rec.Conns > 1 {
					again.Add(1)
				}
			}
		})
	}
	all.Wait()
	return client, int(again.Load())
}
