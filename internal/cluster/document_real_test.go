//go:build real

package cluster_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// The commands of docs/cluster.md work. The test replaces the addresses and files, and lowers
// the load.
func TestRealDocumentedCommands(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/cluster.md"))(t)
	f := newField(t, here())
	f.token = "" // the commands have their own credentials
	f.serve()
	creds, tokens := credsLock(t), tokenLock(t)
	atCreds, atToken := startNATS(t, creds.server), startNATS(t, tokens.server)
	files := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(files, "token.txt"), []byte("right\n"), 0o600))
	for _, name := range []string{"agent.creds", "bench.creds"} {
		must.Do(t, os.Symlink(creds.right.Creds, filepath.Join(files, name)))
	}
	agents, benches := 0, 0
	for _, line := range regexp.MustCompile(`(?m)^    (.*)$`).FindAllStringSubmatch(string(text), -1) {
		if strings.HasPrefix(line[1], "helm ") {
			continue // the tests of deploy/check render the chart
		}
		_, command, ok := strings.Cut(line[1], "tacho ")
		if !ok {
			t.Errorf("what is to be done with %q?", line[1])
			continue
		}
		nats := atCreds
		if strings.Contains(command, "--token-file") {
			nats = atToken
		}
		words := strings.Fields(strings.NewReplacer(
			"nats://bench:4222", nats, "http://vllm:8000", f.target, "agent.creds", filepath.Join(files, "agent.creds"), "bench.creds", filepath.Join(files, "bench.creds"),
			"token.txt", filepath.Join(files, "token.txt"), "--agents 8", "--agents 1", "--request-rate 4000", "--request-rate 40", "--request-rate 400", "--request-rate 40",
			"--max-seconds 60", "--max-seconds 1").Replace(command))
		switch words[0] {
		case "agent":
			agents++
			f.start("here", "tacho", append(words, "--spool", t.TempDir())...).await(t, "is ready")
		case "bench":
			benches++
			f.end(f.start("here", "tacho", append(words, "--no-html", "--runs-dir", t.TempDir())...), "By Agent")
		case "keys":
			f.end(f.start("here", "tacho", words[0]), "keys:")
		default:
			t.Errorf("what is to be done with %q?", command)
		}
	}
	if agents != 2 || benches != 2 {
		t.Errorf("the page has %d commands for agents and %d for runs", agents, benches)
	}
}
