// Command style checks the words of comments, messages and documents: `make words`.
// It prints how often some words occur in Go comments, and fails if a frequency is
// out of bounds or if a banned phrase occurs.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

func main() {
	report, err := check(os.DirFS("."))
	_, _ = os.Stdout.WriteString(report)
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

// check reads the tree and reports the table and every finding.
func check(tree fs.FS) (string, error) {
	c := checker{counts: map[string]int{}}
	err := fs.WalkDir(tree, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return skip(path, d, err)
		}
		if !d.Type().IsRegular() || excluded[path] {
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".md", ".js", ".html", ".yaml", ".yml", ".tpl":
		default:
			return nil
		}
		text, err := fs.ReadFile(tree, path)
		if err != nil {
			return err
		}
		return c.file(path, string(text))
	})
	if err != nil {
		return "", err
	}
	var out strings.Builder
	bad := c.table(&out)
	for _, f := range c.findings {
		fmt.Fprintln(&out, f)
	}
	if bad += len(c.findings); bad > 0 {
		err = fmt.Errorf("%d findings. CONTRIBUTING.md has the vocabulary", bad)
	}
	return out.String(), err
}

// excluded files contain the phrases on purpose.
var excluded = map[string]bool{
	"internal/style/banned.go":     true, // the list itself
	"internal/style/style_test.go": true,
}

// skip leaves out caches, test data and other modules' dependencies.
func skip(path string, d fs.DirEntry, err error) error {
	if err != nil {
		return err
	}
	name := d.Name()
	if path != "." && (strings.HasPrefix(name, ".") || name == "testdata" || name == "node_modules" || path == "bin" || path == "dist") {
		return fs.SkipDir
	}
	return nil
}

type checker struct {
	words    int            // in Go comments
	counts   map[string]int // of the words in limits
	findings []string
}

func (c *checker) file(path, text string) error {
	if filepath.Ext(path) != ".go" {
		c.prose(path, text)
		return nil
	}
	files := token.NewFileSet()
	f, err := parser.ParseFile(files, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range f.Comments {
		for _, comment := range group.List {
			if !directive(comment.Text) {
				for _, w := range word.FindAllString(comment.Text, -1) {
					c.words++
					c.counts[strings.ToLower(w)]++
				}
			}
		}
		c.find(path, files.Position(group.Pos()).Line, group.Text())
	}
	if strings.HasSuffix(path, "_test.go") {
		return nil
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if s, err := strconv.Unquote(lit.Value); err == nil && strings.Contains(s, " ") {
				c.find(path, files.Position(lit.Pos()).Line, s)
			}
		}
		return true
	})
	return nil
}

// prose checks a document without its code blocks.
func (c *checker) prose(path, text string) {
	code := false
	number := 0
	for line := range strings.Lines(text) {
		number++
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			code = !code
		}
		if !code && !strings.HasPrefix(line, "    ") {
			c.find(path, number, line)
		}
	}
}

func directive(comment string) bool {
	return strings.HasPrefix(comment, "//go:") || strings.HasPrefix(comment, "//nolint") || strings.HasPrefix(comment, "//line ")
}

var word = regexp.MustCompile(`[a-zA-Z']+`)

// find looks for banned phrases, also across the lines of one comment.
func (c *checker) find(path string, line int, text string) {
	flat := strings.Join(strings.Fields(text), " ")
	for _, p := range banned {
		if hit := p.pattern.FindString(flat); hit != "" {
			c.findings = append(c.findings, fmt.Sprintf("%s:%d: %q: write %s", path, line, hit, p.instead))
		}
	}
}

// table prints the frequencies and returns how many are out of bounds.
func (c *checker) table(out *strings.Builder) int {
	bad := 0
	fmt.Fprintf(out, "%d words of Go comments\n%-18s %9s  %s\n", c.words, "word", "per 1,000", "bound")
	for _, l := range limits {
		n := 0
		for _, w := range l.words {
			n += c.counts[w]
		}
		rate := 1000 * float64(n) / float64(max(c.words, 1))
		bound, miss := fmt.Sprintf("> %g", l.min), ""
		if l.max > 0 {
			bound = fmt.Sprintf("< %g", l.max)
		}
		if l.max > 0 && rate >= l.max || l.min > 0 && rate <= l.min {
			bad, miss = bad+1, "  out of bounds"
		}
		fmt.Fprintf(out, "%-18s %9.2f  %s%s\n", strings.Join(l.words, ", "), rate, bound, miss)
	}
	return bad
}
