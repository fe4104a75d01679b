package cli_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/must"
)

// canary contains characters that URLs, JSON and HTML escape.
const canary = `Kan4ri"/+&=42`

// canarySeen matches the canary in any encoding: escaping keeps the letters,
// and base64 has three forms, depending on the position.
var canarySeen = func() *regexp.Regexp {
	words := []string{"Kan4ri"}
	for skip := range 3 {
		b := base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", skip) + canary))
		words = append(words, regexp.QuoteMeta(b[4:12]))
	}
	return regexp.MustCompile(strings.Join(words, "|"))
}()

// A parrot is a server that repeats everything it receives: in names, finish
// reasons, text, errors, headers and paths, and in several encodings.
type parrot struct {
	status int  // of generation requests
	broken bool // stream invalid JSON
}

func (p parrot) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	sent := fmt.Sprintf("%v %s %s", r.Header, r.URL, body)
	if user, password, ok := r.BasicAuth(); ok {
		sent += " " + user + " " + password
	}
	words, _ := json.Marshal(strings.Join([]string{sent, url.QueryEscape(sent), strings.TrimSpace(quoted(sent))}, " "))
	if len(words) > 4000 {
		words, _ = json.Marshal(sent[:min(len(sent), 4000)])
	}
	w.Header().Set("X-Echo", url.QueryEscape(sent))
	switch {
	case r.URL.Path == "/v1/models":
		_, _ = fmt.Fprintf(w, `{"data":[{"id":%s}]}`, words)
	case r.URL.Path == "/metrics":
		_, _ = fmt.Fprintf(w, "vllm:num_requests_running{model_name=%s} 1\n", words)
	case r.URL.Path != "/v1/completions":
		w.WriteHeader(http.StatusForbidden)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%s}}`, words)
	case p.status != 0:
		w.WriteHeader(p.status)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%s}}`, words)
	default:
		w.Header().Set("Content-Type", "text/event-stream")
		if p.broken {
			_, _ = fmt.Fprintf(w, "data: {%s\n\n", words)
			return
		}
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"text\":%s}]}\n\ndata: {\"choices\":[{\"text\":\"\",\"finish_reason\":%s}]}\n\ndata: [DONE]\n\n", words, words)
	}
}

// handing are the ways to pass a secret to tacho, as arguments and environment
// variables.
func handing(t *testing.T) map[string]func(server string) (args []string, vars map[string]string) {
	t.Helper()
	inURL := func(server, user string) string { return strings.Replace(server, "://", "://"+user+"@", 1) }
	escaped := url.QueryEscape(canary)
	at := func(args ...string) func(string) ([]string, map[string]string) {
		return func(server string) ([]string, map[string]string) {
			return append([]string{"--base-url", server}, args...), nil
		}
	}
	byVar := func(name, value string) func(string) ([]string, map[string]string) {
		return func(server string) ([]string, map[string]string) {
			return []string{"--base-url", server}, map[string]string{name: value}
		}
	}
	byBase := func(user string) func(string) ([]string, map[string]string) {
		return func(server string) ([]string, map[string]string) {
			return []string{"--base-url", inURL(server, user)}, nil
		}
	}
	byMetrics := func(change func(string) string) func(string) ([]string, map[string]string) {
		return func(server string) ([]string, map[string]string) {
			return []string{"--base-url", server, "--metrics-url", change(server + "/metrics"), change(server + "/nothing")}, nil
		}
	}
	body := `{"api_key":` + quoted(canary) + `,"nested":{"secret":[` + quoted(canary) + `]}}`
	return map[string]func(string) ([]string, map[string]string){
		"OPENAI_API_KEY":     byVar("OPENAI_API_KEY", canary),
		"HF_TOKEN":           byVar("HF_TOKEN", canary),
		"HF_ENDPOINT":        byVar("HF_ENDPOINT", "http://me:"+escaped+"@127.0.0.1:1"),
		"https_proxy":        byVar("https_proxy", "http://me:"+escaped+"@127.0.0.1:1"),
		"password":           byBase("me:" + escaped),
		"user":               byBase(escaped),
		"unescaped password": byBase("me:Kan4ri+&=42"),
		"key":                at("--api-key", canary),
		"key=":               at("--api-key=" + canary),
		"key file":           at("--api-key-file", fileOf(t, canary+"\n")),
		"bad key file":       at("--api-key-file", fileOf(t, canary+"\n"+canary+"\n")),
		"both keys":          at("--api-key", canary, "--api-key-file", fileOf(t, canary)),
		"header":             at("--header", "Authorization=Bearer "+canary),
		"basic":              at("--header", "Authorization=Basic "+base64.StdEncoding.EncodeToString([]byte("me:"+canary))),
		"other header":       at("--header", "X-Other="+canary, "Api-Key="+canary),
		"cookie":             at("--header", "Cookie=a=b; sid="+canary+"; c=d"),
		"short flag":         at("--hea", "X-Api-Key="+canary),
		"extra body":         at("--extra-body", body),
		"template":           at("--chat-template-kwargs", body),
		"bad body":           at("--extra-body", body[:len(body)-4]),
		"unquoted body":      at("--extra-body", "{api_key: "+canary+"}"),
		"mix":                at("--mix", "dataset-name=random header.authorization="+canary),
		"bad mix":            at("--mix", "dataset-name=random header.authorization=Bearer "+canary),
		"metadata":           at("--metadata", "hf_token="+canary),
		"endpoint":           at("--endpoint", "/v1/completions?code="+escaped),
		"salt":               at("--cache-salt", canary, "--backend", "vllm"),
		"label":              at("--label", "run "+canary, "--header", "X-Api-Key="+canary),
		"metrics user":       byMetrics(func(u string) string { return inURL(u, "me:"+escaped) }),
		"metrics query":      byMetrics(func(u string) string { return u + "?token=" + escaped }),
		"bad URL": only(func(server string) []string {
			return []string{"--base-url", "http://me:Kan4ri/x@" + server[len("http://"):]}
		}),
		"bad scheme":    only(func(string) []string { return []string{"--base-url", "ftp://" + escaped + "@host"} }),
		"no flag":       only(func(server string) []string { return []string{inURL(server, escaped)} }),
		"unknown flag":  at("--hedar", "X-Api-Key="+canary),
		"wrong header":  at("--header", "X-Api-Key: "+canary),
		"wrong numbers": at("--header", "X-Api-Key="+canary, "--num-prompts", "many"),
		"dataset":       at("--dataset-name", "custom", "--dataset-path", fileOf(t, strings.Repeat(`{"prompt":"one","headers":{"X-Api-Key":`+quoted(canary)+"}}\n", 3))),
	}
}

// only passes flags and no environment variables.
func only(flags func(server string) []string) func(server string) ([]string, map[string]string) {
	return func(server string) ([]string, map[string]string) { return flags(server), nil }
}

func fileOf(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.jsonl")
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// No secret appears in any output or file, for every way to pass it and every
// way the server repeats it. With the race detector, each way is tested with
// one server only, because all combinations take minutes; make test runs the
// rest.
func TestSecretsStaySecret(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		servers := map[string]string{"unreachable": unreachable}
		for name, p := range map[string]parrot{"parrot": {}, "401": {status: 401}, "broken": {broken: true}} {
			srv := listen(t, p)
			t.Cleanup(srv.Close)
			servers[name] = srv.URL
		}
		common := strings.Fields("--num-prompts 1,2 --random-input-len 3 --random-output-len 1 --skip-tokenizer-init --no-trial " +
			"--save-result --save-detailed --plot-timeline --metrics-interval 100ms --disable-tqdm=false")
		ways := handing(t)
		kept, measured := 0, 0
		for i, way := range slices.Sorted(maps.Keys(ways)) {
			for j, server := range slices.Sorted(maps.Keys(servers)) {
				if (raced || testing.Short()) && j != i%len(servers) {
					continue
				}
				where := fmt.Sprintf("%s, %s", way, server)
				dir := t.TempDir()
				args, vars := ways[way](servers[server])
				runs := filepath.Join(dir, "runs")
				code, out, errs := inside(vars, slices.Concat([]string{"bench", "--runs-dir", runs, "--result-dir", filepath.Join(dir, "results")}, common, args)...)
				look(t, where+": stdout", out)
				look(t, where+": stderr", errs)
				if code == 0 || code == 4 {
					measured++
				}
				if way == "wrong header" && code != 2 {
					t.Errorf("%s: exit %d", where, code)
				}
				_, out, errs = inside(vars, slices.Concat([]string{"data", "--write", filepath.Join(dir, "data.jsonl"), "--num-prompts", "1"}, args[2*min(1, len(args)-1):])...)
				look(t, where+": data", out+errs)
				kept += lookInto(t, where, dir)
				for _, run := range directories(t, runs) {
					for _, format := range []string{"text", "json", "csv"} {
						_, out, errs = inside(vars, "report", "--format", format, run)
						look(t, where+": report "+format, out+errs)
					}
				}
			}
		}
		if !raced && !testing.Short() && (kept < 400 || measured < 60) {
			t.Errorf("only %d files were kept, by %d runs that measured: has a flag been renamed?", kept, measured)
		}
	})
}

func look(t *testing.T, where, text string) {
	t.Helper()
	if at := canarySeen.FindStringIndex(text); at != nil {
		t.Errorf("%s: %q", where, text[max(0, at[0]-80):min(len(text), at[1]+40)])
	}
}

// lookInto searches the names and contents of all files.
func lookInto(t *testing.T, where, dir string) (files int) {
	t.Helper()
	must.Do(t, filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		rel := strings.TrimPrefix(path, dir)
		look(t, where+": a name", rel)
		info, err := d.Info()
		if err != nil {
			return err
		}
		if rights := info.Mode().Perm(); strings.Count(rel, "/") > 2 && rights&0o077 != 0 {
			t.Errorf("%s: %s has the rights %v", where, rel, rights)
		}
		if d.IsDir() {
			return nil
		}
		files++
		b, err := os.ReadFile(path)
		look(t, where+": "+rel, string(b))
		for line := range strings.Lines(string(b)) {
			if strings.HasSuffix(rel, ".jsonl") && !json.Valid([]byte(line)) {
				t.Errorf("%s: %s: no JSON: %s", where, rel, line)
			}
		}
		return err
	}))
	return files
}

func directories(t *testing.T, dir string) []string {
	t.Helper()
	return must.Get(filepath.Glob(filepath.Join(dir, "*")))(t)
}
