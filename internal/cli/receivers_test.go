package cli_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
)

// A key goes to a server that only a stored run names if the user agrees, or sent a key to this server before.
func TestKeysForServersOfStoredRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "sk-for-my-server"
		var keys atomic.Int64
		count := func(_ http.ResponseWriter, r *http.Request) bool {
			if strings.Contains(r.Header.Get("Authorization")+r.Header.Get("X-Key"), key) {
				keys.Add(1)
			}
			return false
		}
		url, _ := site(t, count)
		other, _ := site(t, count)
		few := strings.Fields(fewTokens)
		made := tacho(t, nil, nil, append([]string{"bench", "--base-url", url}, few...)...)
		runs, err := filepath.Glob(made.runs + "/*")
		if err != nil || len(runs) != 1 {
			t.Fatal(runs, err, made.errors)
		}
		if err := os.Remove(filepath.Join(runs[0], "summary.json")); err != nil { // so that the run can be resumed
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "plan.yaml")
		writeText(t, file, "base_url: ["+other+"]\n")
		const refused = "and you sent no key there before"
		for _, c := range []struct {
			name, key, answer string
			args              string
			sent              bool
			says              string
		}{
			{"no key", "", "", "bench --plan RUN", false, ""},
			{"off a terminal", key, "", "bench --plan RUN", false, refused},
			{"resumed", key, "", "bench --resume RUN --progress none", false, refused},
			{"found", key, "", "find --slo ttft:p99<1s --plan RUN", false, refused},
			{"header", "", "", "bench --plan RUN --header X-Key=" + key, false, refused},
			{"another port is no other server", key, "", "bench --plan RUN --port 1", false, refused},
			{"no", key, "\n", "bench --plan RUN", false, "Send OPENAI_API_KEY? [y/N]"},
			{"named", key, "", "bench --plan RUN --base-url " + other, true, ""},
			{"a plan in a file", key, "", "bench --plan " + file, true, ""},
			{"planned", key, "", "bench --plan RUN --dry-run", false, ""},
			{"yes", key, "y\n", "bench --plan RUN", true, "Send OPENAI_API_KEY? [y/N]"},
			{"known", key, "", "bench --plan RUN", true, ""},
		} {
			keys.Store(0)
			args := strings.Fields(strings.ReplaceAll(c.args, "RUN", runs[0]))
			args = append(args, "--runs-dir", t.TempDir(), "--disable-tqdm")
			if !strings.Contains(c.args, "--resume") {
				args = append(args, few...)
			}
			var out strings.Builder
			code := cli.Main(&cli.Env{
				Args: args, Stdin: strings.NewReader(c.answer), Stdout: &out, Stderr: &out, Network: &network, Width: func() int { return 300 }, Height: func() int { return 24 },
				Getenv:   func(name string) string { return map[string]string{"OPENAI_API_KEY": c.key}[name] },
				Terminal: c.answer != "",
			})
			if sent := keys.Load() > 0; sent != c.sent || !strings.Contains(out.String(), c.says) || (c.says == refused) != (code == 2) && c.answer == "" {
				t.Fatalf("%s: exit %d, key sent %t: %s", c.name, code, sent, &out)
			}
		}
	})
}
