package conclusion_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/ui"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/report/conclusion"
	"github.com/tacho-bench/tacho/store"
)

var update = flag.Bool("update", false, "rewrite testdata/conclusions.md")

// The terminal, the page, Markdown, JSON and the list of runs show the same conclusion
// of a run. The golden file shows the sentences side by side for review.
func TestAllPlacesSayTheSame(t *testing.T) {
	var table strings.Builder
	table.WriteString("| run | verdict | conclusion | headline numbers | breaks | evidence | untried |\n|---|---|---|---|---|---|---|\n")
	all := slices.Concat(measured(), others(t))
	listed := listOf(t, all)
	for i := range all {
		name, r := all[i].name, &all[i].run
		c := conclusion.Of(r)
		fmt.Fprintf(&table, "| %s | %s | %s | %s | %s | %s | %s |\n", name, c.Verdict, strings.Join(c.Text, "<br>"), numberWords(c.Headline.Numbers()), breakWords(c.Breaks), evidenceWords(c.Evidence), c.Untried)
		t.Run(name, func(t *testing.T) {
			for place, got := range map[string][]string{
				"the terminal": onTerminal(t, r, len(c.Text)), "closing": report.Closing(r)[:len(c.Text)], "Markdown": inMarkdown(t, r), "the comparison": inComparison(t, r, "markdown"),
				"the comparison in text": inComparison(t, r, "text"),
				"the list":               listed[i],
			} {
				if strings.Join(got, " ") != strings.Join(c.Text, " ") {
					t.Errorf("%s says %q, want %q", place, got, c.Text)
				}
			}
			want := asJSON(t, c)
			for place, got := range map[string]string{"the page": onPage(t, r), "JSON": inJSON(t, r)} {
				if diff := gocmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -want +got\n%s", place, diff)
				}
			}
		})
	}
	path := filepath.Join("testdata", "conclusions.md")
	if *update {
		must.Do(t, os.WriteFile(path, []byte(table.String()), 0o600))
	}
	want := must.Get(os.ReadFile(path))(t)
	if diff := gocmp.Diff(string(want), table.String()); diff != "" {
		t.Errorf("-%s +got (run with -update to accept)\n%s", path, diff)
	}
}

func numberWords(numbers []conclusion.Number) string {
	var out []string
	for _, n := range numbers {
		out = append(out, strings.TrimSpace(n.Label+" "+n.Value+" "+n.Unit))
	}
	return strings.Join(out, ", ")
}

func breakWords(b *conclusion.Break) string {
	if b == nil {
		return ""
	}
	text := fmt.Sprintf("%s %s %s %s", b.Metric, b.Statistic, metric.Brief(b.Value), b.Unit)
	if b.Limit > 0 {
		text += ", limit " + metric.Brief(b.Limit)
	}
	return text
}

func evidenceWords(e *conclusion.Evidence) string {
	if e == nil {
		return ""
	}
	return fmt.Sprintf("%d requests, %d effective", e.Requests, e.Effective)
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	return string(must.Get(json.Marshal(v))(t))
}

func render(t *testing.T, format string, r *outcome.Run) string {
	t.Helper()
	f := must.Get(report.FormatNamed(format))(t)
	var b bytes.Buffer
	must.Do(t, f.Render(&b, &report.Report{Runs: []outcome.Run{*r}}))
	return b.String()
}

// onTerminal returns the conclusion on the screen, below the curves.
func onTerminal(t *testing.T, r *outcome.Run, n int) []string {
	t.Helper()
	lines := strings.Split(render(t, report.Curve, r), "\n")
	at := slices.Index(lines, conclusion.Of(r).Text[0])
	if at < 0 || at+n > len(lines) {
		return lines
	}
	return lines[at : at+n]
}

func inMarkdown(t *testing.T, r *outcome.Run) []string {
	t.Helper()
	line, _, _ := strings.Cut(render(t, "markdown", r), "\n")
	return []string{unescape.Replace(line)}
}

var unescape = strings.NewReplacer(`\|`, "|", "&lt;", "<", "&amp;", "&")

// inComparison returns the conclusion of the second side of a comparison, in Markdown or
// on a terminal of 80 columns.
func inComparison(t *testing.T, r *outcome.Run, format string) (out []string) {
	t.Helper()
	f := must.Get(report.ComparisonFormatNamed(format))(t)
	var b strings.Builder
	c := &compare.Comparison{Sides: []compare.Side{{Name: "before"}, {Name: "after", Runs: []outcome.Run{*r}}}}
	must.Do(t, f.Render(&b, c))
	answer := conclusion.OfComparison(c, 1)
	if !strings.Contains(b.String(), answer) {
		t.Errorf("the comparison does not say %q", answer)
	}
	for line := range strings.Lines(b.String()) {
		line = strings.TrimSuffix(line, "\n")
		if n := utf8.RuneCountInString(line); format == "text" && n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
		text := strings.TrimPrefix(strings.TrimPrefix(line, "  "), "- ")
		if text != line && text != answer && !strings.HasPrefix(line, "- **") {
			out = append(out, unescape.Replace(text))
		}
	}
	return out
}

// A concluded is the part of a report in JSON with the conclusion.
type concluded struct {
	Runs []struct {
		Conclusion json.RawMessage `json:"conclusion"`
	} `json:"runs"`
}

func (c *concluded) read(t *testing.T, text string) string {
	t.Helper()
	must.Do(t, json.Unmarshal([]byte(text), c))
	if len(c.Runs) != 1 {
		t.Fatalf("%d runs", len(c.Runs))
	}
	var b bytes.Buffer
	if len(c.Runs[0].Conclusion) > 0 {
		must.Do(t, json.Compact(&b, c.Runs[0].Conclusion))
	}
	return b.String()
}

func inJSON(t *testing.T, r *outcome.Run) string {
	t.Helper()
	return new(concluded).read(t, render(t, "json", r))
}

func onPage(t *testing.T, r *outcome.Run) string {
	t.Helper()
	_, rest, _ := strings.Cut(render(t, "html", r), `<script type="application/json" id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	return new(concluded).read(t, text)
}

// listOf returns the conclusions in the list of runs.
func listOf(t *testing.T, all []namedRun) (out [][]string) {
	t.Helper()
	for _, item := range itemsOf(t, all) {
		out = append(out, item.Answer)
	}
	return out
}

// itemsOf returns the runs in the list, which reads the summary that each run wrote at its end.
func itemsOf(t *testing.T, all []namedRun) (out []ui.Item) {
	t.Helper()
	folder := t.TempDir()
	for i := range all {
		w := must.Get(store.Create(folder, store.Manifest{Started: time.Unix(int64(i), 0), Label: fmt.Sprint(i)}, func(doc []byte) []byte { return doc }))(t)
		must.Do(t, w.Summary((&report.Report{Runs: []outcome.Run{all[i].run}}).Document()))
		must.Do(t, w.Close())
		must.Do(t, os.Rename(w.Dir(), filepath.Join(folder, fmt.Sprint(i))))
	}
	server := must.Get(ui.New(ui.Options{Dir: folder, Host: ui.Loopback, Token: "token"}))(t)
	answer, request := httptest.NewRecorder(), httptest.NewRequest("GET", "http://127.0.0.1/api/runs", nil)
	request.Header.Set("Authorization", "Bearer token")
	server.ServeHTTP(answer, request)
	var items []ui.Item
	must.Do(t, json.Unmarshal(answer.Body.Bytes(), &items))
	for i := range all {
		at := slices.IndexFunc(items, func(it ui.Item) bool { return it.Place == fmt.Sprint(i) })
		if at < 0 || items[at].Problem != "" {
			t.Fatalf("the list does not have run %d", i)
		}
		out = append(out, items[at])
	}
	return out
}
