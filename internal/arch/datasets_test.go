package arch

import (
	"go/ast"
	"go/token"
	"strconv"
	"strings"
	"testing"
)

// otherMeanings are strings equal to a dataset's name with another meaning, by
// file.
var otherMeanings = map[string]string{
	"internal/route/route.go random": "a way to choose one of several servers",
	"plan/plan.go random":            "a way to choose one of several adapters",
	"internal/score/score.go bfcl":   "a way to score an answer",
}

// mayNameDatasets lists files that refer to datasets by name, with the reason.
var mayNameDatasets = map[string]string{
	"plan/named.go": "the definitions of --workload are flags, among them --dataset-name",
}

// A dataset is one file in package workload and one entry in its list. Other
// code never refers to a dataset by name; properties of a dataset are fields of
// its Kind.
func TestDatasetNamesStayInWorkload(t *testing.T) {
	names, literals := map[string]bool{}, map[string][]string{} // literals by file
	walk(t, func(dir, file string, f *ast.File) {
		ast.Inspect(f, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CompositeLit:
				if typ, ok := n.Type.(*ast.Ident); ok && dir == "workload" && typ.Name == "Kind" {
					names[kindName(n)] = true
				}
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil && n.Kind == token.STRING && dir != "workload" {
					file := strings.TrimPrefix(file, root+"/")
					literals[file] = append(literals[file], text)
				}
			}
			return true
		})
	})
	delete(names, "") // not a dataset
	if len(names) < 20 {
		t.Errorf("found only %d datasets: has the type been renamed?", len(names))
	}
	met := map[string]bool{}
	for file, texts := range literals {
		for _, text := range texts {
			place := file + " " + text
			if met[place] = true; names[strings.ReplaceAll(text, "-", "_")] && otherMeanings[place] == "" && mayNameDatasets[file] == "" {
				t.Errorf("%s names the dataset %s: make what it must know a field of workload.Kind", file, text)
			}
		}
	}
	for place := range otherMeanings {
		if !met[place] {
			t.Errorf("%s: it is not there any more", place)
		}
	}
}

// kindName returns the name of a Kind.
func kindName(kind *ast.CompositeLit) string {
	for _, e := range kind.Elts {
		field, ok := e.(*ast.KeyValueExpr)
		if !ok || field.Key.(*ast.Ident).Name != "Name" {
			continue
		}
		if lit, ok := field.Value.(*ast.BasicLit); ok {
			name, _ := strconv.Unquote(lit.Value) // already parsed
			return name
		}
	}
	return ""
}
