// Package arch holds the tests of the shape of the program.
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
)

const (
	module = "tacho"
	root   = "../.."
)

// layers says which packages of this module a package may import ("." is the
// vocabulary). A package that is not listed fails the
// test, so this map is the architecture, and a change to the architecture is a
// change to it.
var layers = map[string]string{
	".":                             "",
	"stat":                          "",
	"hub":                           "internal/wholefile",
	"internal/wholefile":            "",
	"internal/solely":               "",
	"token":                         "internal/jinja internal/jsonscan internal/wholefile token/internal/ranks",
	"internal/jinja":                "",
	"token/internal/ranks":          "",
	"token/internal/ranks/generate": "token/internal/ranks",
	"wire":                          "internal/jsonscan internal/limit",
	"internal/memnet":               "",
	"internal/jsonscan":             "",
	"internal/haste":                "",
	"internal/limit":                "",
	"internal/rows":                 "",
	"internal/spelling":             "",
	"internal/redact":               "",
	"internal/visible":              "",
	"internal/cells":                "internal/visible",
	"internal/wav":                  "",
	"internal/recordjson":           ".",
	"internal/release":              "",
	"internal/stress":               "",
	"internal/exposition":           "",
	"internal/fakehub":              "",
	"sim/step":                      "internal/spelling internal/wholefile sim/profiles",
	"sim/profiles":                  "",
	"sim/words":                     "",
	"predict":                       ". archive instrument metric outcome route session sim/step sim/words stat",
	"pace":                          ". stat",
	"replay":                        ".",
	"publish":                       ". internal/exposition metric",
	"route":                         ".",
	"search":                        ". metric stat",
	"session":                       ".",
	"engine":                        ". internal/haste session",
	"live":                          ". engine metric outcome",
	"live/view":                     "internal/cells live metric",
	"compare":                       ". metric outcome stat",
	"outcome":                       ". instrument metric",
	"store":                         ". instrument internal/recordjson internal/solely internal/wholefile metric outcome",
	"archive":                       ". instrument internal/wholefile metric outcome report store",
	"transport":                     ". internal/haste internal/limit internal/wholefile transport/tap",
	"transport/tap":                 "",
	"workload":                      ". internal/jsonscan internal/rows internal/spelling internal/wav internal/wholefile stat token",
	"backend":                       ". internal/jsonscan internal/limit internal/redact internal/spelling route session transport wire",
	"metric":                        ". internal/spelling stat",
	"report":                        ". compare internal/cells internal/exposition internal/spelling internal/visible metric outcome report/conclusion report/page stat",
	"report/conclusion":             "metric outcome",
	"report/page":                   ". compare instrument metric outcome report/conclusion stat",
	"ui":                            "archive compare internal/wholefile metric outcome report/conclusion report/page store",
	"instrument":                    "internal/limit metric",
	"sim":                           "internal/spelling internal/wav sim/step sim/words wire",
	"plan":                          ". backend internal/redact internal/spelling metric outcome pace workload",
	"internal/target":               ". backend hub instrument internal/limit internal/redact internal/rows live metric pace plan route token transport transport/tap workload",
	"run":                           ". backend engine instrument internal/redact internal/target live metric outcome pace plan predict replay route search session sim/step token workload",
	"bench":                         ". archive backend compare engine internal/exposition internal/redact internal/target internal/visible live metric outcome plan publish report run sim sim/step store",
	"cli":                           ". archive backend bench cluster compare engine internal/cells internal/exposition internal/jsonscan internal/proof internal/redact internal/spelling internal/target internal/visible internal/wholefile live live/view metric outcome plan predict publish replay report report/conclusion run search sim sim/step store token transport workload ui",
	"cluster":                       ". internal/recordjson internal/solely internal/wholefile live metric plan run session stat",
	"cmd/tacho":                     "cli",
	"internal/truth":                ". pace predict route search sim/step workload",
	"internal/proof":                ". metric plan run sim stat workload",
}

// The sources are parsed here and not listed with "go list", so that the test
// cache sees them: a cached pass is then a pass of these very files.
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

// The root package is a vocabulary: nothing in it runs by itself, encodes records or
// reads values of a context.
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

// A kind that is defined but not listed would compile and never be found.
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
	for _, want := range []string{"pace.", "backend.", "workload.", "report.", "metric.", "cli."} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(defined)), func(k string) bool { return strings.HasPrefix(k, want) }) {
			t.Errorf("nothing is found in %s: has the type been renamed?", want)
		}
	}
}

// isCommand says whether a function makes a command of the program.
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

// note takes a variable in: it is a kind, or a list of kinds.
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
	if err != nil {
		t.Fatal(err)
	}
}

// CONTRIBUTING says of every package what it is, and speaks of no other.
func TestContributingHasEveryPackage(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		names, _, _ := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		for name := range strings.SplitSeq(names, ", ") {
			told[strings.Trim(name, "`")] = true
		}
	}
	for dir := range layers {
		if dir == "." {
			dir = module
		}
		if !told[dir] {
			t.Errorf("CONTRIBUTING.md says nothing of %s", dir)
		}
		delete(told, dir)
	}
	for name := range told { // packages of tests alone are left
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			t.Errorf("CONTRIBUTING.md speaks of %s, and there is no such package", name)
		}
	}
}
