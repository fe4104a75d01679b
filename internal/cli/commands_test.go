package cli_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

var (
	inFence  = regexp.MustCompile("(?s)```([a-z]*)\n(.*?)```")
	inCode   = regexp.MustCompile("`[^`]+`")
	indented = regexp.MustCompile(`(?m)^    .*$`)
	inQuotes = regexp.MustCompile(`'[^']*'|"[^"]*"`)
	spoken   = regexp.MustCompile(`(?m)(?:^[ $]*|` + "`" + `|run: )tacho ([a-z0-9]+)((?: +[^ 
|>&` + "`" + `]+)*)`)
	listed   = regexp.MustCompile(`(?m)^  ([a-z0-9]+) +[A-Z]`)
	flagWord = regexp.MustCompile(`(?:^|[ \[])(--[a-z][a-z0-9-]*)`)
)

// code returns all code in a document, without quoted text, which contains
// commands of other tools.
func code(text string) string {
	var b strings.Builder
	for _, m := range inFence.FindAllStringSubmatch(text, -1) {
		if m[1] != "go" {
			b.WriteString(strings.ReplaceAll(m[2], "\\\n", " "))
		}
	}
	text = inFence.ReplaceAllString(text, "")
	for _, m := range slices.Concat(inCode.FindAllString(text, -1), indented.FindAllString(text, -1)) {
		b.WriteString(strings.ReplaceAll(m, "\n", " ") + "\n")
	}
	return inQuotes.ReplaceAllString(b.String(), "X")
}

// TestDocumentsNameCommandsAndFlags checks that every command and flag in a
// document exists.
func TestDocumentsNameCommandsAndFlags(t *testing.T) {
	t.Parallel()
	docs := must.Get(filepath.Glob("../../docs/*.md"))(t)
	commands := []string{"help"}
	for _, m := range listed.FindAllStringSubmatch(helpOf(t, 80, "--help"), -1) {
		commands = append(commands, m[1])
	}
	flags := map[string][]string{}
	known := func(command string) []string {
		if flags[command] == nil {
			flags[command] = append(flagsOf(helpOf(t, 80, command, "--help-all")), "--help", "--help-all", "--router") // alias of --balance
		}
		return flags[command]
	}
	found := 0
	for _, doc := range append(docs, "../../README.md", "../../CONTRIBUTING.md") {
		b := must.Get(os.ReadFile(doc))(t)
		for _, m := range spoken.FindAllStringSubmatch(code(string(b)), -1) {
			command, words := m[1], m[2]
			if !slices.Contains(commands, command) {
				if doc != "../../docs/extending.md" { // this document adds a command
					t.Errorf("%s: there is no tacho %s", doc, command)
				}
				continue
			}
			own, afterDashes, _ := strings.Cut(words, " -- ") // flags for bench
			for of, words := range map[string]string{command: own, "bench": afterDashes} {
				for _, flag := range flagWord.FindAllStringSubmatch(words, -1) {
					found++
					if !slices.Contains(known(of), flag[1]) {
						t.Errorf("%s: tacho %s has no %s", doc, of, flag[1])
					}
				}
			}
		}
	}
	if found < 90 {
		t.Errorf("found %d flags: has the notation changed?", found)
	}
}
