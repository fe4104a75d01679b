package arch

import (
	"go/ast"
	"slices"
	"testing"
)

// TestServersHaveTimeouts checks that every HTTP server closes connections that send no header or no further request, so
// that strangers cannot keep connections.
func TestServersHaveTimeouts(t *testing.T) {
	servers := 0
	walk(t, func(_, file string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			lit, ok := n.(*ast.CompositeLit)
			if !ok || !isSelector(lit.Type, "http", "Server") {
				return true
			}
			servers++
			var names []string
			for _, e := range lit.Elts {
				if field, ok := e.(*ast.KeyValueExpr); ok {
					names = append(names, field.Key.(*ast.Ident).Name)
				}
			}
			for _, want := range []string{"ReadHeaderTimeout", "IdleTimeout"} {
				if !slices.Contains(names, want) {
					t.Errorf("%s: an http.Server without %s", file, want)
				}
			}
			return true
		})
	})
	if servers < 3 {
		t.Errorf("%d servers found, want those of ui, sim and --metrics-listen", servers)
	}
}

// isSelector reports whether e is pkg.name.
func isSelector(e ast.Expr, pkg, name string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != name {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == pkg
}
