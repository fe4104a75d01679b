package cli_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/must"
)

// A listener is a server that records its requests.
type listener struct {
	mu     sync.Mutex
	bodies []string
}

func (s *listener) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path != "/v1/completions" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	s.mu.Lock()
	s.bodies = append(s.bodies, fmt.Sprint(r.Header["X-Tier"], string(body)))
	s.mu.Unlock()
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w, "data: {\"choices\":[{\"text\":\"a\"}]}\n\ndata: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"length\"}]}\n\ndata: [DONE]\n\n")
}

// asked runs bench and returns the sorted request bodies, and when each request
// was due.
func (s *listener) asked(t *testing.T, args ...string) (bodies, due []string, runDir string) {
	t.Helper()
	s.bodies = nil
	runs := t.TempDir()
	code, _, errs := inside(nil, append([]string{"bench", "--runs-dir", runs}, args...)...)
	kept := directories(t, runs)
	if code != 0 && code != 4 || len(kept) != 1 {
		t.Fatalf("exit %d: %s", code, errs)
	}
	b := must.Get(os.ReadFile(filepath.Join(kept[0], "records.jsonl")))(t)
	for line := range strings.Lines(string(b)) {
		var r struct {
			Stage   int    `json:"stage"`
			Session uint64 `json:"session"`
			Due     int64  `json:"due_ns"`
		}
		must.Do(t, json.Unmarshal([]byte(line), &r))
		due = append(due, fmt.Sprintf("%d %d %d", r.Stage, r.Session, r.Due))
	}
	slices.Sort(due)
	slices.Sort(s.bodies)
	return s.bodies, due, kept[0]
}

// A plan printed by --dry-run and the plan of a stored run send the same
// requests at the same times as the original flags.
func TestPlanSendsTheSame(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &listener{}
		srv := listen(t, server)
		t.Cleanup(srv.Close)
		flags := []string{
			"--base-url", srv.URL, "--model", "m", "--skip-tokenizer-init", "--no-trial", "--seed", "7", "--num-prompts", "3,5", "--request-rate", "200", "--burstiness", "0.5",
			"--random-input-len", "uniform(3,9)", "--random-output-len", "1", "--extra-body", `{"a":{"b":[1,"2"]}}`, "--header", "X-Tier=gold", "X-Api-Key=k-12345678", "--top-p", "0.5",
		}
		code, plan, errs := inside(nil, append([]string{"bench", "--dry-run", "--runs-dir", t.TempDir()}, flags...)...)
		if code != 0 || len(server.bodies) > 0 {
			t.Fatalf("exit %d, %d requests were sent: %s", code, len(server.bodies), errs)
		}
		bodies, due, kept := server.asked(t, flags...)
		if len(bodies) != 8 || len(due) != 8 || len(slices.Compact(slices.Clone(due))) != 8 || strings.HasSuffix(due[7], " 0") || !strings.HasPrefix(bodies[0], "[gold]{") {
			t.Fatalf("%d requests, %d records, the first %s", len(bodies), len(due), bodies[0])
		}
		again := []string{"--header", "X-Tier=gold", "X-Api-Key=k-12345678"} // a key is a secret
		for name, path := range map[string]string{"printed": fileOf(t, plan), "kept": kept, "manifest": filepath.Join(kept, "manifest.json")} {
			b, d, _ := server.asked(t, append([]string{"--plan", path}, again...)...)
			if !slices.Equal(b, bodies) || !slices.Equal(d, due) {
				t.Errorf("the plan that was %s sends %q at %q, not %q at %q", name, b, d, bodies, due)
			}
		}
		b, _, _ := server.asked(t, append([]string{"--plan", kept, "--seed", "8", "--num-prompts", "2"}, again...)...)
		if len(b) != 2 || slices.Contains(bodies, b[0]) {
			t.Errorf("flags go before the plan: %q", b)
		}
		if code, _, errs := inside(nil, "bench", "--plan", kept); code != 2 || !strings.Contains(errs, "set it with --header") {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
}

// data shows the requests of a plan, and flags override the plan.
func TestDataTakesAPlan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		flags := []string{"--num-prompts", "4", "--random-input-len", "uniform(3,9)", "--random-output-len", "1", "--seed", "7", "--base-url", "http://127.0.0.1:1"}
		_, printed, _ := inside(nil, append([]string{"bench", "--dry-run"}, flags...)...)
		code, want, errs := inside(nil, append([]string{"data"}, flags...)...)
		if code != 0 || !strings.Contains(want, "4 sessions") {
			t.Fatalf("exit %d: %s%s", code, want, errs)
		}
		file := fileOf(t, printed)
		if code, got, errs := inside(nil, "data", "--plan", file); code != 0 || got != want {
			t.Errorf("exit %d: %s%s, not %s", code, got, errs, want)
		}
		if code, got, errs := inside(nil, "data", "--plan", file, "--num-prompts", "2"); code != 0 || !strings.Contains(got, "2 sessions") {
			t.Errorf("exit %d: %s%s, want 2 sessions", code, got, errs)
		}
		if code, _, errs := inside(nil, "data", "--plan", fileOf(t, "prot: 1")); code != 2 || !strings.Contains(errs, "did you mean port?") {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
}

// --dry-run prints no seed unless one was given, and its output is a valid
// plan.
func TestDryRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, args := range [][]string{nil, {"--sim", "tgi-405b-mi300x", "--num-prompts", "1000"}, {"--max-seconds", "3", "--request-rate", "5"}} {
			code, plan, errs := inside(nil, append([]string{"bench", "--dry-run"}, args...)...)
			if code != 0 || strings.Contains(plan, "seed") || plan == "" {
				t.Errorf("%q: exit %d: %s%s", args, code, plan, errs)
			}
			code, again, errs := inside(nil, "bench", "--dry-run", "--plan", fileOf(t, plan))
			if code != 0 || again != plan {
				t.Errorf("%q: exit %d: %s is read as %s%s", args, code, plan, again, errs)
			}
		}
		for _, args := range [][]string{{"--goodput", "x"}, {"--dataset-path", "no-such-file"}, {"--save-detailed"}, {"--plan", "no-such-file"}, {"--plan", fileOf(t, "prot: 1")}} {
			if code, out, errs := inside(nil, append([]string{"bench", "--dry-run"}, args...)...); code != 2 || out != "" || errs == "" {
				t.Errorf("%q: exit %d: %s%s", args, code, out, errs)
			}
		}
	})
}

// Printed plans contain no secrets, and secrets in a plan file appear in no
// output.
func TestSecretsOfPlans(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := listen(t, parrot{status: 401})
		t.Cleanup(srv.Close)
		ways := handing(t)
		for _, way := range slices.Sorted(maps.Keys(ways)) {
			args, vars := ways[way](srv.URL)
			_, out, errs := inside(vars, append([]string{"bench", "--dry-run"}, args...)...)
			look(t, way, out+errs)
		}
		for _, line := range []string{
			"api_key: " + quoted(canary), "header: [" + quoted("X-Api-Key="+canary) + "]", `extra_body: {api_key: ` + quoted(canary) + "}",
			"extra_body: '{api_key: Kan4ri'", "api_key: *Kan4ri", "api_key: Kan4ri: x", "header: [X-Api-Key: Kan4ri12]", "endpoint: /v1?code=Kan4ri12\nport: Kan4ri12",
		} {
			dir := t.TempDir()
			for _, dry := range []string{"--dry-run=false", "--dry-run"} {
				_, out, errs := inside(nil, "bench", dry, "--plan", fileOf(t, line+"\n"), "--base-url", srv.URL, "--num-prompts", "1", "--runs-dir", dir)
				look(t, line, out+errs)
			}
			lookInto(t, line, dir)
		}
	})
}
