package workload

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/token"
)

// writeBomb writes a compressed file of a text repeated many times.
func writeBomb(t *testing.T, name, text string, times int) string {
	t.Helper()
	var member bytes.Buffer
	z := gzip.NewWriter(&member)
	must.Get(z.Write([]byte(text)))(t)
	must.Do(t, z.Close())
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, bytes.Repeat(member.Bytes(), times), 0o600))
	return path
}

// TestBombsFitIntoMemory checks that a file of a few megabytes that decompresses to
// gigabytes is read only as far as needed. HeapSys never shrinks, so its growth is the
// peak.
func TestBombsFitIntoMemory(t *testing.T) {
	book := writeBomb(t, "book.txt.gz", strings.Repeat("some words of a book that does not end ", 1<<19), 200)
	lines := writeBomb(t, "prompts.jsonl.gz", strings.Repeat(`{"prompt":"a","output_tokens":1}`+"\n", 1<<19), 200)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o := Options{Path: book, Counter: token.Estimate{}, Count: 2, Input: Fixed(100), Output: Fixed(1)}
	w := must.Get(newBook(t.Context(), o))(t)
	if notes := strings.Join(w.Notes(), " "); !strings.Contains(notes, "first 64 MiB") {
		t.Errorf("the notes do not say that the book was cut: %q", notes)
	}
	o.Path = lines
	must.Get(newCustom(t.Context(), o))(t)
	runtime.ReadMemStats(&after)
	if grown := (after.HeapSys - before.HeapSys) >> 20; grown > 500 {
		t.Errorf("the heap grew by %d MiB", grown)
	}
}

// TestKeptIsBounded checks the memory limit of every dataset and its error message.
// Skipping bad lines does not hide the error.
func TestKeptIsBounded(t *testing.T) {
	talk := `{"messages":[{"role":"user","content":"` + strings.Repeat("word ", 100) + `"},{"role":"assistant","content":"yes it is so"}],"prompt":"` +
		strings.Repeat("word ", 100) + `","output_tokens":3,"turns":["` + strings.Repeat("word ", 100) + `"],"conversations":[{"from":"human","value":"` +
		strings.Repeat("word ", 100) + `"},{"from":"gpt","value":"` + strings.Repeat("word ", 20) + `"}]}` + "\n"
	plain := strings.Replace(talk, `"turns":["`+strings.Repeat("word ", 100)+`"],`, "", 1)
	for _, test := range []struct {
		kind  Kind
		row   string
		first bool // without shuffling, the first rows are enough
	}{{custom, plain, true}, {sharegpt, talk, false}, {conversation, talk, true}, {specBench, talk, true}, {huggingFace, talk, true}} {
		path := filepath.Join(t.TempDir(), "rows.jsonl")
		must.Do(t, os.WriteFile(path, []byte(strings.Repeat(test.row, 1000)), 0o600))
		o := Options{Path: path, Counter: token.Estimate{}, Count: 2, Output: Fixed(5), Shuffle: true, maxKept: 1 << 19}
		o.Trace.SkipBad = true
		if _, err := test.kind.New(t.Context(), o); err == nil || !strings.Contains(err.Error(), "--disable-shuffle") {
			t.Errorf("%s: %v, want it to say that there is too much", test.kind.Name, err)
		}
		o.Shuffle = false
		if _, err := test.kind.New(t.Context(), o); (err == nil) != test.first {
			t.Errorf("%s, not shuffled: %v", test.kind.Name, err)
		}
		o.maxKept = 0
		if _, err := test.kind.New(t.Context(), o); err != nil {
			t.Errorf("%s: %v", test.kind.Name, err)
		}
	}
}

func TestSonnetIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "poem.txt")
	must.Do(t, os.WriteFile(path, []byte(strings.Repeat("a line\n", 1000)), 0o600))
	if _, err := newSonnet(t.Context(), Options{Path: path, Counter: token.Estimate{}, maxKept: 1000}); err == nil || !strings.Contains(err.Error(), "dataset-name book") {
		t.Errorf("%v", err)
	}
}

// TestBurstGPTIsBounded checks that the rows in memory are limited.
func TestBurstGPTIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.csv")
	must.Do(t, os.WriteFile(path, []byte("Timestamp,Model,Request tokens,Response tokens\n"+strings.Repeat("1,GPT-4,5,6\n", 100)), 0o600))
	o := Options{Path: path, IDs: true, maxKept: 100 * rowCost}
	if _, err := newBurstGPT(t.Context(), o); err != nil {
		t.Error(err)
	}
	o.maxKept = 99 * rowCost
	if _, err := newBurstGPT(t.Context(), o); err == nil || !strings.Contains(err.Error(), path+": more than 99 rows") {
		t.Errorf("%v, want an error that names the file and the limit", err)
	}
}
