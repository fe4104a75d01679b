package backend_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

// Streams of real servers, most of them recorded by `make test-engines`, are decoded correctly. Files are named
// after the engine and the Kind.
func TestCapturedStreams(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "engines", "*.txt"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captured streams: %v", err)
	}
	for _, file := range files {
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".txt"), "-")
		t.Run(name, func(t *testing.T) {
			stream := must.Get(os.ReadFile(file))(t)
			kind := find(t, name)
			whole := exchange(t, kind, pieces(string(stream)), textRequest("hi"))
			if whole.Failure != nil || whole.OutputFrom != tacho.FromUsage || whole.Finish == "" || len(whole.Events) == 0 {
				t.Errorf("%v, %d tokens by %q in %d events, finish %q", whole.Failure, whole.Output, whole.OutputFrom, len(whole.Events), whole.Finish)
			}
			if len(whole.Opening) > 0 {
				t.Errorf("the answer begins with %d events without text: correct docs/method.md", len(whole.Opening))
			}
			if kind.ExactLength && whole.Output != 24 {
				t.Errorf("%d tokens, and 24 were asked for", whole.Output)
			}
			halves := exchange(t, kind, pieces(string(stream[:len(stream)/2]), string(stream[len(stream)/2:])), textRequest("hi"))
			if diff := cmp.Diff(whole.Text, halves.Text); diff != "" || len(whole.Events) != len(halves.Events) {
				t.Errorf("%d events whole, %d in halves (-whole +halves):\n%s", len(whole.Events), len(halves.Events), diff)
			}
			cut := exchange(t, kind, pieces(string(stream[:2*len(stream)/3])), textRequest("hi"))
			if causeOf(cut) != tacho.Truncated {
				t.Errorf("two thirds of it: %v", cut.Failure)
			}
		})
	}
}

// Responses of real servers in one document, to five token ids, are decoded correctly.
func TestCapturedDocuments(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "documents", "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no captured documents: %v", err)
	}
	for _, file := range files {
		_, name, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "-")
		t.Run(name, func(t *testing.T) {
			doc := must.Get(os.ReadFile(file))(t)
			whole := exchange(t, find(t, name), typed("application/json", string(doc)), textRequest("hi"))
			if whole.Failure != nil || whole.Usage == nil || whole.Usage.Prompt != 5 || whole.Output != 0 {
				t.Errorf("%v, %+v, %d tokens out", whole.Failure, whole.Usage, whole.Output)
			}
			cut := exchange(t, find(t, name), typed("application/json", string(doc[:2*len(doc)/3])), textRequest("hi"))
			if causeOf(cut) != tacho.Malformed {
				t.Errorf("two thirds of it: %v", cut.Failure)
			}
		})
	}
}
