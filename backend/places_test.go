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

	"tacho/backend"
)

// otherMeanings are the places that have another reason to say a name.
var otherMeanings = map[string][]string{
	"plan/plan.go":            {"openai"}, // the default
	"report/vllmjson.go":      {"vllm"},   // the format of that name
	"internal/proof/proof.go": {"vllm"},   // the one it drives
	"predict/start.go":        {"vllm"},   // the engine that a fit begins with

	// Whose results are read, and whose definitions are known.
	"archive/vllm.go":          {"vllm"},
	"archive/sglang.go":        {"sglang"},
	"archive/inferenceperf.go": {"openai"},
	"metric/dialect_vllm.go":   {"vllm"},
	"metric/dialect_sglang.go": {"sglang"},
}

// A backend is known by its name in one file, its own. Everything else finds it
// in backend.Kinds. The simulator poses as engines of the same names, but may
// know nothing of backends.
func TestOnePlaceKnowsABackend(t *testing.T) {
	places := map[string][]string{}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
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
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range backend.Kinds {
		if files := places[k.Name]; len(files) != 1 || !strings.HasPrefix(files[0], "backend/") {
			t.Errorf("%s is known in %v, want one file of package backend", k.Name, files)
		}
	}
}

// literals are the strings in a file.
func literals(file *ast.File) map[string]bool {
	found := map[string]bool{}
	ast.Inspect(file, func(n ast.Node) bool {
		if field, ok := n.(*ast.Field); ok && field.Tag != nil {
			return false // the tag of a struct is no name
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

// Every Kind has its trials: an entry in dialects or documents, and a word on
// whether the simulator can pose as its server.
func TestEveryKindIsTried(t *testing.T) {
	tried := slices.Concat(slices.Collect(maps.Keys(dialects)), slices.Collect(maps.Keys(documents)))
	posed := slices.Concat(slices.Collect(maps.Keys(poses)), notSimulated)
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
		t.Errorf("kinds and poses (-kinds +poses):\n%s", diff)
	}
}
