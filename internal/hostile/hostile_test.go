package hostile

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tacho"
	"tacho/backend"
	"tacho/cli"
	"tacho/store"
)

const (
	// asTacho makes the test binary tacho, and names a file for its memory: each
	// trial has a process of its own.
	asTacho  = "HOSTILE_AS_TACHO"
	requests = 4
	// mostMemory is what a process may hold, in bytes. The race detector keeps
	// several bytes for each of the program's.
	mostMemory = 300 << 20
	// patience is how long a trial may take before it hangs: far longer than any.
	patience = 2 * time.Minute
	// timeout is that of a request to a server that says no more.
	timeout = "1"
)

func TestMain(m *testing.M) {
	if file := os.Getenv(asTacho); file != "" {
		code := cli.Main(cli.System())
		// The kernel's own word on a child counts what its parent held, too.
		status, _ := os.ReadFile("/proc/self/status")
		if err := os.WriteFile(file, status, 0o600); err != nil {
			panic(err)
		}
		os.Exit(code)
	}
	os.Exit(m.Run())
}

// peak is the most memory that a process held, by what Linux said of it; 0 where
// it says nothing.
func peak(file string) int64 {
	status, _ := os.ReadFile(file)
	_, after, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	_, _ = fmt.Sscan(after, &kilobytes)
	return kilobytes << 10
}

// poses are the engines the simulator has to pose as, where the name of a kind
// is not the engine's.
var poses = map[string]string{
	"openai": "vllm", "openai-chat": "vllm", "openai-responses": "vllm", "openai-audio": "vllm", "transformers": "vllm",
	"ollama-chat": "ollama", "lmdeploy-generate": "lmdeploy", "deepspeed-mii": "mii", "deepspeed-mii-generate": "mii-generate",
	"openai-embeddings": "vllm", "openai-embeddings-chat": "vllm", "openai-embeddings-clip": "vllm", "openai-embeddings-vlm2vec": "vllm",
	"infinity-embeddings": "vllm", "infinity-embeddings-clip": "vllm", "vllm-pooling": "vllm", "vllm-rerank": "vllm",
}

// class is what a kind's answers look like, for the table of causes.
func class(k *backend.Kind) string {
	switch {
	case k.Pools:
		return "document"
	case strings.HasPrefix(k.Name, "ollama"):
		return "lines"
	case k.Name == "triton":
		return "unmarked" // streams just end
	}
	return "events"
}

// loops are the flags of an open and of a closed loop.
var loops = map[string][]string{"open": {"--request-rate", "500"}, "closed": {"--max-concurrency", "2"}}

// A trial is a shape, a kind and a loop.
type trial struct {
	shape *shape
	kind  *backend.Kind
	loop  string
	all   bool // questions get bent answers too
}

func (tr *trial) String() string { return tr.kind.Name + "/" + tr.loop + "/" + tr.shape.name }

// An outcome is what became of a trial.
type outcome struct {
	records []*tacho.Record
	output  string
	memory  int64
	code    int
}

func (tr *trial) args(url, dir string) []string {
	texts := 1
	if tr.kind.Name == "vllm-rerank" {
		texts = 2
	}
	args := slices.Concat([]string{
		"bench", "--base-url", url, "--backend", tr.kind.Name, "--num-prompts", fmt.Sprint(requests * texts), "--request-id-prefix", mark,
		"--runs-dir", dir, "--skip-tokenizer-init", "--random-input-len", "8", "--random-output-len", "6", "--save-result", "--save-detailed",
	}, loops[tr.loop])
	if !tr.all {
		args = append(args, "--model", "m", "--metrics-url", "none")
	}
	switch {
	case tr.kind.Name == "vllm-rerank":
		args = append(args, "--dataset-name", "random-rerank", "--random-batch-size", fmt.Sprint(texts))
	case !tr.kind.Takes.Text:
		args = append(args, "--dataset-name", "random-mm", "--random-mm-audio-ms", "100")
	}
	if tr.shape.stalls || tr.all {
		args = append(args, "--request-timeout", timeout)
	} else {
		args = append(args, "--request-timeout", "60")
	}
	return args
}

// run has a process of its own measure the proxy.
func (tr *trial) run(t testing.TB) outcome {
	t.Helper()
	p := newProxy(t, cmp.Or(poses[tr.kind.Name], tr.kind.Name), tr.shape, tr.all)
	defer p.close()
	dir, err := os.MkdirTemp(t.TempDir(), "") //nolint:usetesting // each of thousands of runs is removed at once
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], tr.args("http://"+p.ln.Addr().String(), dir)...)
	cmd.Env = append(os.Environ(), asTacho+"="+filepath.Join(dir, "status"), "OPENAI_API_KEY=sk-verysecret")
	cmd.Dir = dir
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	var exit *exec.ExitError
	if ctx.Err() != nil || err != nil && !errors.As(err, &exit) {
		t.Errorf("%s: hangs: %v\n%.2000s", tr, err, &output)
	}
	o := outcome{output: output.String(), memory: peak(filepath.Join(dir, "status")), code: cmd.ProcessState.ExitCode()}
	kept, _ := filepath.Glob(filepath.Join(dir, "*", store.RecordsFile))
	for _, file := range kept {
		r, err := store.Open(filepath.Dir(file))
		if err != nil {
			t.Errorf("%s: %v", tr, err)
			continue
		}
		for rec, err := range r.Records() {
			if err != nil {
				t.Errorf("%s: %v", tr, err)
				break
			}
			o.records = append(o.records, rec)
		}
	}
	return o
}

var counted = regexp.MustCompile(`(?m)^(Successful|Failed) requests: +(\d+)`)

// check holds the outcome against what is promised.
func (tr *trial) check(t testing.TB, o outcome) {
	t.Helper()
	if strings.Contains(o.output, "panic:") || strings.Contains(o.output, "fatal error:") || strings.Contains(o.output, "DATA RACE") {
		t.Errorf("%s: %.3000s", tr, o.output)
	}
	if o.memory > mostMemory && !raceEnabled {
		t.Errorf("%s: held %d MB, want at most %d", tr, o.memory>>20, int64(mostMemory)>>20)
	}
	if strings.Contains(o.output, "verysecret") {
		t.Errorf("%s: tells the key: %.2000s", tr, o.output)
	}
	if tr.all {
		return
	}
	if len(o.records) != requests {
		t.Errorf("%s: %d records, want %d; exit code %d\n%.2000s", tr, len(o.records), requests, o.code, o.output)
		return
	}
	right, ok, wrong := tr.shape.wants(tr.kind.Name, class(tr.kind)), 0, false
	for _, rec := range o.records {
		cause, message := "ok", ""
		if rec.Failure != nil {
			cause, message = string(rec.Failure.Cause), rec.Failure.Message
		} else {
			ok++
		}
		if !wrong && !slices.Contains(right, cause) && right[0] != "any" {
			t.Errorf("%s: %s (%.200s), want %s", tr, cause, message, strings.Join(right, " or "))
			wrong = true // the others are alike
		}
	}
	total := map[string]string{}
	for _, m := range counted.FindAllStringSubmatch(o.output, -1) {
		total[m[1]] = m[2]
	}
	if total["Successful"] != fmt.Sprint(ok) || cmp.Or(total["Failed"], "0") != fmt.Sprint(requests-ok) {
		t.Errorf("%s: the report says %v, the records %d of %d\n%.1500s", tr, total, ok, requests, o.output)
	}
}

// all runs trials side by side: most of them wait.
func all(t *testing.T, trials []trial) {
	t.Helper()
	var mu sync.Mutex
	var most int64
	var worst string
	todo := make(chan *trial)
	var workers sync.WaitGroup
	begun := time.Now()
	for range 2 * runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for tr := range todo {
				o := tr.run(t)
				tr.check(t, o)
				mu.Lock()
				if o.memory > most {
					most, worst = o.memory, tr.String()
				}
				mu.Unlock()
			}
		})
	}
	for i := range trials {
		todo <- &trials[i]
	}
	close(todo)
	workers.Wait()
	t.Logf("%d trials in %v; at most %d MB held, by %s", len(trials), time.Since(begun).Round(time.Second), most>>20, worst)
}

// Every shape, with every backend, in an open and a closed loop. The short form
// has every shape once, and every backend several times; under the race
// detector, which makes all of it slow, a quarter of that.
func TestShapes(t *testing.T) {
	names := map[string]bool{}
	for i := range shapes {
		if names[shapes[i].name] {
			t.Errorf("%q is there twice", shapes[i].name)
		}
		names[shapes[i].name] = true
	}
	t.Logf("%d shapes, %d backends", len(shapes), len(backend.Kinds))
	var trials []trial
	for i := range shapes {
		if raceEnabled && i%4 > 0 {
			continue
		}
		if !whole {
			trials = append(trials, trial{shape: &shapes[i], kind: &backend.Kinds[i%len(backend.Kinds)], loop: []string{"open", "closed"}[i%2]})
			continue
		}
		for k := range backend.Kinds {
			for loop := range loops {
				trials = append(trials, trial{shape: &shapes[i], kind: &backend.Kinds[k], loop: loop})
			}
		}
	}
	all(t, only(trials))
}

// The same shapes for answers to the questions before the run: what comes of
// them depends, but it comes, and takes no more memory.
func TestQuestions(t *testing.T) {
	var trials []trial
	for i := range shapes {
		for k := range backend.Kinds {
			if whole && (i+k)%4 == 0 || !whole && i%8 == 0 && k == i%len(backend.Kinds) {
				trials = append(trials, trial{shape: &shapes[i], kind: &backend.Kinds[k], loop: "closed", all: true})
			}
		}
	}
	all(t, only(trials))
}

// only are the trials that HOSTILE, a regular expression, names.
func only(trials []trial) []trial {
	pattern := regexp.MustCompile(os.Getenv("HOSTILE"))
	return slices.DeleteFunc(trials, func(tr trial) bool { return !pattern.MatchString(tr.String()) })
}
