package arch

import (
	"go/ast"
	"slices"
	"strings"
	"testing"
)

// mayOpen lists files below the executor of plans that open files themselves, with the reason why no plan names these
// files.
var mayOpen = map[string]string{
	"internal/atomicfile/atomicfile.go":  "creates temporary files",
	"internal/atomicfile/confine.go":     "checks the permission of an agent",
	"internal/hub/hub.go":                "its own cache; names of repositories and revisions are checked",
	"internal/hub/fetch.go":              "its own cache; names of repositories and files are checked",
	"internal/rows/store.go":             "a temporary copy",
	"internal/run/monotonic_linux.go":    "/proc/stat",
	"internal/run/quota.go":              "control groups",
	"transport/socket/tap/ring_linux.go": "the memory of a packet socket",
	"token/compiled.go":                  "its own cache; names are checksums",
	"workload/huggingface.go":            "lists a directory that atomicfile.Stat permits",
	"workload/servegen.go":               "lists a directory that atomicfile.Stat permits",
}

// openers are the functions of packages that read files or list directories.
var openers = map[string][]string{
	"os":       {"Open", "OpenFile", "OpenRoot", "OpenInRoot", "ReadFile", "ReadDir", "DirFS", "Stat", "Lstat", "Readlink", "CopyFS", "Create", "CreateTemp", "WriteFile"},
	"filepath": {"Glob", "Walk", "WalkDir", "EvalSymlinks"},
	"ioutil":   {"ReadFile", "ReadDir"},
	"syscall":  {"Open", "Openat", "Mmap"},
	"unix":     {"Open", "Openat", "Openat2", "Mmap"},
	"tls":      {"LoadX509KeyPair"},
	"template": {"ParseFiles", "ParseGlob", "ParseFS"},
	"zip":      {"OpenReader"},
	"http":     {"Dir", "ServeFile"},
}

// TestPlansReadOnlyPermittedFiles checks that the packages that execute a plan open files only through atomicfile, which
// asks for the permission of an agent (--allow-read).
func TestPlansReadOnlyPermittedFiles(t *testing.T) {
	executes := map[string]bool{"internal/archive": false} // stored results, which no plan of an agent names
	queue := []string{"internal/run"}
	for len(queue) > 0 {
		dir := queue[0]
		queue = queue[1:]
		if _, seen := executes[dir]; !seen {
			executes[dir] = true
			queue = append(queue, strings.Fields(layers[dir])...)
		}
	}
	used := map[string]bool{}
	walk(t, func(dir, file string, f *ast.File) {
		if !executes[dir] {
			return
		}
		file = strings.TrimPrefix(file, root+"/")
		ast.Inspect(f, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			x, ok := s.X.(*ast.Ident)
			if !ok || !slices.Contains(openers[x.Name], s.Sel.Name) {
				return true
			}
			if used[file] = true; mayOpen[file] == "" {
				t.Errorf("%s calls %s.%s: a plan could name any file of an agent, so use package atomicfile", file, x.Name, s.Sel.Name)
			}
			return true
		})
	})
	for file := range mayOpen {
		if !used[file] {
			t.Errorf("%s may open files, and does not", file)
		}
	}
}
