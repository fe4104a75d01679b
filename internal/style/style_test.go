package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/tacho-bench/tacho/internal/must"
)

// TestCheckFindsPhrases checks comments, messages and documents with one banned phrase each.
func TestCheckFindsPhrases(t *testing.T) {
	for name, c := range map[string]struct{ path, text, want string }{
		"comment":            {"a.go", "package a\n\n// F asks nobody.\nfunc F() {}\n", `a.go:3: "nobody"`},
		"comment over lines": {"a.go", "package a\n\n// F is as long as that\n// of the other.\nfunc F() {}\n", `a.go:3: "that of the"`},
		"message":            {"a.go", "package a\n\nvar e = \"this is to be had\"\n", `a.go:3: "to be had"`},
		"document":           {"docs/a.md", "# A\n\nThe run is over.\n", `docs/a.md:3: "is over."`},
		"script":             {"ui/a.js", "// Likewise here.\n", `ui/a.js:1: "Likewise"`},
		"profile":            {"sim/a.yaml", "noise: 1  # nobody knows why\n", `sim/a.yaml:1: "nobody"`},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := check(fstest.MapFS{c.path: {Data: []byte(c.text)}})
			if err == nil || !strings.Contains(report, c.want) {
				t.Errorf("error %v, want %s in\n%s", err, c.want, report)
			}
		})
	}
}

// TestCheckAccepts checks that code, code blocks, test data and words that contain a banned word pass.
func TestCheckAccepts(t *testing.T) {
	c := checker{counts: map[string]int{}}
	for path, text := range map[string]string{
		"a.go":      "package a\n\n//go:build linux\n\nvar nobody = \"nobody\" // a user name\n",
		"docs/a.md": "```\nnobody\n```\n\n    nobody\n\nEverybody overrides.\n",
	} {
		must.Do(t, c.file(path, strings.ReplaceAll(text, " // a user name", "")))
	}
	if len(c.findings) > 0 {
		t.Error(c.findings)
	}
}

// TestTableCounts checks the frequencies: directives do not count, and a frequency out of bounds is a finding.
func TestTableCounts(t *testing.T) {
	c := checker{counts: map[string]int{}}
	must.Do(t, c.file("a.go", "package a\n\n//go:noinline\n\n// F returns early if x is empty, because nothing follows.\nfunc F() {}\n"))
	var out strings.Builder
	if bad := c.table(&out); c.words != 10 || bad != 0 {
		t.Errorf("%d words, %d out of bounds, want 10 and 0\n%s", c.words, bad, out.String())
	}
	must.Do(t, c.file("b.go", "package a\n\n// What it has: it has what it has.\nfunc G() {}\n"))
	if bad := c.table(&out); bad != 3 {
		t.Errorf("%d out of bounds, want 3: what, it, has\n%s", bad, out.String())
	}
}

// TestTreeIsClean checks the words of this repository, and that "make check" does so too.
func TestTreeIsClean(t *testing.T) {
	if report, err := check(os.DirFS("../..")); err != nil {
		t.Errorf("%v\n%s", err, report)
	}
	makefile := must.Get(os.ReadFile("../../Makefile"))(t)
	if !regexp.MustCompile(`(?m)^check:.* words\b`).Match(makefile) || !strings.Contains(string(makefile), "\nwords:\n\tgo run ./internal/style\n") {
		t.Error("make check does not check the words")
	}
}
