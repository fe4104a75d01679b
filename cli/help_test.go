package cli_test

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"tacho/cli"
)

// helpOf is the help of a command on a terminal of a width.
func helpOf(t *testing.T, width int, args ...string) string {
	t.Helper()
	var out strings.Builder
	env := &cli.Env{Args: args, Stdout: &out, Stderr: io.Discard, Getenv: func(string) string { return "" }, Width: func() int { return width }}
	if code := cli.Main(env); code != 0 {
		t.Fatalf("tacho %v: exit code %d", args, code)
	}
	return out.String()
}

var (
	commandLine = regexp.MustCompile(`(?m)^  ([a-z]+) +[A-Z]`)
	flagOfHelp  = regexp.MustCompile(`(?m)^  (?:\+ )?(--[a-z0-9-]+)`)
)

// TestHelp asks every command for its help: in short it has examples first and few
// flags, and nothing is wider than the terminal unless it is one word.
func TestHelp(t *testing.T) {
	t.Parallel()
	_, list, _ := strings.Cut(helpOf(t, 80, "--help"), "Commands:\n")
	names := commandLine.FindAllStringSubmatch(list, -1)
	if len(names) < 10 {
		t.Fatalf("%d commands: has the notation changed?", len(names))
	}
	for _, m := range names {
		name := m[1]
		for _, width := range []int{40, 80, 120} {
			short, all := helpOf(t, width, name, "--help"), helpOf(t, width, name, "--help-all")
			fitsWidth(t, width, short)
			fitsWidth(t, width, all)
			few, most := flagsOf(short), flagsOf(all)
			if len(few) > 22 {
				t.Errorf("%s --help has %d flags: choose those that people use (often, in help.go)", name, len(few))
			}
			for _, f := range few {
				if !slices.Contains(most, f) {
					t.Errorf("%s --help-all has no %s, and --help has", name, f)
				}
			}
			if before, _, found := strings.Cut(short, "\nUsage:"); !found || !strings.Contains(before, "\nExamples:\n") {
				t.Errorf("%s --help does not begin with examples:\n%s", name, short)
			}
		}
	}
	if got := len(flagsOf(helpOf(t, 80, "bench", "--help-all"))); got < 150 {
		t.Errorf("bench --help-all has %d flags", got)
	}
}

func flagsOf(help string) (out []string) {
	_, help, _ = strings.Cut(help, "\nUsage:")
	for _, m := range flagOfHelp.FindAllStringSubmatch(help, -1) {
		out = append(out, m[1])
	}
	return out
}

func fitsWidth(t *testing.T, width int, help string) {
	t.Helper()
	for line := range strings.Lines(help) {
		line = strings.TrimRight(line, "\n")
		text, _ := strings.CutSuffix(strings.TrimSpace(line), ` \`)
		whole := strings.HasPrefix(text, "-") || strings.Contains(text, "tacho ") // a flag with its value, a command
		if utf8.RuneCountInString(line) > width && strings.Contains(text, " ") && !whole {
			t.Errorf("wider than %d: %q", width, line)
		}
	}
}

// TestExamplesStayCommands joins the lines of an example again.
func TestExamplesStayCommands(t *testing.T) {
	t.Parallel()
	joined := func(width int) string {
		return strings.ReplaceAll(helpOf(t, width, "sweep", "--help"), " \\\n      ", " ")
	}
	found := 0
	for line := range strings.Lines(joined(120)) {
		if !strings.HasPrefix(line, "  tacho sweep --serve-cmd \"") {
			continue
		}
		found++
		if !strings.Contains(joined(40), line) || strings.Contains(line, `\`) {
			t.Errorf("broken: %s", line)
		}
	}
	if found != 2 {
		t.Errorf("found %d examples", found)
	}
}
