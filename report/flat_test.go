package report_test

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

func flat(t *testing.T, name string) (document map[string]any) {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(render(t, "flat", reports[name])), &document))
	return document
}

// The fields of a single level are also at the top. Several levels have no fields there.
func TestFlatLevelAtTheTop(t *testing.T) {
	one := flat(t, "one")
	level := one["levels"].([]any)[0].(map[string]any)
	for key, value := range level {
		if got, want := encoded(t, one[key]), encoded(t, value); got != want {
			t.Errorf("%s is %s at the top, and %s in the level", key, got, want)
		}
	}
	summary := &reports["one"].Runs[0].Levels[0].Summary
	for _, m := range []*metric.Metric{metric.TTFT, metric.TPOT, metric.ITL, metric.E2EL} {
		stats := summary.Dist(m).Stats
		want := map[string]any{"mean": stats.Mean, "p50": stats.Median, "p90": stats.Percentile(90), "p95": stats.Percentile(95), "p99": stats.Percentile(99)}
		if got := one[m.Name]; encoded(t, got) != encoded(t, want) {
			t.Errorf("%s is %v, want %v", m.Name, got, want)
		}
	}
	if one["verdict"] != string(summary.Verdict.Severity) {
		t.Errorf("verdict %v, want %s", one["verdict"], summary.Verdict.Severity)
	}
	many := flat(t, "many")
	if keys := slices.Sorted(maps.Keys(many)); !slices.Equal(keys, []string{"levels", "schema"}) || len(many["levels"].([]any)) != 4 {
		t.Errorf("several levels: %v", keys)
	}
}

// A result of another tool may have no mean.
func TestFlatUnknownIsNull(t *testing.T) {
	level := healthyStage()
	level.Summary.Dist(metric.TTFT).Stats.Mean = math.NaN()
	if got := render(t, "flat", of(level)); !strings.Contains(got, `"mean": null`) {
		t.Errorf("no null in\n%s", got)
	}
}

// The jq commands of the cookbook name fields of the document.
func TestFlatCookbook(t *testing.T) {
	text := must.Get(os.ReadFile("../docs/cookbook.md"))(t)
	fields := map[string]bool{}
	collect(flat(t, "one"), fields)
	commands := regexp.MustCompile(`(?m)^\$ jq (.*) flat\.json$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) != 2 {
		t.Errorf("%d jq commands, want 2", len(commands))
	}
	for _, c := range commands {
		for _, name := range regexp.MustCompile(`\.([a-z]\w*)`).FindAllStringSubmatch(c[1], -1) {
			if !fields[name[1]] {
				t.Errorf("jq %s: no field %s", c[1], name[1])
			}
		}
	}
}

// collect adds the names of all fields of a document.
func collect(v any, fields map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			fields[key] = true
			collect(value, fields)
		}
	case []any:
		for _, value := range v {
			collect(value, fields)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	return string(must.Get(json.Marshal(v))(t))
}
