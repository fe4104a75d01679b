package cli_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// A movingRow is a row of flags in moving.md or testdata/moving.txt.
type movingRow struct {
	tool         string // as the table's heading names it
	theirs, ours string
	translated   bool // the other column is tacho's way if not
}

func movingRows(t *testing.T) (rows []movingRow) {
	t.Helper()
	heading := regexp.MustCompile("^\\| ([A-Za-z][^|`]*?) \\| tacho \\|$")
	row := regexp.MustCompile("^\\| `(-.*?)` \\| `(.*?)` \\|$")
	b := must.Get(os.ReadFile("testdata/moving.txt"))(t)
	for line := range strings.Lines(string(b)) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 3 {
			tool, refused := strings.CutSuffix(cells[0], ", not translated")
			rows = append(rows, movingRow{tool, cells[1], cells[2], !refused})
		}
	}
	tool := ""
	for line := range strings.Lines(readPage(t, "moving.md")) {
		if m := heading.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			tool = m[1]
		}
		if m := row.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			rows = append(rows, movingRow{tool, m[1], m[2], true})
		}
	}
	return rows
}

// TestMovingRows runs both sides of every row of flags with
// --dry-run and compares the plans. A row without a translation must be an error
// that names tacho's way.
func TestMovingRows(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, furnish(dir))
	rows := movingRows(t)
	t.Chdir(dir)
	same, refused := 0, 0
	for _, r := range rows {
		code, theirs, stderr := dryRun(t, r.theirs)
		if !r.translated {
			refused++
			if code != 2 || !strings.Contains(stderr, r.ours) {
				t.Errorf("%s: exit code %d, want 2 and %q in %s", r.theirs, code, r.ours, stderr)
			}
			continue
		}
		same++
		other, ours, wrong := dryRun(t, r.ours)
		if code != 0 || other != 0 || theirs != ours {
			t.Errorf("%s\n%d %s%s%s\n%d %s%s", r.theirs, code, theirs, stderr, r.ours, other, ours, wrong)
		}
	}
	if same < 75 || refused < 28 {
		t.Errorf("%d rows with a translation, %d without: has the notation changed?", same, refused)
	}
}

// dryRun prints the plan of a command line without its server.
func dryRun(t *testing.T, line string) (code int, stdout, stderr string) {
	t.Helper()
	return program(nil, append([]string{"bench", "--dry-run"}, shellWords(line)...)...)
}

// shellWords splits a command line at spaces outside single quotes.
func shellWords(line string) (words []string) {
	for _, word := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(line, -1) {
		words = append(words, strings.Trim(word, "'"))
	}
	return words
}

// TestMovingNamesTheirFlags checks that the flags in the columns of other tools
// exist in these tools. make test-moving compares the list with their parsers.
func TestMovingNamesTheirFlags(t *testing.T) {
	t.Parallel()
	text := must.Get(os.ReadFile(foreignList))(t)
	found := 0
	for _, r := range movingRows(t) {
		_, flags, ok := strings.Cut(string(text), "\n"+r.tool+": ")
		flags, _, _ = strings.Cut(flags, "\n")
		if !ok {
			t.Errorf("no list of the flags of %s", r.tool)
		}
		for _, flag := range regexp.MustCompile(`(?:^| )(--?[a-z][a-z0-9._-]*)`).FindAllStringSubmatch(r.theirs, -1) {
			found++
			if !slices.Contains(strings.Fields(flags), flag[1]) {
				t.Errorf("%s has no %s: %s", r.tool, flag[1], r.theirs)
			}
		}
	}
	if found < 150 {
		t.Errorf("found %d flags: has the notation changed?", found)
	}
}

const foreignList = "testdata/foreign.txt"
