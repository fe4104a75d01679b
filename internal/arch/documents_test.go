package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/tacho-bench/tacho/internal/must"
)

var (
	codeSpan   = regexp.MustCompile("`[^`\n]+`")
	codeFence  = regexp.MustCompile("(?s)```.*?\n(.*?)```")
	linkTarget = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	goFile     = regexp.MustCompile(`(?:[\w.-]+/)*[\w-]+\.go\b`)
	packageDir = regexp.MustCompile(`^(?:\./)?((?:internal|cmd|deploy|sim|report|token|transport|tests|docs)/[\w./-]+)$`)
	makeWords  = regexp.MustCompile(`\bmake((?: [a-z][a-z0-9-]*)+)`)
	makeRule   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	identifier = regexp.MustCompile(`\b([A-Za-z]\w*)\.([A-Z]\w*)(?:\.([A-Z]\w*))?`)
	testName   = regexp.MustCompile(`\b(?:Test|Fuzz|Benchmark|Example)[A-Z]\w*`)
	heading    = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// exampleFiles are the files that a document tells its reader to write.
var exampleFiles = []string{"metric/thinking.go", "report/chat.go", "internal/cli/failures.go", "workload/translation.go"}

// TestDocumentsNameWhatExists checks the names in every document: files and folders of
// the repository, targets of make, tests, Go identifiers of the form pkg.Name, and links.
func TestDocumentsNameWhatExists(t *testing.T) {
	d := newDeclarations(t)
	makefile := read(t, "Makefile")
	targets := map[string]bool{}
	for _, m := range makeRule.FindAllStringSubmatch(makefile, -1) {
		targets[m[1]] = true
	}
	found := map[string]int{}
	for _, page := range documents(t) {
		text := read(t, page)
		for _, problem := range d.missing(text, found) {
			t.Errorf("%s: %s", page, problem)
		}
		for _, word := range targetsOf(text) {
			found["targets"]++
			if !targets[word] {
				t.Errorf("%s: the Makefile has no target %s", page, word)
			}
		}
		for _, link := range linkTarget.FindAllStringSubmatch(codeFence.ReplaceAllString(text, ""), -1) {
			if !strings.Contains(link[1], "://") {
				found["links"]++
				checkLink(t, page, link[1])
			}
		}
	}
	for kind, least := range map[string]int{"files": 15, "identifiers": 15, "tests": 10, "targets": 30, "links": 80} {
		if found[kind] < least {
			t.Errorf("the documents have %d %s: did the notation change?", found[kind], kind)
		}
	}
}

// Broken names of every sort are found.
func TestMissingNamesAreFound(t *testing.T) {
	d := newDeclarations(t)
	for _, text := range []string{"`report/nosuch.go`", "`internal/nosuch`", "`plan.Nosuch`", "`plan.Plan.Nosuch`", "`TestNosuchThing`"} {
		if problems := d.missing(text, map[string]int{}); len(problems) != 1 {
			t.Errorf("%s: %q", text, problems)
		}
	}
	if problems := d.missing("`plan.Plan`, `http.Request.Write`, `internal/arch/arch_test.go`, `engine.Run`", map[string]int{}); len(problems) != 0 {
		t.Error(problems)
	}
}

// The README.md of each folder of documents links to every page beside it.
func TestIndexHasEveryPage(t *testing.T) {
	for _, dir := range []string{"docs", "docs/adr", "docs/log"} {
		index := read(t, dir+"/README.md")
		pages, err := filepath.Glob(filepath.Join(root, dir, "*.md"))
		if err != nil || len(pages) < 5 {
			t.Fatalf("%d pages, %v", len(pages), err)
		}
		for _, page := range pages {
			if name := filepath.Base(page); name != "README.md" && !strings.Contains(index, "]("+name+")") {
				t.Errorf("%s/README.md does not list %s", dir, name)
			}
		}
	}
}

// maxWords limits the words of documents outside tables, by path or pattern.
var maxWords = map[string]int{
	"docs/adr/0*.md": 120, "docs/method.md": 1500, "docs/predict.md": 1200, "docs/find.md": 1200, "docs/cluster.md": 1200, "README.md": 1500,
}

var tableRow = regexp.MustCompile(`(?m)^\|.*$`)

func TestPagesAreShort(t *testing.T) {
	for pattern, most := range maxWords {
		pages, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(pages) == 0 {
			t.Errorf("%s: %d pages, %v", pattern, len(pages), err)
		}
		for _, page := range pages {
			text := must.Get(os.ReadFile(page))(t)
			if n := len(strings.Fields(tableRow.ReplaceAllString(string(text), ""))); n > most {
				t.Errorf("%s has %d words outside tables, want at most %d", page, n, most)
			}
		}
	}
}

// TestDocumentsAreFew bounds the words of all documents, as wc counts them.
func TestDocumentsAreFew(t *testing.T) {
	const most = 35_000
	words := 0
	for _, page := range documents(t) {
		words += len(strings.Fields(read(t, page)))
	}
	if words > most {
		t.Errorf("all documents have %d words, want at most %d: state a fact on one page only", words, most)
	}
}

// The README has at most 120 lines, a release 60 in the changelog, and the vocabulary 60 terms.
func TestListsAreShort(t *testing.T) {
	if n := strings.Count(read(t, "README.md"), "\n"); n > 120 {
		t.Errorf("README.md has %d lines", n)
	}
	releases := strings.Split(read(t, "CHANGELOG.md"), "\n## ")[1:]
	for _, release := range releases {
		if n := strings.Count(release, "\n"); n > 60 {
			t.Errorf("CHANGELOG.md: a release has %d lines", n)
		}
	}
	_, vocabulary, _ := strings.Cut(read(t, "CONTRIBUTING.md"), "\n## Vocabulary\n")
	terms := len(tableRow.FindAllString(vocabulary, -1)) - 2 // without its head
	if len(releases) == 0 || terms < 30 || terms > 60 {
		t.Errorf("%d releases, %d terms", len(releases), terms)
	}
}

// documents returns the paths of all documents, without generated ones and test data.
func documents(t *testing.T) []string {
	t.Helper()
	var pages []string
	must.Do(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && p != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "dist" || name == "runs") {
			return filepath.SkipDir
		}
		if strings.HasSuffix(p, ".md") {
			page, err := filepath.Rel(root, p)
			if err != nil {
				return err
			}
			pages = append(pages, page)
		}
		return nil
	}))
	return pages
}

func read(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(filepath.Join(root, name)))(t))
}

// spans returns the code of a document: words in backticks and fenced blocks, except Go code.
func spans(text string) []string {
	var out []string
	for _, m := range codeFence.FindAllStringSubmatch(text, -1) {
		if !strings.HasPrefix(m[0], "```go\n") {
			out = append(out, strings.Split(m[1], "\n")...)
		}
	}
	for _, span := range codeSpan.FindAllString(codeFence.ReplaceAllString(text, ""), -1) {
		out = append(out, strings.Trim(span, "`"))
	}
	return out
}

// targetsOf returns the targets of make that a document names in code.
func targetsOf(text string) []string {
	var out []string
	for _, span := range spans(text) {
		for _, m := range makeWords.FindAllStringSubmatch(span, -1) {
			out = append(out, strings.Fields(m[1])...)
		}
	}
	return out
}

// declarations are the names that the Go files of this repository declare.
type declarations struct {
	packages map[string]map[string]bool // names of a package, by its name; members as Type.Member
	types    map[string]bool            // members of types of any package, as Type.Member, and the types
	funcs    map[string]bool            // functions of all files, tests too
	files    map[string]bool            // base names of Go files
}

func newDeclarations(t *testing.T) *declarations {
	t.Helper()
	d := &declarations{packages: map[string]map[string]bool{}, types: map[string]bool{}, funcs: map[string]bool{}, files: map[string]bool{}}
	must.Do(t, filepath.WalkDir(root, func(p string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.IsDir() && p != root && (strings.HasPrefix(e.Name(), ".") || e.Name() == "testdata") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(p, ".go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), p, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		d.files[e.Name()] = true
		d.add(file)
		return nil
	}))
	return d
}

func (d *declarations) add(file *ast.File) {
	names := d.packages[file.Name.Name]
	if names == nil {
		names = map[string]bool{}
		d.packages[file.Name.Name] = names
	}
	member := func(typ, name string) {
		names[typ+"."+name], d.types[typ+"."+name] = true, true
	}
	for _, decl := range file.Decls {
		switch decl := decl.(type) {
		case *ast.FuncDecl:
			if decl.Recv == nil {
				names[decl.Name.Name], d.funcs[decl.Name.Name] = true, true
			} else {
				member(receiver(decl.Recv.List[0].Type), decl.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = true
					}
				case *ast.TypeSpec:
					names[spec.Name.Name], d.types[spec.Name.Name] = true, true
					for _, name := range membersOf(spec.Type) {
						member(spec.Name.Name, name)
					}
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// membersOf returns the fields of a struct and the methods of an interface.
func membersOf(e ast.Expr) []string {
	var fields *ast.FieldList
	switch e := e.(type) {
	case *ast.StructType:
		fields = e.Fields
	case *ast.InterfaceType:
		fields = e.Methods
	default:
		return nil
	}
	var out []string
	for _, f := range fields.List {
		for _, name := range f.Names {
			out = append(out, name.Name)
		}
	}
	return out
}

// missing returns a problem for each name in the code of a document that does not exist,
// and counts the names by sort.
func (d *declarations) missing(text string, found map[string]int) []string {
	var out []string
	for _, span := range spans(text) {
		for _, name := range goFile.FindAllString(span, -1) {
			found["files"]++
			ok := d.files[filepath.Base(name)] && strings.Count(name, "/") == strings.Count(name, "../") ||
				slices.Contains(exampleFiles, name) || strings.HasPrefix(name, "_") // the end of a pattern
			if _, err := os.Stat(filepath.Join(root, name)); err != nil && !ok {
				out = append(out, "there is no file "+name)
			}
		}
		if m := packageDir.FindStringSubmatch(span); m != nil && filepath.Ext(span) != ".go" {
			found["files"]++
			if _, err := os.Stat(filepath.Join(root, strings.TrimSuffix(m[1], "/..."))); err != nil {
				out = append(out, "there is no folder "+m[1])
			}
		}
		for _, m := range identifier.FindAllStringSubmatch(span, -1) {
			names, ours := d.packages[m[1]]
			if unicode.IsUpper(rune(m[1][0])) {
				names, ours = d.types, d.types[m[1]]
				m[2], m[3] = m[1]+"."+m[2], ""
			}
			if !ours {
				continue
			}
			found["identifiers"]++
			if !names[m[2]] || m[3] != "" && !names[m[2]+"."+m[3]] {
				out = append(out, "nothing declares "+m[0])
			}
		}
		for _, name := range testName.FindAllString(span, -1) {
			found["tests"]++
			if !d.hasTest(name) {
				out = append(out, "there is no test "+name)
			}
		}
	}
	return out
}

// hasTest reports whether a test begins with the name, which may be the pattern of go test -run.
func (d *declarations) hasTest(name string) bool {
	for f := range d.funcs {
		if strings.HasPrefix(f, name) {
			return true
		}
	}
	return false
}

// checkLink checks that the target of a link exists, and has the heading that the link names.
func checkLink(t *testing.T, page, link string) {
	t.Helper()
	file, anchor, _ := strings.Cut(link, "#")
	target := page
	if file != "" {
		target = filepath.Join(filepath.Dir(page), file)
	}
	if _, err := os.Stat(filepath.Join(root, target)); err != nil {
		t.Errorf("%s: the link to %s leads nowhere", page, link)
		return
	}
	if anchor == "" || !strings.HasSuffix(target, ".md") {
		return
	}
	for _, m := range heading.FindAllStringSubmatch(read(t, target), -1) {
		if slug(m[1]) == anchor {
			return
		}
	}
	t.Errorf("%s: %s has no heading #%s", page, target, anchor)
}

// slug is the anchor that GitHub makes of a heading.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
