package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

// mayRound lists the code that rounds numbers itself, with the reason why people do not compare its numbers with others.
var mayRound = map[string]string{
	"report/python.go":               "vLLM's files and numbers",
	"report/text.go":                 "vLLM's report has two decimals",
	"report/server.go":               "integers",
	"report/comparison.go":           "p-values",
	"report/page/gather.go":          "shorter data of curves",
	"report/page/assets/numbers.js":  "the rule",
	"report/page/assets/draw.js":     "gaps in the timeline are accurate to 17 %",
	"report/page/assets/dist.js":     "marks on an axis",
	"report/page/assets/sweep.js":    "widths",
	"report/page/assets/time.js":     "data to copy",
	"report/page/assets/timeline.js": "data to copy",
	"internal/live/view/figures.go":  "the length of an axis",
	"internal/search/next.go":        "loads to try",
	"internal/search/slo.go":         "the user's limit",
	"internal/search/sweep.go":       "loads to try",
}

// TestOneRuleForNumbers checks that results are formatted by metric.Brief and numbers.js alone, so that a number has the
// same digits on every screen. A test of report/page compares these two (make test-oracles).
func TestOneRuleForNumbers(t *testing.T) {
	rounds := regexp.MustCompile(`%\+?\.\d+[feg]|FormatFloat\([^)]*'[feg]', ?\d|toFixed\(|toPrecision\(|toExponential\(`)
	used := map[string]bool{}
	for _, dir := range []string{"bench", "metric", "report", "internal/bench", "internal/cluster", "internal/compare", "internal/live", "internal/run", "internal/search", "internal/ui"} {
		must.Do(t, filepath.WalkDir(filepath.Join(root, dir), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() || strings.HasSuffix(path, "_test.go") || filepath.Ext(path) != ".go" && filepath.Ext(path) != ".js" {
				return err
			}
			text, err := os.ReadFile(path)
			name := filepath.ToSlash(strings.TrimPrefix(path, root+string(filepath.Separator)))
			if found := rounds.Find(text); found != nil {
				used[name] = true
				if mayRound[name] == "" {
					t.Errorf("%s rounds a number itself (%s): use metric.Brief, Duration, Percent or Setting", name, found)
				}
			}
			return err
		}))
	}
	for name := range mayRound {
		if !used[name] {
			t.Errorf("%s rounds no number: remove its exception", name)
		}
	}
}
