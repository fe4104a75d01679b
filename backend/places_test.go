package backend_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/must"
)

// otherMeanings lists files that use the name of a backend for another reason.
var otherMeanings = map[string][]string{
	"plan/plan.go":              {"openai"}, // the default
	"report/vllmjson.go":        {"vllm"},   // the format of that name
	"internal/proof/proof.go":   {"vllm"},   // the engine it drives
	"internal/predict/start.go": {"vllm"},   // the initial engine of a fit

	// Names in the GenAI conventions of OpenTelemetry.
	"internal/bench/publish.go": {"openai", "anthropic", "gemini"},

	// Translations of other tools' flags.
	"internal/migrate/migrate.go": {"openai", "openai-chat", "openai-embeddings"},
	"internal/migrate/table.go":   {"vllm", "sglang"}, // commands

	// Formats of results, and known metric definitions.
	"internal/archive/vllm.go":          {"vllm"},
	"internal/archive/sglang.go":        {"sglang"},
	"internal/archive/inferenceperf.go": {"openai"},
	"metric/dialect_vllm.go":            {"vllm"},
	"metric/dialect_sglang.go":          {"sglang"},
	"metric/pauses.go":                  {"sglang"}, // the engine with a known cure
}

// The name of a backend occurs only in its own file. All other code uses backend.Kinds. The simulator emulates
// engines of the same names, but must not depend on backends.
func TestBackendNamesOccurInOneFile(t *testing.T) {
	places := map[string][]string{}
	must.Do(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel := filepath.ToSlash(strings.TrimPrefix(path, ".."+string(filepath.Separator)))
		if d.IsDir() {
			if name := d.Name(); path != ".." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || rel == "sim") {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		for name := range literals(file) {
			isKind := slices.ContainsFunc(backend.Kinds, func(k backend.Kind) bool { return k.Name == name })
			if isKind && !slices.Contains(otherMeanings[rel], name) {
				places[name] = append(places[name], rel)
			}
		}
		return nil
	}))
	for _, k := range backend.Kinds {
		if files := places[k.Name]; len(files) != 1 || !strings.HasPrefix(files[0], "backend/") {
			t.Errorf("%s is known in %v, want one file of package backend", k.Name, files)
		}
	}
}

// literals returns the string literals in a file.
func literals(file *ast.File) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && field.Tag != nil {
			return false // a struct tag is not a name
		}
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil {
				found[s] = true
			}
		}
		return true
	})
	return found
}

// Every Kind is covered by tests: an entry in dialects or documents, and an entry in emulated or recordings.
func TestEveryKindIsTested(t *testing.T) {
	tried := slices.Concat(slices.Collect(maps.Keys(dialects)), slices.Collect(maps.Keys(documents)))
	posed := slices.Concat(slices.Collect(maps.Keys(emulated)), slices.Collect(maps.Keys(recordings)))
	var names []string
	for _, k := range backend.Kinds {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	slices.Sort(tried)
	slices.Sort(posed)
	if diff := cmp.Diff(names, tried); diff != "" {
		t.Errorf("kinds and trials (-kinds +trials):\n%s", diff)
	}
	if diff := cmp.Diff(names, posed); diff != "" {
		t.Errorf("kinds and servers (-kinds +servers):\n%s", diff)
	}
}
