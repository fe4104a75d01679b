package cli_test

import (
	"bytes"
	"os"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
)

// TestReadmeScreen runs the command of make run in virtual time, on a terminal of 80 columns.
// The screen in the README must have its lines, apart from numbers, verdicts and curves.
func TestReadmeScreen(t *testing.T) {
	makefile := must.Get(os.ReadFile("../../Makefile"))(t)
	readme := must.Get(os.ReadFile("../../README.md"))(t)
	show := regexp.MustCompile(`(?m)^SHOW := (.*)$`).FindSubmatch(makefile)
	_, shown, found := strings.Cut(string(readme), "ends with a screen like this")
	_, shown, also := strings.Cut(shown, "```\n")
	shown, _, _ = strings.Cut(shown, "```")
	if show == nil || !found || !also {
		t.Fatal("there is no SHOW in the Makefile, or no screen in the README")
	}
	t.Chdir(t.TempDir())
	var printed map[string]bool
	synctest.Test(t, func(t *testing.T) {
		var out, errs bytes.Buffer
		code := cli.Main(&cli.Env{
			Args:  append([]string{"bench"}, strings.Fields(string(show[1]))...),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Network: &network, Terminal: true,
			Getenv: func(string) string { return "" }, Width: func() int { return 80 }, Height: func() int { return 24 },
		})
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, errs.String())
		}
		printed = forms(out.String() + errs.String())
	})
	lines := 0
	for form := range forms(shown) {
		if lines++; !printed[form] {
			t.Errorf("the README shows %q, which make run does not print: %v", form, printed)
		}
	}
	if lines < 7 {
		t.Errorf("%d lines in the README's screen", lines)
	}
}

// forms returns the lines of a screen without numbers, verdicts, curves and paths. The line on
// the clock is left out: virtual time has no kernel clock.
func forms(screen string) map[string]bool {
	out := map[string]bool{}
	screen = regexp.MustCompile(`(?s)\nClock: .*?\.\n`).ReplaceAllString(screen, "\n")
	sentence := regexp.MustCompile(`(?m)^(SIMULATED|DEGRADED, SIMULATED): Holds[^:]*?\n.*$`)
	screen = sentence.ReplaceAllStringFunc(screen, func(s string) string { return strings.ReplaceAll(s, "\n", " ") })
	for line := range strings.Lines(screen) {
		if strings.ContainsAny(line, "│└┊") || regexp.MustCompile(`^ +\d+ +\d+ SLO`).MatchString(line) {
			continue
		}
		line, _, _ = strings.Cut(line, "runs/")
		line = regexp.MustCompile(`VALID|DEGRADED`).ReplaceAllString(strings.TrimPrefix(line, "DEGRADED, "), "V")
		line = regexp.MustCompile(`\b\d[\d.]*~?`).ReplaceAllString(line, "0")
		out[strings.Join(strings.Fields(line), " ")] = true
	}
	return out
}
