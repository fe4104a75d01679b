//go:build oracle

package sim

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// heard is an answer as a client received it.
type heard struct {
	Text   string `json:"text"`
	Finish string `json:"finish"`
	Usage  int    `json:"usage"`
}

// The official clients stream from every emulated server and report its errors.
func TestOracleClients(t *testing.T) {
	node, python := nodeClients(t), pythonClient(t)
	for _, engine := range Engines() {
		t.Run(engine, func(t *testing.T) {
			address := serveOracle(t, engine)
			commands := map[string][]string{
				"node":   {"node", node, address},
				"python": {python, filepath.Join("testdata", "oracle", "clients.py"), address},
			}
			if emulatedServerOf(engine).openai.textOnly {
				commands["python"] = append(commands["python"], "text-only")
			}
			for name, command := range commands {
				cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
				cmd.Stderr = os.Stderr
				out, err := cmd.Output()
				if err != nil {
					t.Errorf("%s: %v", name, err)
					continue
				}
				got := map[string]heard{}
				if err := json.Unmarshal(out, &got); err != nil {
					t.Fatalf("%s: %v\n%s", name, err, out)
				}
				if diff := cmp.Diff(wantHeard(got), got); diff != "" {
					t.Errorf("%s received (-want +got):\n%s", name, diff)
				}
			}
		})
	}
}

func serveOracle(t *testing.T, engine string) (address string) {
	t.Helper()
	s := must.Get(New(Options{Engine: engine, Model: "m"}))(t)
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
	return "http://" + l.Addr().String()
}

// wantHeard returns the expected result of each conversation.
func wantHeard(conversations map[string]heard) map[string]heard {
	said := func(p prompt) string { return string((&generation{prompt: p}).text(nil, 0, 4)) }
	var text, ids prompt
	text.AddText("a b c")
	ids.AddIDs([]int32{1, 2, 3})
	want := map[string]heard{}
	for name := range conversations {
		w := heard{Text: said(text), Finish: finishLength, Usage: 4}
		switch {
		case strings.Contains(name, "fails"):
			w = heard{Finish: "failed"}
		case name == "openai completions of ids":
			w.Text = said(ids)
		case name == "openai responses":
			w.Finish = "max_output_tokens"
		case name == "openai embeddings":
			w = heard{Text: "2 of 1024", Usage: 3}
		case name == "openai models":
			w = heard{Text: "m"}
		case name == "anthropic":
			w.Finish = "max_tokens"
		case name == "anthropic count":
			w = heard{Usage: 3}
		}
		want[name] = w
	}
	return want
}

// oracleDir is the installation directory of the clients.
func oracleDir(t *testing.T, name string) string {
	t.Helper()
	dir := must.Get(filepath.Abs(filepath.Join("..", ".cache", name)))(t)
	must.Do(t, os.MkdirAll(dir, 0o755))
	return dir
}

func install(t *testing.T, dir string, command ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, out)
	}
}

// nodeClients returns the path of the script next to the installed clients.
func nodeClients(t *testing.T) string {
	t.Helper()
	dir := oracleDir(t, "sim-clients")
	for _, p := range []string{"openai", "@anthropic-ai/sdk", "ollama"} {
		if _, err := os.Stat(filepath.Join(dir, "node_modules", p)); err != nil {
			install(t, dir, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "openai", "@anthropic-ai/sdk", "ollama")
			break
		}
	}
	script := must.Get(os.ReadFile(filepath.Join("testdata", "oracle", "clients.mjs")))(t)
	path := filepath.Join(dir, "clients.mjs")
	must.Do(t, os.WriteFile(path, script, 0o644))
	return path
}

// pythonClient returns an interpreter with the openai package: OPENAI_PYTHON, or
// one in a new virtual environment.
func pythonClient(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("OPENAI_PYTHON"); named != "" {
		return named
	}
	dir := oracleDir(t, "openai-python")
	python := filepath.Join(dir, "bin", "python")
	if exec.CommandContext(t.Context(), python, "-c", "import openai").Run() != nil {
		install(t, dir, "python3", "-m", "venv", dir)
		install(t, dir, python, "-m", "pip", "install", "--quiet", "openai")
	}
	return python
}
