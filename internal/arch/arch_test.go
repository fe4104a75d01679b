// Package arch tests the structure of the code base.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

const (
	module = "github.com/tacho-bench/tacho"
	root   = "../.."
)

// layers lists the packages of this module that a package may import ("." is
// the root package). An unlisted package fails the test, so every change of the
// architecture changes this map.
var layers = map[string]string{
	".":                             "",
	"stat":                          "",
	"internal/hub":                  "internal/atomicfile",
	"internal/atomicfile":           "",
	"internal/filelock":             "",
	"token":                         "internal/jinja internal/jsonscan internal/atomicfile token/internal/ranks",
	"internal/jinja":                "",
	"token/internal/ranks":          "",
	"token/internal/ranks/generate": "token/internal/ranks",
	"internal/wire":                 "internal/jsonscan internal/limit",
	"internal/memnet":               "",
	"internal/must":                 "",
	"internal/recorded":             "",
	"internal/bounded":              "",
	"internal/jsonscan":             "",
	"internal/priority":             "",
	"internal/limit":                "",
	"internal/migrate":              "",
	"internal/rows":                 "internal/atomicfile",
	"internal/spelling":             "",
	"internal/redact":               "",
	"internal/sanitize":             "",
	"internal/termtext":             "internal/sanitize",
	"internal/wav":                  "",
	"internal/recordjson":           ". internal/jsonscan internal/limit",
	"internal/style":                "",
	"internal/exposition":           "",
	"internal/fakehub":              "",
	"sim/step":                      "internal/limit internal/spelling internal/atomicfile sim/profiles",
	"sim/profiles":                  "",
	"sim/words":                     "",
	"internal/predict":              ". internal/archive internal/instrument metric outcome internal/route session sim/step sim/words stat",
	"pace":                          ". stat",
	"internal/replay":               ".",
	"internal/traceid":              "",
	"internal/publish":              ". internal/exposition metric",
	"internal/route":                ".",
	"internal/score":                ". internal/spelling metric stat",
	"internal/search":               ". metric stat",
	"session":                       ".",
	"engine":                        ". internal/priority session",
	"internal/live":                 ". engine metric outcome",
	"internal/live/view":            "internal/termtext internal/live internal/sanitize metric",
	"internal/terminal":             "internal/live internal/live/view internal/sanitize internal/termtext outcome",
	"internal/compare":              ". metric outcome stat",
	"outcome":                       ". internal/instrument metric",
	"store":                         ". internal/instrument internal/recordjson internal/filelock internal/atomicfile internal/sanitize metric outcome",
	"internal/archive":              ". internal/instrument internal/atomicfile metric outcome report store",
	"transport":                     ". internal/limit internal/atomicfile transport/socket",
	"transport/framing":             "",
	"transport/socket":              ". internal/priority transport/framing transport/socket/tap",
	"transport/socket/tap":          "",
	"workload":                      ". internal/jsonscan internal/rows internal/spelling internal/wav internal/atomicfile stat token",
	"backend":                       ". internal/jsonscan internal/limit internal/redact internal/spelling internal/route session transport internal/wire",
	"metric":                        ". internal/spelling stat",
	"report":                        ". internal/compare internal/termtext internal/exposition internal/spelling internal/sanitize metric outcome report/conclusion report/page stat",
	"report/conclusion":             ". internal/compare metric outcome",
	"report/page":                   ". internal/compare internal/instrument metric outcome report/conclusion stat",
	"internal/ui":                   "internal/archive internal/compare metric outcome report/conclusion report/page store",
	"internal/instrument":           "internal/limit metric",
	"sim":                           "internal/spelling internal/wav sim/step sim/words internal/wire",
	"plan":                          ". backend internal/limit internal/score internal/redact internal/spelling metric outcome pace workload",
	"internal/target":               ". internal/atomicfile backend internal/hub internal/instrument internal/limit internal/redact internal/rows internal/live metric pace plan internal/route token transport transport/socket workload",
	"internal/run":                  ". backend engine internal/instrument internal/redact internal/target internal/live metric outcome pace plan internal/predict internal/replay internal/route internal/score internal/search session sim/step stat token internal/traceid workload",
	"bench":                         "internal/bench internal/live internal/run internal/search outcome plan",
	"internal/bench":                ". internal/archive backend internal/compare engine internal/exposition internal/redact internal/target internal/sanitize internal/live metric outcome plan internal/publish report internal/run internal/search sim sim/step store internal/traceid",
	"scripts/seams":                 "",
	"internal/cli":                  ". internal/archive backend internal/bench internal/cluster internal/compare engine internal/termtext internal/exposition internal/jsonscan internal/migrate internal/proof internal/redact internal/spelling internal/target internal/terminal internal/sanitize internal/atomicfile internal/live metric outcome plan internal/predict internal/publish internal/replay report report/conclusion internal/run internal/search sim sim/step store token transport/socket workload internal/ui",
	"internal/cluster":              ". internal/recordjson internal/filelock internal/atomicfile internal/live metric plan internal/run session stat",
	"cmd/tacho":                     "internal/cli",
	"internal/truth":                ". pace internal/predict internal/route internal/search sim/step workload",
	"internal/proof":                ". metric plan internal/run sim stat workload",
}

// TestLayers parses the sources instead of running "go list", so that the test
// cache tracks the files.
func TestLayers(t *testing.T) {
	seen := map[string]bool{}
	walk(t, func(dir, file string, f *ast.File) {
		allowed, ok := layers[dir]
		if !ok {
			t.Errorf("%s: not in the layer map", dir)
		}
		seen[dir] = true
		for _, im := range f.Imports {
			imp, _ := strconv.Unquote(im.Path.Value)
			rel, inside := strings.CutPrefix(imp+"/", module+"/")
			if inside && !slices.Contains(strings.Fields(allowed), path.Clean(rel)) {
				t.Errorf("%s: %s must not import %s", file, dir, path.Clean(rel))
			}
		}
	})
	for dir := range layers {
		if !seen[dir] {
			t.Errorf("%s is in the layer map, and there is no such package", dir)
		}
	}
}

// The root package defines shared types only: it starts no goroutines, encodes
// no records and reads no context values.
func TestVocabularyDoesNothing(t *testing.T) {
	walk(t, func(dir, file string, f *ast.File) {
		if dir != "." {
			return
		}
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%s starts a goroutine", file)
			case *ast.FuncDecl:
				if name := n.Name.Name; (strings.Contains(name, "Marshal") || strings.Contains(name, "Unmarshal")) && filepath.Base(file) != "message.go" {
					t.Errorf("%s encodes: %s", file, name)
				}
			case *ast.SelectorExpr:
				if n.Sel.Name == "Value" {
					if x, ok := n.X.(*ast.Ident); ok && x.Name == "ctx" {
						t.Errorf("%s reads a value of a context", file)
					}
				}
			}
			return true
		})
	})
}

// An unlisted kind would compile but never be found.
func TestKindsAreListed(t *testing.T) {
	defined, listed := map[string]bool{}, map[string]bool{}
	walk(t, func(dir, _ string, f *ast.File) {
		for _, d := range f.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if isCommand(d) {
					defined[dir+"."+d.Name.Name] = true
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					if v, ok := s.(*ast.ValueSpec); ok && len(v.Values) == 1 {
						note(dir, v.Names[0].Name, v.Values[0], defined, listed)
					}
				}
			}
		}
	})
	for k := range defined {
		if !listed[k] {
			t.Errorf("%s is not listed", k)
		}
	}
	for _, want := range []string{"pace.", "backend.", "workload.", "report.", "metric.", "internal/cli."} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(defined)), func(k string) bool { return strings.HasPrefix(k, want) }) {
			t.Errorf("nothing is found in %s: has the type been renamed?", want)
		}
	}
}

// isCommand reports whether a function creates a command of the program.
func isCommand(f *ast.FuncDecl) bool {
	results := f.Type.Results
	if results == nil || len(results.List) != 1 || f.Name.Name == "newRoot" || !strings.HasPrefix(f.Name.Name, "new") {
		return false
	}
	pointer, ok := results.List[0].Type.(*ast.StarExpr)
	if !ok {
		return false
	}
	typ, ok := pointer.X.(*ast.SelectorExpr)
	return ok && typ.Sel.Name == "Command"
}

// note records a variable: a kind, or a list of kinds.
func note(dir, name string, value ast.Expr, defined, listed map[string]bool) {
	if pointer, ok := value.(*ast.UnaryExpr); ok {
		value = pointer.X
	}
	lit, ok := value.(*ast.CompositeLit)
	if !ok {
		return
	}
	if typ, ok := lit.Type.(*ast.Ident); ok && slices.Contains([]string{"Kind", "Format", "Metric"}, typ.Name) {
		defined[dir+"."+name] = true
	}
	if slices.Contains([]string{"Kinds", "Formats", "All", "commands"}, name) {
		for _, e := range lit.Elts {
			if id, ok := e.(*ast.Ident); ok {
				listed[dir+"."+id.Name] = true
			}
		}
	}
}

func walk(t *testing.T, fn func(dir, file string, f *ast.File)) {
	t.Helper()
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules") {
				return filepath.SkipDir
			}
			if _, err := os.Stat(filepath.Join(p, "go.mod")); err == nil && p != root { // another module
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(p, ".go") || strings.HasSuffix(p, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, filepath.Dir(p))
		if err != nil {
			return err
		}
		fn(filepath.ToSlash(rel), p, f)
		return nil
	})
	must.Do(t, err)
}
