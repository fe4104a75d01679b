package workload_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/token"
	"github.com/tacho-bench/tacho/workload"
)

// byWord counts words and a start token, like a server.
type byWord struct{ calls atomic.Int64 }

func (c *byWord) Count(_ context.Context, s string) (int, error) {
	c.calls.Add(1)
	return len(strings.Fields(s)) + 1, nil
}
func (c *byWord) Name() string { return "words" }
func (c *byWord) Exact() bool  { return true }

func make1(t *testing.T, name string, o workload.Options) workload.Workload {
	t.Helper()
	k := must.Get(workload.Find(name))(t)
	if o.Counter == nil {
		o.Counter = &byWord{}
	}
	return must.Get(k.New(t.Context(), o))(t)
}

func requests(t *testing.T, w workload.Workload, n int) []tacho.Request {
	t.Helper()
	var out []tacho.Request
	for i := range uint64(n) {
		s := must.Get(w.Session(i))(t)
		out = append(out, s.Turns[0].Request)
	}
	return out
}

func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func prose(words int) string {
	var b strings.Builder
	for i := range words {
		fmt.Fprintf(&b, "wörd%d ", i)
	}
	return b.String()
}

func opening(q tacho.Request) string {
	if q.Input.IDs != nil {
		return fmt.Sprint(q.Input.IDs[:min(8, len(q.Input.IDs))])
	}
	if q.Input.Messages != nil {
		return q.Input.Messages[0].Content
	}
	return strings.Join(strings.Fields(q.Input.Text)[:3], " ")
}

func TestRandomLengthsFollowTheReference(t *testing.T) {
	w := make1(t, "random", workload.Options{Input: workload.Fixed(101), Output: workload.Fixed(11), InRatio: 0.3, OutRatio: 0.5, IDs: true, Count: 4000, Prefix: 7})
	in, out := map[int]bool{}, map[int]bool{}
	first := requests(t, w, 1)[0].Input.IDs[:7]
	for _, q := range requests(t, w, 4000) {
		in[q.InputTokens-7], out[q.MaxTokens] = true, true
		if !slices.Equal(q.Input.IDs[:7], first) {
			t.Fatal("the prefix is not shared")
		}
		for _, id := range q.Input.IDs {
			if id < 1000 || id >= 30_000 {
				t.Fatalf("token id %d", id)
			}
		}
	}
	// floor(101*0.7)=70 to ceil(101*1.3)=132, floor(11*0.5)=5 to ceil(11*1.5)=17: all of
	// these values and no others.
	for name, c := range map[string]struct {
		seen      map[int]bool
		low, high int
	}{"input": {in, 70, 132}, "output": {out, 5, 17}} {
		if len(c.seen) != c.high-c.low+1 || !c.seen[c.low] || !c.seen[c.high] {
			t.Errorf("%s: %d lengths, low %v, high %v", name, len(c.seen), c.seen[c.low], c.seen[c.high])
		}
	}
}

// TestExactTexts checks that texts have exactly the requested number of tokens and are
// prepared before they are sent.
func TestExactTexts(t *testing.T) {
	path := write(t, "book.txt", prose(300))
	for _, kind := range []string{"random", "book"} {
		c := &byWord{}
		w := make1(t, kind, workload.Options{Input: workload.Fixed(250), Output: workload.Fixed(1), Path: path, Counter: c, Count: 30})
		calls := c.calls.Load()
		for i, q := range requests(t, w, 30) {
			if n := len(strings.Fields(q.Input.Text)) + 1; n != 250 || q.InputTokens != 250 || !utf8.ValidString(q.Input.Text) {
				t.Errorf("%s %d: %d tokens, said %d", kind, i, n, q.InputTokens)
			}
		}
		if c.calls.Load() != calls {
			t.Errorf("%s: counted again while it ran", kind)
		}
		if n := w.Notes(); n != nil {
			t.Errorf("%s: notes %q", kind, n)
		}
	}
}

func TestBookWrapsRound(t *testing.T) {
	path := write(t, "book.txt", "one two three")
	w := make1(t, "book", workload.Options{Input: workload.Fixed(11), Output: workload.Fixed(1), Path: path, Count: 1})
	q := requests(t, w, 1)[0]
	if got := strings.Fields(q.Input.Text); len(got) != 10 || !strings.Contains(q.Input.Text, "three\none two") {
		t.Errorf("%q", q.Input.Text)
	}
}

// even returns only even counts.
type even struct{ byWord }

func (e *even) Count(ctx context.Context, s string) (int, error) {
	n, err := e.byWord.Count(ctx, s)
	return n &^ 1, err
}

func TestMissedLengthsAreReported(t *testing.T) {
	w := make1(t, "random", workload.Options{Input: workload.Fixed(21), Output: workload.Fixed(1), Counter: &even{}, Count: 3})
	if n := w.Notes(); len(n) != 1 || !strings.HasPrefix(n[0], "3 of 3 prompts missed the requested length, by up to") {
		t.Errorf("%q", n)
	}
}

func TestCustom(t *testing.T) {
	path := write(t, "p.jsonl", `{"prompt":"a b","output_tokens":7}`+"\n\n"+`{"messages":[{"role":"system","content":"x"}],"output_tokens":8}`)
	w := make1(t, "custom", workload.Options{Output: workload.Fixed(-1), Path: path})
	qs := requests(t, w, 2)
	if qs[0].MaxTokens != 7 || qs[0].InputTokens != 3 || qs[1].MaxTokens != 8 || qs[1].Input.Messages[0].Role != "system" {
		t.Errorf("%+v", qs)
	}
	if _, err := w.Session(2); !errors.Is(err, io.EOF) {
		t.Errorf("past the end: %v", err)
	}
	w = make1(t, "custom", workload.Options{Output: workload.Fixed(3), Path: path, Count: 9, Repeat: true})
	if qs := requests(t, w, 9); qs[8].MaxTokens != 3 {
		t.Errorf("%+v", qs[8])
	}
	if n := w.Notes(); len(n) != 1 || !strings.Contains(n[0], "9 prompts were made from 2") {
		t.Errorf("%q", n)
	}
	if _, err := make1(t, "custom", workload.Options{Output: workload.Fixed(3), Path: path, Count: 9}).Session(2); !errors.Is(err, io.EOF) {
		t.Errorf("without oversampling: %v", err)
	}
}

func TestClearErrors(t *testing.T) {
	for want, c := range map[string]struct {
		kind string
		o    workload.Options
	}{
		"--dataset-path book.txt":        {"book", workload.Options{Input: workload.Fixed(1), Output: workload.Fixed(1)}},
		"no such file":                   {"book", workload.Options{Input: workload.Fixed(1), Output: workload.Fixed(1), Path: "missing.txt"}},
		"contains no text":               {"book", workload.Options{Input: workload.Fixed(1), Output: workload.Fixed(1), Path: write(t, "e.txt", " \n")}},
		"--book-input-len":               {"book", workload.Options{Output: workload.Fixed(1), Path: "x"}},
		"--dataset-path prompts.jsonl":   {"custom", workload.Options{}},
		"contains no lines":              {"custom", workload.Options{Path: write(t, "e.jsonl", "\n")}},
		`b.jsonl:2: neither "prompt"`:    {"custom", workload.Options{Path: write(t, "b.jsonl", `{"prompt":"x"}`+"\n{}\n")}},
		"c.jsonl:1: not a JSON object":   {"custom", workload.Options{Path: write(t, "c.jsonl", "prompt,x\n")}},
		`d.jsonl:1: no "output_tokens"`:  {"custom", workload.Options{Output: workload.Fixed(-1), Path: write(t, "d.jsonl", `{"prompt":"x"}`)}},
		`f.jsonl:1: "prompt" is empty`:   {"custom", workload.Options{Path: write(t, "f.jsonl", `{"prompt":""}`)}},
		"below 1":                        {"random", workload.Options{Input: workload.Fixed(9), Output: workload.Fixed(9), InRatio: 1}},
		"too short":                      {"random", workload.Options{Output: workload.Fixed(9)}},
		"vocabulary of 5 tokens is too ": {"random", workload.Options{Input: workload.Fixed(9), Output: workload.Fixed(9), Vocab: 5}},
	} {
		k := must.Get(workload.Find(c.kind))(t)
		c.o.Counter = token.Estimate{}
		if _, err := k.New(t.Context(), c.o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	if _, err := workload.Find("sonet"); err == nil || !strings.Contains(err.Error(), "have random, book, custom, custom_image, custom_audio, sharegpt") {
		t.Errorf("error %v", err)
	}
}

type failing struct{ byWord }

func (*failing) Count(context.Context, string) (int, error) { return 0, errors.New("server is gone") }

func TestCounterErrorIsTold(t *testing.T) {
	k, _ := workload.Find("random")
	if _, err := k.New(t.Context(), workload.Options{Input: workload.Fixed(9), Output: workload.Fixed(9), Count: 4, Counter: &failing{}}); err == nil || !strings.Contains(err.Error(), "server is gone") {
		t.Errorf("error %v", err)
	}
}
