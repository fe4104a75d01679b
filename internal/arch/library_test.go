package arch

import (
	"go/ast"
	"path"
	"strconv"
	"strings"
	"testing"
)

// Another module cannot name internal types, so the exported names of package bench do not use them.
func TestLibraryHasNoInternalTypes(t *testing.T) {
	names := 0
	walk(t, func(dir, file string, f *ast.File) {
		if dir != "bench" {
			return
		}
		internal := map[string]bool{}
		for _, im := range f.Imports {
			imp, _ := strconv.Unquote(im.Path.Value)
			internal[path.Base(imp)] = strings.Contains(imp, "/internal/")
		}
		for _, d := range f.Decls {
			for name, typ := range exported(d) {
				names++
				ast.Inspect(public(typ), func(n ast.Node) bool {
					if s, ok := n.(*ast.SelectorExpr); ok {
						if x, ok := s.X.(*ast.Ident); ok && internal[x.Name] {
							t.Errorf("%s: %s uses %s.%s, which another module cannot name", file, name, x.Name, s.Sel.Name)
						}
					}
					return true
				})
			}
		}
	})
	if names < 5 {
		t.Errorf("%d exported names found in package bench", names)
	}
}

// exported returns the exported names of a declaration with their types.
func exported(d ast.Decl) map[string]ast.Node {
	out := map[string]ast.Node{}
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && (d.Recv == nil || ast.IsExported(receiver(d.Recv.List[0].Type))) {
			out[d.Name.Name] = d.Type
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					out[s.Name.Name] = s.Type
				}
			case *ast.ValueSpec:
				if s.Names[0].IsExported() {
					out[s.Names[0].Name] = s
				}
			}
		}
	}
	return out
}

// public returns a type without the unexported fields of a struct.
func public(typ ast.Node) ast.Node {
	s, ok := typ.(*ast.StructType)
	if !ok {
		return typ
	}
	out := &ast.FieldList{}
	for _, f := range s.Fields.List {
		if len(f.Names) == 0 || f.Names[0].IsExported() {
			out.List = append(out.List, f)
		}
	}
	return out
}
