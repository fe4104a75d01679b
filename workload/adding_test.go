package workload

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/rows"
	"github.com/tacho-bench/tacho/token"
)

var translation = Kind{
	Name: "translation", Doc: "sentences to translate, from rows with a source and a target",
	reads:   [][]string{{"source", "target"}},
	Chat:    true,
	New:     newTranslation,
	options: func(_ *Dataset, o *Options) { o.Output = Fixed(-1) }, // the length of the answer in the data
}

func newTranslation(ctx context.Context, o Options) (Workload, error) {
	list, bad := o.newEntryList(), rows.Bad{Skip: o.Trace.SkipBad}
	err := rows.Each(o.Path, &bad, func(row json.RawMessage) error {
		var line struct{ Source, Target string }
		if err := json.Unmarshal(row, &line); err != nil {
			return err
		}
		prompt := "Translate into French: " + line.Source
		return list.add(entry{Prompt: &prompt, answer: line.Target}, len(row))
	})
	if err != nil {
		return nil, fmt.Errorf("translation: %w", err)
	}
	if len(list.entries) == 0 {
		return nil, fmt.Errorf("translation: %s has no rows%s", o.Path, bad.Also())
	}
	return newPool(ctx, o, list.entries, bad.Notes()...)
}

// TestOneWordAddsADataset checks that a dataset listed in Kinds needs no other
// registration: it is found by its name and by its file, and it has options.
// docs/adding-a-dataset.md explains the example.
func TestOneWordAddsADataset(t *testing.T) {
	usual := Kinds
	defer func() { Kinds = usual }()
	Kinds = append(slices.Clip(Kinds), translation)
	path := filepath.Join(t.TempDir(), "pairs.csv")
	must.Do(t, os.WriteFile(path, []byte("source,target\ngood morning,bonjour\nsee you soon,a tout a l'heure\n"), 0o600))
	if names, err := MatchingKinds(path, false); err != nil || !slices.Equal(names, []string{"translation"}) {
		t.Errorf("the file is taken for %q, %v", names, err)
	}
	kind := must.Get(Find("translation"))(t)
	o := kind.Options(&Dataset{DatasetPath: path, DisableShuffle: true})
	o.Counter = token.Estimate{}
	work := must.Get(kind.New(t.Context(), o))(t)
	s, err := work.Session(1)
	if err != nil || len(s.Turns) != 1 {
		t.Fatal(s, err)
	}
	if q := s.Turns[0].Request; q.Input.Text != "Translate into French: see you soon" || q.InputTokens < 1 || q.MaxTokens < 1 {
		t.Errorf("%+v", q)
	}
}

// TestPageShowsRealCode checks that the code on the page is the example above or part of
// a dataset.
func TestPageShowsRealCode(t *testing.T) {
	page := must.Get(os.ReadFile("../docs/adding-a-dataset.md"))(t)
	files := must.Get(filepath.Glob("*.go"))(t)
	var all strings.Builder
	for _, name := range files {
		b := must.Get(os.ReadFile(name))(t)
		all.Write(b)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	for _, b := range blocks {
		if !strings.Contains(all.String(), b[1]) {
			t.Errorf("no file of this package has this code:\n%s", b[1])
		}
	}
	if len(blocks) < 2 {
		t.Errorf("%d blocks of code on the page", len(blocks))
	}
}
