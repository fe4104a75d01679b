package search

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// declared returns the source text of the value of each constant of constants.go, and
// reports constants without a comment of their own.
func declared(t *testing.T) map[string]string {
	t.Helper()
	text := must.Get(os.ReadFile("constants.go"))(t)
	files := token.NewFileSet()
	file := must.Get(parser.ParseFile(files, "constants.go", text, parser.ParseComments))(t)
	values := map[string]string{}
	ast.Inspect(file, func(n ast.Node) bool {
		group, ok := n.(*ast.GenDecl)
		if !ok || group.Tok == token.IMPORT {
			return true
		}
		for _, s := range group.Specs {
			spec := s.(*ast.ValueSpec)
			name, comment := spec.Names[0].Name, spec.Doc.Text()
			if !group.Lparen.IsValid() {
				comment = group.Doc.Text()
			}
			if len(spec.Names) != 1 || !strings.HasPrefix(comment, name+" ") {
				t.Errorf("%s has no comment that begins with its name", name)
			}
			from, to := files.Position(spec.Values[0].Pos()).Offset, files.Position(spec.Values[0].End()).Offset
			values[name] = string(text[from:to])
		}
		return true
	})
	return values
}

// Each constant has a comment of its own, and docs/find-method.md shows the values of
// constants.go.
func TestConstantsAreDocumented(t *testing.T) {
	values := declared(t)
	page := must.Get(os.ReadFile("../../docs/find-method.md"))(t)
	rows := regexp.MustCompile("(?m)^\\| `(\\w+)` = `([^`]+)` \\|").FindAllStringSubmatch(string(page), -1)
	const fewest = 8 // if there are fewer rows, the notation changed
	if len(rows) < fewest {
		t.Errorf("the page has %d constants", len(rows))
	}
	for _, row := range rows {
		if got, ok := values[row[1]]; !ok || got != row[2] {
			t.Errorf("the page says %s = %s; constants.go says %q", row[1], row[2], got)
		}
	}
}
