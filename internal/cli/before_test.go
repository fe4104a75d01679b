package cli_test

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
)

// A said contains the output of a run of the program.
type said struct {
	code        int
	out, errors string
	runs        string // directory of runs
}

// tacho runs the program in this process.
func tacho(t *testing.T, env map[string]string, interrupt chan os.Signal, args ...string) said {
	t.Helper()
	runs := filepath.Join(t.TempDir(), "runs")
	if args[0] == "bench" {
		more := []string{"bench", "--disable-tqdm"}
		if !slices.Contains(args, "--runs-dir") {
			more = append(more, "--runs-dir", runs)
		}
		args = append(more, args[1:]...)
	}
	var out, errors bytes.Buffer
	code := cli.Main(&cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errors, Network: &network, Width: func() int { return 80 },
		Getenv: func(name string) string { return env[name] }, Interrupt: interrupt, Kill: func(int) { panic("killed") },
	})
	return said{code, out.String(), errors.String(), runs}
}

// left reports whether the run left any files.
func (s *said) left(t *testing.T) bool {
	t.Helper()
	_, err := os.Stat(s.runs)
	return err == nil
}

// site returns a simulated server behind a handler that may answer instead. It
// counts generation requests.
func site(t *testing.T, answer func(w http.ResponseWriter, r *http.Request) bool) (url string, generated *atomic.Int64) {
	t.Helper()
	s := simulated(t)
	generated = new(atomic.Int64)
	srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "completions") {
			generated.Add(1)
		}
		if answer == nil || !answer(w, r) {
			s.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(func() { srv.CloseClientConnections(); srv.Close() })
	return srv.URL, generated
}

// refusing answers all generation requests, or requests to one path, with a
// status.
func refusing(path string, status int, body string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, r *http.Request) bool {
		if !strings.HasSuffix(r.URL.Path, path) {
			return false
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
		return true
	}
}

const (
	fewPrompts  = "--num-prompts 5 "
	fewTokens   = fewPrompts + shortTokens
	shortTokens = "--random-input-len 8 --random-output-len 2 --metrics-url none"
)

// A server that rejects requests is detected with one request, or with two if
// token ids may be the cause. The error names the problem and a fix.
func TestOneRequestFindsOut(t *testing.T) {
	for name, tc := range map[string]struct {
		answer func(http.ResponseWriter, *http.Request) bool
		tls    bool // HTTPS to a server without TLS
		args   string
		env    map[string]string
		sent   int64
		says   []string
		not    []string
	}{
		"no key":         {answer: refusing("completions", 401, `{"error":"no key"}`), args: "--model m", sent: 1, says: []string{"requires an API key", "OPENAI_API_KEY", "status 401: no key"}},
		"no key, asking": {answer: refusing("models", 401, `{"error":"no key"}`), says: []string{"requires an API key", "OPENAI_API_KEY", "no key"}},
		"wrong key": {
			answer: refusing("completions", 403, `{"error":"bad"}`), env: map[string]string{"OPENAI_API_KEY": "sk-wrong-key"},
			sent: 1, says: []string{"rejects the API key of OPENAI_API_KEY"}, not: []string{"sk-wrong-key"},
		},
		"no such model":    {answer: refusing("completions", 404, `{"error":{"message":"The model does not exist."}}`), args: "--model other", sent: 1, says: []string{"/v1/completions", "other", "The model does not exist", "it serves tiny", "--model", "--endpoint"}},
		"a model by 400":   {answer: refusing("completions", 400, `{"error":"Invalid model name"}`), args: "--model other", sent: 2, says: []string{"Invalid model name; it serves tiny"}},
		"bad request":      {answer: refusing("completions", 400, `{"error":"prompt must be short"}`), sent: 2, says: []string{"did not answer the test request: status 400: prompt must be short", "--no-trial"}},
		"bad question":     {answer: refusing("models", 400, "no"), says: []string{"does not list its models", "status 400: no"}},
		"a page of models": {answer: refusing("models", 200, "<html><title>Welcome to nginx!</title></html>"), says: []string{"GET /v1/models", "check the address", "Welcome to nginx", "--model"}, not: []string{"is it up", "cannot reach"}},
		"TLS on a plain port": {
			tls: true, says: []string{"does not use TLS", "write http://"}, not: []string{"check that the server is running"},
		},
		"with warm-ups": {answer: refusing("completions", 400, "no"), args: "--num-warmups 9", sent: 2, says: []string{"status 400"}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, generated := site(t, tc.answer)
				if tc.tls {
					url = strings.Replace(url, "http:", "https:", 1)
				}
				s := tacho(t, tc.env, nil, append([]string{"bench", "--base-url", url}, strings.Fields(fewTokens+" "+tc.args)...)...)
				if s.code != 1 || generated.Load() != tc.sent || strings.Contains(s.out, "Serving") {
					t.Errorf("exit %d after %d requests, want 1 after %d: %s", s.code, generated.Load(), tc.sent, s.errors)
				}
				if s.left(t) {
					t.Errorf("a directory of the run is left behind")
				}
				last := s.errors[strings.LastIndex(strings.TrimSpace(s.errors), "\n")+1:]
				for _, words := range tc.says {
					if !strings.Contains(last, words) {
						t.Errorf("%q does not say %q", last, words)
					}
				}
				for _, words := range tc.not {
					if strings.Contains(s.errors, words) {
						t.Errorf("%q says %q", s.errors, words)
					}
				}
			})
		})
	}
}

// Plain HTTP to a TLS port gives a specific error.
func TestPlainOnTLS(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := unstarted(t, http.NotFoundHandler())
		srv.Config.ErrorLog = log.New(io.Discard, "", 0)
		srv.StartTLS()
		defer srv.Close()
		s := tacho(t, nil, nil, append([]string{"bench", "--base-url", strings.Replace(srv.URL, "https:", "http:", 1)}, strings.Fields(fewTokens)...)...)
		if s.code != 1 || !strings.Contains(s.errors, "HTTPS server") || !strings.Contains(s.errors, "write https://") {
			t.Errorf("exit %d: %s", s.code, s.errors)
		}
	})
}

// There is one test request per server, which counts as a warm-up, and none
// with --no-trial.
func TestTrialsAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for args, want := range map[string]int64{
			fewPrompts:                                  6,
			fewPrompts + "--no-trial":                   5,
			fewPrompts + "--num-warmups 3":              8,
			fewPrompts + "--num-warmups 3 --no-trial":   8,
			fewPrompts + "--ready-check-timeout-sec 20": 6,
			"--num-prompts 2,3":                         6,
			"--num-prompts 2,3 --num-warmups 2":         9,
		} {
			url, generated := site(t, nil)
			s := tacho(t, nil, nil, append([]string{"bench", "--base-url", url}, strings.Fields(shortTokens+" "+args)...)...)
			if n := generated.Load(); s.code != 0 && s.code != 4 || n != want {
				t.Errorf("%s: exit %d, %d requests, want %d\n%s", args, s.code, n, want, s.errors)
			}
		}
		good, _ := site(t, nil)
		bad, generated := site(t, refusing("completions", 500, "broken"))
		s := tacho(t, nil, nil, append([]string{"bench", "--base-url", good, bad}, strings.Fields(fewTokens)...)...)
		if s.code != 1 || generated.Load() != 1 || !strings.Contains(s.errors, "the server at "+bad+" did not answer") {
			t.Errorf("exit %d after %d requests to the second server: %s", s.code, generated.Load(), s.errors)
		}
	})
}

// Ctrl-C before the first request is not reported as a server error.
func TestStoppedWhileAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, path := range []string{"models", "completions"} {
			interrupt := make(chan os.Signal, 1)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			url, _ := site(t, func(_ http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, path) {
					return false
				}
				_, _ = io.Copy(io.Discard, r.Body)
				interrupt <- os.Interrupt
				select {
				case <-r.Context().Done():
				case <-ctx.Done():
				}
				return true
			})
			s := tacho(t, nil, interrupt, append([]string{"bench", "--base-url", url}, strings.Fields(fewTokens)...)...)
			if s.code != 130 || s.left(t) || strings.Contains(s.errors, "cannot reach") || !strings.Contains(s.errors, "stopped before the measurement") {
				t.Errorf("%s: exit %d: %s", path, s.code, s.errors)
			}
			cancel()
		}
	})
}

// An explicit number of requests is a limit, even if it is the default and the
// time allows more.
func TestNumberGivenBesideTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, generated := site(t, nil)
		s := tacho(t, nil, nil, append([]string{"bench", "--base-url", url}, strings.Fields(
			"--num-prompts 1000 --max-seconds 60 --max-concurrency 16 --random-input-len 2 --random-output-len 1 --metrics-url none --no-trial")...)...)
		if n := generated.Load(); n != 1000 || !strings.Contains(s.out, "Successful requests:                     1000 ") {
			t.Errorf("%d requests, exit %d: %s", n, s.code, s.errors)
		}
	})
}

// A base URL with /v1, as used by SDKs, is accepted.
func TestVersionInTheAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, args := range []string{"/v1", "/v1/", "/v1 --endpoint /v1/completions", "/v1 --endpoint completions", "/ --endpoint /v1/completions"} {
			url, generated := site(t, nil)
			s := tacho(t, nil, nil, append([]string{"bench", "--base-url"}, strings.Fields(url+args+" "+fewTokens)...)...)
			if s.code != 0 && s.code != 4 || generated.Load() != 6 || !strings.Contains(s.out, "Successful requests:                     5 ") {
				t.Errorf("%s: exit %d after %d requests: %s", args, s.code, generated.Load(), s.errors)
			}
		}
	})
}

// There are three ways to set an API key. Errors name the one used, and no file
// contains the key.
func TestAPIKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const key = "sk-given-key-1"
		file := filepath.Join(t.TempDir(), "key")
		writeText(t, file, key+"\n")
		url, _ := site(t, func(w http.ResponseWriter, r *http.Request) bool {
			if r.Header.Get("Authorization") == "Bearer "+key {
				return false
			}
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return true
		})
		for _, tc := range []struct {
			env, args string
			code      int
			says      string
		}{
			{key, "", 0, ""},
			{"", "--api-key " + key, 0, ""},
			{"another", "--api-key-file " + file, 0, ""},
			{"another", "", 1, "rejects the API key of OPENAI_API_KEY"},
			{"", "--api-key another", 1, "rejects the API key of --api-key"},
			{"", "", 1, "requires an API key"},
			{"", "--api-key-file " + file + ".none", 2, "--api-key-file"},
			{"", "--api-key a --api-key-file b", 2, "cannot be combined with --api-key-file"},
		} {
			s := tacho(t, map[string]string{"OPENAI_API_KEY": tc.env}, nil, append([]string{"bench", "--base-url", url}, strings.Fields(fewTokens+" "+tc.args)...)...)
			if s.code != tc.code && (tc.code != 0 || s.code != 4) || !strings.Contains(s.errors, tc.says) || strings.Contains(s.errors+s.out, key) {
				t.Errorf("%q %s: exit %d: %s", tc.env, tc.args, s.code, s.errors)
			}
			_ = filepath.WalkDir(s.runs, func(path string, d os.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return err
				}
				if text, err := os.ReadFile(path); err != nil || bytes.Contains(text, []byte(key)) {
					t.Errorf("%s has the key, or cannot be read: %v", path, err)
				}
				return nil
			})
		}
	})
}

// Unwritable directories are detected before anything is sent, and the check
// leaves no files.
func TestPlacesAreChecked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		file := filepath.Join(dir, "file")
		writeText(t, file, "x")
		long := strings.Repeat("m", 300)
		for args, says := range map[string]string{
			"--runs-dir " + file:                                         "--runs-dir: " + file + " is not a directory",
			"--save-result --result-dir " + file + "/sub":                "--result-dir",
			"--save-result --result-dir " + dir + " --result-filename .": "is a directory",
			"--plot-timeline --result-dir " + file:                       "--result-dir: " + file + " is not a directory",
			"--save-result --result-filename " + long:                    "--result-filename: the file name mmm",
			"--report csv=" + dir + "/" + long:                           "--report: the file name mmm",
			"--fail-if failures>1% --junit " + dir:                       "--junit: " + dir + " is a directory",
			"--fail-if failures>1% --junit " + file + "/x.xml":           "--junit: ",
			"--ca-cert " + dir + "/none.pem":                             "none.pem",
			"--dataset-name custom --dataset-path " + dir + "/none":      "none",
			"--tokenizer " + dir + "/none.json":                          "none.json",
		} {
			var asked atomic.Int64
			url, _ := site(t, func(http.ResponseWriter, *http.Request) bool { asked.Add(1); return false })
			args := append([]string{"bench", "--base-url", url}, strings.Fields(fewTokens+" "+args)...)
			s := tacho(t, nil, nil, args...)
			if s.code != 2 || asked.Load() != 0 || !strings.Contains(s.errors, says) || s.left(t) {
				t.Errorf("%s: exit %d after %d questions: %s", args, s.code, asked.Load(), s.errors)
			}
		}
		if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	})
}

// Names of models and labels cannot make a file name that a file system rejects or a terminal executes.
func TestFileNamesFromModels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct{ model, label string }{
			{"a\x1b]0;owned\a\n../\u202egpj/b\x1b[2J\u202ec", ""},
			{strings.Repeat("m", 4000), ""},
			{strings.Repeat("m", 125), strings.Repeat("l", 125)},
			{strings.Repeat("模", 400), "\x1b\x7f\x00/.."},
		} {
			url, _ := site(t, nil)
			dir := t.TempDir()
			args := append([]string{"bench", "--base-url", url, "--model", c.model, "--served-model-name", "tiny", "--label", c.label}, strings.Fields(shortTokens+" --num-prompts 2,3 --skip-tokenizer-init --save-result --plot-timeline --report csv --fail-if failures>50% --junit "+dir+"/gate.xml --result-dir "+dir)...)
			s := tacho(t, nil, nil, args...)
			files, err := filepath.Glob(dir + "/*")
			if err != nil || len(files) != 5 || s.code != 0 && s.code != 4 {
				t.Errorf("%.30q: exit %d, %v, files %q, %s", c.model, s.code, err, files, s.errors)
			}
			_ = filepath.WalkDir(s.runs, func(path string, _ os.DirEntry, err error) error { files = append(files, path); return err })
			for _, f := range files {
				if strings.ContainsFunc(f, func(r rune) bool { return !unicode.IsPrint(r) }) {
					t.Errorf("%.30q: file %q", c.model, f)
				}
			}
		}
	})
}

// The dataset is detected from a file, or the user is asked to name it.
func TestDatasetOfAFile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		for name, tc := range map[string]struct {
			text string
			code int
			says string
		}{
			"chats.json":  {`[{"id":"1","conversations":[{"from":"human","value":"how are you today my friend"},{"from":"gpt","value":"I am well and you my friend"}]}]`, 0, "Using --dataset-name sharegpt for"},
			"own.jsonl":   {`{"prompt":"what is one"}`, 0, "Using --dataset-name custom for"},
			"azure.csv":   {"TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:17:03.9799600,8,2\n", 0, "Using --dataset-name azure for"},
			"text.txt":    {"a text of some words", 2, "--dataset-name to one of book, sonnet"},
			"trace.jsonl": {`{"timestamp":0,"input_length":8,"output_length":2,"hash_ids":[1]}`, 2, "--dataset-name to one of mooncake, bailian, timed_trace"},
			"what.jsonl":  {`{"x":1}`, 2, "unknown dataset, set --dataset-name"},
			"list.jsonl":  {`[1,2]`, 2, "unknown dataset, set --dataset-name"},
			"junk.bin":    {"\x00\x01", 2, "unknown dataset, set --dataset-name"},
		} {
			path := filepath.Join(dir, name)
			writeText(t, path, tc.text)
			url, generated := site(t, nil)
			s := tacho(t, nil, nil, "bench", "--base-url", url, "--dataset-path", path, "--num-prompts", "1", "--output-len", "2", "--metrics-url", "none", "--skip-chat-template")
			if s.code != tc.code && (tc.code != 0 || s.code != 4) || !strings.Contains(s.errors, tc.says) || (generated.Load() > 0) != (tc.code == 0) || strings.Contains(s.errors, "Go ") {
				t.Errorf("%s: exit %d after %d requests: %s", name, s.code, generated.Load(), s.errors)
			}
		}
		// Errors are about the file, not about Go types.
		path := filepath.Join(dir, "array.jsonl")
		writeText(t, path, `[1,2]`)
		s := tacho(t, nil, nil, "data", "--dataset-name", "custom", "--dataset-path", path)
		if s.code != 2 || strings.Contains(s.errors, "Go ") || strings.Contains(s.errors, "workload.") || !strings.Contains(s.errors, "array.jsonl") {
			t.Errorf("exit %d: %s", s.code, s.errors)
		}
	})
}

// A book shorter than a prompt gives an error.
func TestShortBook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "book.txt")
		writeText(t, path, strings.Repeat("once upon a time there was a book. ", 50))
		for tokens, want := range map[string]bool{"100": false, "3000": true} {
			s := tacho(t, nil, nil, "data", "--dataset-name", "book", "--dataset-path", path, "--book-input-len", tokens, "--num-prompts", "2")
			if s.code != 0 || strings.Contains(s.out, "is shorter than the prompts, so prompts repeat it") != want {
				t.Errorf("%s tokens: exit %d: %s%s", tokens, s.code, s.out, s.errors)
			}
		}
	})
}

// Usage errors have their own exit code.
func TestUsageExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, words := range []string{"benhc", "bench stray", "bench http://127.0.0.1:1", "bench --bakend x", "bench --backend vlm", "bench --dataset-name sharegtp --base-url http://127.0.0.1:1", "bench --port x", "find", "find --slo x", "find --slo ttft:p99<5ms --max-seconds 3 --base-url http://127.0.0.1:1"} {
			if s := tacho(t, nil, nil, strings.Fields(words)...); s.code != 2 || s.left(t) {
				t.Errorf("%s: exit %d: %s", words, s.code, s.errors)
			}
		}
	})
}

// An SLO that no load meets has its own exit code.
func TestFindExits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		srv := listen(t, simulated(t))
		defer srv.Close()
		if s := tacho(t, nil, nil, "find", "--runs-dir="+t.TempDir(), "--slo=ttft:p99<1ms", "--base-url="+srv.URL, "--random-input-len=5", "--random-output-len=5"); s.code != 3 {
			t.Errorf("exit %d: %s", s.code, s.errors)
		}
	})
}

func writeText(t *testing.T, path, text string) {
	t.Helper()
	must.Do(t, os.WriteFile(path, []byte(text), 0o600))
}
