//go:build vllm

package run_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// A drawn sample is a request as sent by the reference or tacho.
type drawn struct {
	Text     string        `json:"text"`
	IDs      []int32       `json:"ids"`
	Texts    []string      `json:"texts"` // of a batch
	Input    int           `json:"input"`
	Output   int           `json:"output"`
	At       *float64      `json:"at"`    // seconds
	Parts    []string      `json:"parts"` // media sent with the text
	Messages []chatMessage `json:"messages"`
	Extra    any           `json:"extra"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// A refCase is one command line for both tools.
type refCase struct {
	name    string
	words   []string
	folders map[string]string // local data of hub datasets
	ours    []string          // additional arguments for tacho
	check   func(t *testing.T, ref, got []drawn)
	fewer   int    // requests skipped by tacho
	fails   string // tacho's error if neither tool samples anything
}

// reference returns a Python interpreter with vLLM.
func reference(t *testing.T) string {
	t.Helper()
	python := os.Getenv("VLLM")
	if python == "" {
		t.Fatal("the variable VLLM does not say where its Python is: run make test-reference")
	}
	return python
}

func runPython(t *testing.T, words ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), reference(t), append([]string{"testdata/reference_samples.py"}, words...)...)
	cmd.Env = append(os.Environ(), "HF_HUB_OFFLINE=1", "HF_HOME="+t.TempDir(), "VLLM_LOGGING_LEVEL=ERROR", "VLLM_NO_USAGE_STATS=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// makeTokenizers writes two tokenizers: one without special tokens, one with a
// start token. Their vocabulary is ASCII, so that all token sequences are valid
// text and the reference's lengths are correct.
func makeTokenizers(t *testing.T, of string) (plain, opened string) {
	t.Helper()
	dir := t.TempDir()
	corpus := must.Get(filepath.Glob("../../workload/*.go"))(t)
	runPython(t, append([]string{"make", dir, "../../README.md"}, corpus...)...)
	return filepath.Join(dir, of), filepath.Join(dir, of+"-opened")
}

// sampleAll runs the reference for all cases in one process, because its
// startup takes the longest.
func sampleAll(t *testing.T, cases []refCase) (samples map[string][]drawn, failed map[string]string, datasets []string) {
	t.Helper()
	type asked struct {
		Name    string            `json:"name"`
		Words   []string          `json:"words"`
		Folders map[string]string `json:"folders,omitempty"`
	}
	var list []asked
	for _, c := range cases {
		list = append(list, asked{c.name, c.words, c.folders})
	}
	text := must.Get(json.Marshal(list))(t)
	in, out := filepath.Join(t.TempDir(), "in.json"), filepath.Join(t.TempDir(), "out.json")
	must.Do(t, os.WriteFile(in, text, 0o644))
	runPython(t, "sample", in, out)
	text = must.Get(os.ReadFile(out))(t)
	var told struct {
		Results map[string]struct {
			Samples []drawn
			Error   string
		}
		Datasets []string
	}
	must.Do(t, json.Unmarshal(text, &told))
	samples, failed = map[string][]drawn{}, map[string]string{}
	for name, r := range told.Results {
		if samples[name] = r.Samples; r.Error != "" {
			failed[name] = r.Error
		}
	}
	return samples, failed, told.Datasets
}

// planOf parses a command line.
func planOf(t *testing.T, words []string) plan.Plan {
	t.Helper()
	p := plan.Default()
	options := p.Options()
	for i := 0; i < len(words); i++ {
		name := strings.TrimPrefix(words[i], "--")
		at := slices.IndexFunc(options, func(o plan.Option) bool { return o.Name == name })
		if at < 0 {
			t.Fatalf("tacho has no --%s", name)
		}
		value := "true"
		if _, isSwitch := options[at].Value.(*bool); !isSwitch {
			i++
			value = words[i]
		}
		if err := options[at].Set(value); err != nil {
			t.Fatalf("%s %s: %v", words[i], value, err)
		}
	}
	return p
}

// drawOurs returns tacho's requests for a command line.
func drawOurs(t *testing.T, words []string) ([]drawn, error) {
	t.Helper()
	p := planOf(t, words)
	work, _, err := run.Workload(t.Context(), &p, 0, run.Env{Observer: live.Messages{To: func(line string) { t.Log(line) }}})
	if err != nil {
		return nil, err
	}
	var out []drawn
	limit := uint64(p.Levels()[0].Prompts) // 0 means all
	for i := uint64(0); limit == 0 || i < limit; i++ {
		s, err := work.Session(i)
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		out = append(out, drawnOf(t, &s.Turns[0].Request))
	}
	if own, ok := work.(tacho.Pacer); ok {
		i := 0
		for at := range own.Arrivals() {
			s := at.Seconds()
			out[i].At = &s
			if i++; i == len(out) {
				break
			}
		}
	}
	return out, nil
}

func drawnOf(t *testing.T, q *tacho.Request) drawn {
	t.Helper()
	d := drawn{Input: q.InputTokens, Output: q.MaxTokens}
	q.Quote(nil)
	d.Text, d.IDs = q.Input.Text, q.Input.IDs
	if batch, ok := q.Extra["input"].([]any); ok {
		d.Text, d.IDs = "", nil
		for _, one := range batch {
			d.Texts = append(d.Texts, fmt.Sprint(one))
		}
	}
	if q.Input.Audio != nil {
		d.Parts = []string{fmt.Sprintf("audio %.3f", q.AudioS)}
	}
	for _, m := range q.Input.Messages {
		if m.Raw == nil {
			d.Messages = append(d.Messages, chatMessage{m.Role, m.Content})
			continue
		}
		d.Parts = append(d.Parts, partsOf(t, m.Raw, q.AudioS)...)
	}
	if q.Extra["tools"] != nil {
		text, err := json.Marshal(q.Extra)
		if err == nil {
			err = json.Unmarshal(text, &d.Extra)
		}
		must.Do(t, err)
	}
	return d
}

// twoSample returns the Kolmogorov-Smirnov distance of two samples, as a
// fraction of the critical value for p = 0.001.
func twoSample(xs, ys []int) float64 {
	xs, ys = slices.Sorted(slices.Values(xs)), slices.Sorted(slices.Values(ys))
	n, m, d := float64(len(xs)), float64(len(ys)), 0.0
	for i, j := 0, 0; i < len(xs) && j < len(ys); {
		at := min(xs[i], ys[j])
		for i < len(xs) && xs[i] == at {
			i++
		}
		for j < len(ys) && ys[j] == at {
			j++
		}
		d = max(d, math.Abs(float64(i)/n-float64(j)/m))
	}
	return d / (1.95 * math.Sqrt((n+m)/(n*m)))
}

func each(samples []drawn, of func(*drawn) int) []int {
	out := make([]int, len(samples))
	for i := range samples {
		out[i] = of(&samples[i])
	}
	return out
}

func inputOf(d *drawn) int  { return d.Input }
func outputOf(d *drawn) int { return d.Output }

// alike checks that two samples of lengths have the same bounds and the same
// distribution.
func alike(t *testing.T, what string, ref, got []int) {
	t.Helper()
	if slices.Min(ref) != slices.Min(got) || slices.Max(ref) != slices.Max(got) {
		t.Errorf("%s: from %d to %d, want %d to %d", what, slices.Min(got), slices.Max(got), slices.Min(ref), slices.Max(ref))
	}
	if d := twoSample(ref, got); d > 1 {
		t.Errorf("%s: another distribution: %.2f times the distance that chance allows", what, d)
	}
}

// common returns the length of the common token prefix of two prompts.
func common(a, b []int32) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// tokensOf tokenizes prompts as a server does.
func tokensOf(t *testing.T, tokenizer string, samples []drawn) [][]int32 {
	t.Helper()
	tok := must.Get(token.Open(tokenizer, ""))(t)
	out := make([][]int32, len(samples))
	for i, s := range samples {
		if out[i] = s.IDs; s.IDs == nil {
			out[i] = tok.Encode(s.Text, true)
		}
	}
	return out
}

// runCases compares tacho with the reference.
func runCases(t *testing.T, cases []refCase) {
	t.Helper()
	samples, failed, datasets := sampleAll(t, cases)
	for _, name := range datasets {
		if _, err := workload.Find(name); err != nil {
			t.Error(err)
		}
	}
	if slices.Contains(datasets, "sonnet") {
		t.Error("the reference has sonnet again: hold ours against it")
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got, err := drawOurs(t, slices.Concat(c.words, c.ours))
			if c.fails != "" {
				if err == nil || !strings.Contains(err.Error(), c.fails) || failed[c.name] == "" {
					t.Errorf("tacho: %v; the reference: %q", err, failed[c.name])
				}
				return
			}
			if err != nil || failed[c.name] != "" {
				t.Fatalf("tacho: %v; the reference: %s", err, failed[c.name])
			}
			if want := len(samples[c.name]) - c.fewer; len(got) != want {
				t.Fatalf("%d requests, want %d", len(got), want)
			}
			c.check(t, samples[c.name], got)
		})
	}
}

// same checks that all requests are equal, one by one.
func same(t *testing.T, ref, got []drawn) {
	for i := range ref {
		if diff := cmp.Diff(ref[i], got[i]); diff != "" {
			t.Errorf("request %d (-reference +tacho):\n%s", i, diff)
			return
		}
	}
}
