package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestMovingRows runs both sides of every row of flags in moving.md with
// --dry-run and compares the plans. A row without a translation must be an error
// that names tacho's way.
func TestMovingRows(t *testing.T) {
	page, dir := readPage(t, "moving.md"), t.TempDir()
	if err := furnish(dir); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	row := regexp.MustCompile("^\\| `(-.*?)` \\| `(.*?)` \\|$")
	same, refused, translated := 0, 0, false
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "| ") && strings.HasSuffix(strings.TrimSpace(line), "|") && !strings.Contains(line, "`") {
			translated = strings.HasSuffix(strings.TrimSpace(line), "| tacho |")
		}
		m := row.FindStringSubmatch(strings.TrimSpace(line))
		if m == nil {
			continue
		}
		if !translated {
			refused++
			code, _, stderr := dryRun(t, m[1])
			if code != 2 || !strings.Contains(stderr, m[2]) {
				t.Errorf("%s: exit code %d, want 2 and %q in %s", m[1], code, m[2], stderr)
			}
			continue
		}
		same++
		code, theirs, stderr := dryRun(t, m[1])
		other, ours, wrong := dryRun(t, m[2])
		if code != 0 || other != 0 || theirs != ours {
			t.Errorf("%s\n%d %s%s%s\n%d %s%s", m[1], code, theirs, stderr, m[2], other, ours, wrong)
		}
	}
	if same < 53 || refused < 11 {
		t.Errorf("%d rows with a translation, %d without: has the notation changed?", same, refused)
	}
}

// dryRun prints the plan of a command line without its server.
func dryRun(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	args := []string{"bench", "--dry-run"}
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		args = append(args, strings.Trim(word, "'"))
	}
	return program(nil, args...)
}

// TestMovingNamesTheirFlags checks that the flags in the columns of other tools
// exist in these tools.
func TestMovingNamesTheirFlags(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/foreign.txt")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(string(text)) {
		tool, flags, ok := strings.Cut(line, "): ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		tool, _, _ = strings.Cut(tool, " (")
		_, section, _ := strings.Cut(readPage(t, "moving.md"), "\n## "+tool)
		section, _, _ = strings.Cut(section, "\n## ")
		for _, row := range regexp.MustCompile("(?m)^\\| `(-.*?)` \\|").FindAllStringSubmatch(section, -1) {
			for _, flag := range regexp.MustCompile(`(?:^| )(--?[a-z][a-z0-9-]*)`).FindAllStringSubmatch(row[1], -1) {
				found++
				if !slices.Contains(strings.Fields(flags), flag[1]) {
					t.Errorf("%s has no %s: %s", tool, flag[1], row[1])
				}
			}
		}
	}
	if found < 90 {
		t.Errorf("found %d flags: has the notation changed?", found)
	}
}
