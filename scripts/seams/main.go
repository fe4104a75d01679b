// Command seams prints how wide the doors of the packages are: for each package its
// exported functions, methods, types, variables and constants, how many of them other
// packages use, and how many of the others appear in tests. With -unused it prints the
// names that neither other packages nor tests use. Methods of interfaces, and names that templates or
// other modules use, are among them.
//
//	go run ./scripts/seams [-unused]
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

const module = "github.com/tacho-bench/tacho"

// A listed is a package in the output of go list.
type listed struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
	TestGoFiles             []string
	XTestGoFiles            []string
	ImportMap               map[string]string
}

// A seam is an exported name: "Name" or "Type.Method".
type seam struct{ pkg, name string }

func main() {
	if err := run(os.Stdout, len(os.Args) > 1 && os.Args[1] == "-unused"); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run prints the table, or the unused names.
func run(out io.Writer, unused bool) error {
	exported, used, tested, err := seams()
	if err != nil {
		return err
	}
	if !unused {
		return table(out, exported, used, tested)
	}
	for _, s := range slices.SortedFunc(maps.Keys(exported), func(a, b seam) int { return strings.Compare(a.pkg+a.name, b.pkg+b.name) }) {
		if used[s] || tested[s] {
			continue
		}
		if _, err := fmt.Fprintln(out, strings.TrimPrefix(s.pkg, module+"/"), s.name); err != nil {
			return err
		}
	}
	return nil
}

// seams returns the exported names, those that other packages use, and those that appear in tests.
func seams() (exported, used, tested map[seam]bool, err error) {
	all, err := list()
	if err != nil {
		return nil, nil, nil, err
	}
	exported, used, tested = map[seam]bool{}, map[seam]bool{}, map[seam]bool{}
	inTests := map[string]bool{}
	for _, p := range all {
		if p.ImportPath != module && !strings.HasPrefix(p.ImportPath, module+"/") {
			continue
		}
		pkg, info, err := check(&p, all)
		if err != nil {
			return nil, nil, nil, err
		}
		for s := range door(pkg) {
			exported[s] = true
		}
		for _, o := range info.Uses {
			if s, ok := seamOf(o); ok && s.pkg != p.ImportPath {
				used[s] = true
			}
		}
		if err := selected(&p, inTests); err != nil {
			return nil, nil, nil, err
		}
	}
	for s := range exported {
		tested[s] = inTests[s.name[strings.LastIndex(s.name, ".")+1:]]
	}
	return exported, used, tested, nil
}

// table prints a row for each package, the most used one first.
func table(out io.Writer, exported, used, tested map[seam]bool) error {
	type row struct{ names, used, tested int }
	rows := map[string]*row{}
	for s := range exported {
		if rows[s.pkg] == nil {
			rows[s.pkg] = &row{}
		}
		rows[s.pkg].names++
		if used[s] {
			rows[s.pkg].used++
		} else if tested[s] {
			rows[s.pkg].tested++
		}
	}
	var text strings.Builder
	_, _ = fmt.Fprintf(&text, "%-28s %8s %8s %10s\n", "package", "exported", "used", "in tests")
	for _, p := range slices.SortedFunc(maps.Keys(rows), func(a, b string) int { return rows[b].used - rows[a].used }) {
		r := rows[p]
		_, _ = fmt.Fprintf(&text, "%-28s %8d %8d %10d\n", strings.TrimPrefix(strings.TrimPrefix(p, module), "/"), r.names, r.used, r.tested)
	}
	_, err := io.WriteString(out, text.String())
	return err
}

// list returns all packages of the module with their tests and dependencies.
func list() (map[string]listed, error) {
	cmd := exec.CommandContext(context.Background(), "go", "list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,TestGoFiles,XTestGoFiles,ImportMap", "./...")
	cmd.Stderr = os.Stderr
	text, err := cmd.Output()
	if err != nil {
		return nil, err
	}
	out := map[string]listed{}
	for d := json.NewDecoder(strings.NewReader(string(text))); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return out, nil
		} else if err != nil {
			return nil, err
		}
		out[p.ImportPath] = p
	}
}

// check parses a package and resolves its names.
func check(p *listed, all map[string]listed) (*types.Package, *types.Info, error) {
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range p.GoFiles {
		f, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, nil, err
		}
		files = append(files, f)
	}
	lookup := func(path string) (io.ReadCloser, error) {
		if other, ok := p.ImportMap[path]; ok {
			path = other
		}
		return os.Open(all[path].Export)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	conf := types.Config{Importer: importer.ForCompiler(fset, "gc", lookup), FakeImportC: true}
	pkg, err := conf.Check(p.ImportPath, fset, files, info)
	return pkg, info, err
}

// selected adds the names after a dot in the tests of a package. Tests are not type-checked,
// because that would build all of them.
func selected(p *listed, names map[string]bool) error {
	for _, name := range slices.Concat(p.TestGoFiles, p.XTestGoFiles) {
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				names[s.Sel.Name] = true
			}
			return true
		})
	}
	return nil
}

// seamOf returns the exported name of an object: a name of a package, or a method.
func seamOf(o types.Object) (seam, bool) {
	if o.Pkg() == nil || !o.Exported() {
		return seam{}, false
	}
	pkg := o.Pkg().Path()
	if f, ok := o.(*types.Func); ok {
		if recv := f.Signature().Recv(); recv != nil {
			t := recv.Type()
			if pointer, ok := t.(*types.Pointer); ok {
				t = pointer.Elem()
			}
			named, ok := t.(*types.Named)
			return seam{pkg, fmt.Sprint(types.TypeString(t, func(*types.Package) string { return "" }), ".", f.Name())}, ok && named.Obj().Exported()
		}
	}
	return seam{pkg, o.Name()}, o.Parent() == o.Pkg().Scope()
}

// door returns the exported names of a package.
func door(pkg *types.Package) map[seam]bool {
	out := map[seam]bool{}
	for _, name := range pkg.Scope().Names() {
		o := pkg.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		out[seam{pkg.Path(), name}] = true
		if t, ok := o.Type().(*types.Named); ok && t.Obj() == o {
			for m := range t.Methods() {
				if s, ok := seamOf(m); ok {
					out[s] = true
				}
			}
		}
	}
	return out
}
