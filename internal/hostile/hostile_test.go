package hostile

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/store"
)

const (
	requests = 4
	secret   = "verysecret" // part of the API key
	// timeout is the request timeout in seconds, longer than pauses of the machine.
	timeout = "5"
)

// emulated names the engine to simulate if it differs from the name of the Kind. A Kind with a recording needs none.
var emulated = map[string]string{
	"openai": "vllm", "openai-chat": "vllm", "openai-responses": "vllm", "transformers": "vllm", "ollama-chat": "ollama",
	"openai-embeddings": "vllm", "openai-embeddings-chat": "vllm", "openai-embeddings-clip": "vllm", "openai-embeddings-vlm2vec": "vllm",
}

// class returns the response format of a Kind, for the table of causes.
func class(k *backend.Kind) string {
	switch {
	case k.Pools:
		return "document"
	case strings.HasPrefix(k.Name, "ollama"):
		return "lines"
	case k.Name == "triton":
		return "unmarked" // streams end without a mark
	case slices.Contains([]string{"openai-responses", "anthropic", "gemini", "tgi", "llamacpp", "triton-vllm"}, k.Name):
		return "events"
	}
	return "done" // [DONE] ends a stream
}

// loops are the flags for an open loop and a closed loop.
var loops = map[string][]string{"open": {"--request-rate", "500"}, "closed": {"--max-concurrency", "2"}}

// A trial is a shape, a kind and a loop.
type trial struct {
	shape *shape
	kind  *backend.Kind
	loop  string
	all   bool // also bend the responses to queries
}

func (tr *trial) String() string { return tr.kind.Name + "/" + tr.loop + "/" + tr.shape.name }

// An outcome is the result of a trial.
type outcome struct {
	records []*tacho.Record
	output  string
	code    int
}

func (tr *trial) args(url, dir string) []string {
	texts := 1
	if tr.kind.Name == "vllm-rerank" {
		texts = 2
	}
	args := slices.Concat([]string{
		"bench", "--base-url", url, "--backend", tr.kind.Name, "--num-prompts", fmt.Sprint(requests * texts), "--request-id-prefix", mark,
		"--runs-dir", dir, "--result-dir", dir, "--skip-tokenizer-init", "--random-input-len", "8", "--random-output-len", "6", "--save-result", "--save-detailed",
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

// inside runs tacho against the proxy in this process, in virtual time.
func (tr *trial) inside(t *testing.T) (o outcome) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		var network memnet.Network
		ln := must.Get(network.Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
		p := newProxy(t, ln, tr)
		defer p.close()
		var output bytes.Buffer
		vars := map[string]string{"OPENAI_API_KEY": "sk-" + secret}
		o.code = cli.Main(&cli.Env{
			Args: tr.args("http://"+ln.Addr().String(), dir), Stdin: strings.NewReader(""), Stdout: &output, Stderr: &output, Network: &network,
			Getenv: func(name string) string { return vars[name] }, Width: func() int { return 200 },
		})
		o.output = output.String()
	})
	o.read(t, tr, dir)
	return o
}

// read reads the records of the runs in a directory.
func (o *outcome) read(t testing.TB, tr *trial, dir string) {
	t.Helper()
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
}

var counted = regexp.MustCompile(`(?m)^(Successful|Failed) requests: +(\d+)`)

// check compares the outcome with the expected causes.
func (tr *trial) check(t testing.TB, o outcome) {
	t.Helper()
	if strings.Contains(o.output, "panic:") || strings.Contains(o.output, "fatal error:") || strings.Contains(o.output, "DATA RACE") {
		t.Errorf("%s: %.3000s", tr, o.output)
	}
	if strings.Contains(o.output, secret) {
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
			wrong = true // the others are similar
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

// shapeTrials returns every shape for every backend, in an open and a closed loop. The short form includes every
// shape once and every backend several times.
func shapeTrials(t *testing.T) (trials []trial) {
	t.Helper()
	names := map[string]bool{}
	for i := range shapes {
		if names[shapes[i].name] {
			t.Errorf("%q is there twice", shapes[i].name)
		}
		names[shapes[i].name] = true
	}
	t.Logf("%d shapes, %d backends", len(shapes), len(backend.Kinds))
	for i := range shapes {
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
	return only(trials)
}

// queryTrials returns the shapes for responses to queries before the run. The result of a trial varies, but each
// trial must end.
func queryTrials() (trials []trial) {
	for i := range shapes {
		for k := range backend.Kinds {
			if whole && (i+k)%4 == 0 || !whole && i%8 == 0 && k == i%len(backend.Kinds) {
				trials = append(trials, trial{shape: &shapes[i], kind: &backend.Kinds[k], loop: "closed", all: true})
			}
		}
	}
	return only(trials)
}

// Every bad response is counted with the right cause.
func TestShapes(t *testing.T) { all(t, shapeTrials(t)) }

// Bad responses to queries before the run do no harm.
func TestQueries(t *testing.T) { all(t, queryTrials()) }

// all runs trials in virtual time.
func all(t *testing.T, trials []trial) {
	t.Helper()
	log.SetOutput(io.Discard) // net/http logs unsolicited bytes
	t.Cleanup(func() { log.SetOutput(os.Stderr) })
	for i := range trials {
		if raceEnabled && slices.ContainsFunc(floods, func(s shape) bool { return s.name == trials[i].shape.name }) {
			continue // the race detector is too slow for large bodies
		}
		t.Run(trials[i].String(), func(t *testing.T) {
			t.Parallel()
			trials[i].check(t, trials[i].inside(t))
		})
	}
}

// only returns the trials selected by HOSTILE, a regular expression.
func only(trials []trial) []trial {
	pattern := regexp.MustCompile(os.Getenv("HOSTILE"))
	return slices.DeleteFunc(trials, func(tr trial) bool { return !pattern.MatchString(tr.String()) })
}
