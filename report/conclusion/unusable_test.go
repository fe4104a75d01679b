package conclusion_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// A figure that the verdict makes unusable is marked or left out in every place, and no other figure is.
func TestUnusableFiguresAreMarked(t *testing.T) {
	for _, figure := range []string{"", "ttft", "tpot", "itl", "e2el"} {
		t.Run(figure, func(t *testing.T) {
			of := run(load{flags: "--max-concurrency 4", users: 4, n: 400, ttft: 20 * ms}, load{flags: "--max-concurrency 8", users: 8, n: 400, ttft: 30 * ms})
			for i := range of.Levels {
				v := metric.Verdict{Severity: metric.Valid}
				if figure != "" {
					v = metric.Verdict{Severity: metric.Degraded, Reasons: []metric.Reason{{Code: "late-reads", Severity: metric.Degraded, Text: figure + " is not usable", Figures: []string{figure}, Unusable: true}}}
				}
				of.Levels[i].Summary.Verdict = v
			}

			for place, separator := range map[string]*regexp.Regexp{"levels": regexp.MustCompile(`  +`), report.Curve: regexp.MustCompile(`  +`), "markdown": regexp.MustCompile(` ?\| ?`)} {
				var names []string
				marked := 0
				for line := range strings.Lines(render(t, place, &of)) {
					cells := separator.Split(strings.Trim(line, " \n"), -1)
					switch {
					case slices.Contains(cells, "verdict"):
						names = cells
					case len(cells) == len(names) && slices.Contains(cells, string(of.Levels[0].Summary.Verdict.Severity)):
						for i, name := range names {
							void := figure != "" && strings.Contains(name, strings.ToUpper(figure))
							if strings.HasSuffix(cells[i], "!") != void {
								t.Errorf("%s: %s is %q", place, name, cells[i])
							}
							if void {
								marked++
							}
						}
					}
				}
				if names == nil || (marked > 0) != (figure != "" && figure != "itl") { // tables have no ITL
					t.Errorf("%s: %d figures are marked, columns %q", place, marked, names)
				}
			}

			for place, text := range map[string]string{"JSON": render(t, "json", &of), "the page": pageData(t, &of)} {
				text = strings.Join(strings.Fields(text), "")
				if strings.Contains(text, `"figures":["`+figure+`"]`) != (figure != "") || strings.Contains(text, `"unusable":true`) != (figure != "") {
					t.Errorf("%s: want the reason with %q in %s", place, figure, text)
				}
			}

			best := itemsOf(t, []namedRun{{name: "one", run: of}})[0].Best
			if best == nil || (best.TTFTP99 == nil) != (figure == "ttft") || (best.TPOTP99 == nil) != (figure == "tpot") {
				t.Errorf("the list: %+v", best)
			}
			concluded := conclusion.Of(&of)
			for _, n := range concluded.Headline.Numbers() {
				if figure != "" && strings.HasPrefix(n.Label, strings.ToUpper(figure)) {
					t.Errorf("the headline: %+v", n)
				}
			}

			var state live.State
			state.End(&of.Levels[0])
			past := state.Snapshot().Past[0]
			for name, v := range map[string]*float64{"ttft": past.TTFTP99, "tpot": past.TPOTP99, "itl": past.ITLP99, "e2el": past.E2ELP99} {
				if (v == nil) != (name == figure) {
					t.Errorf("the live view: %s is %v", name, v)
				}
			}

			c := must.Get(compare.Compare([]compare.Side{{Name: "a", Runs: []outcome.Run{of}}, {Name: "b", Runs: []outcome.Run{of}}}, compare.Options{}))(t)
			for _, l := range c.Levels {
				for _, row := range l.Rows {
					if d := row.Deltas[1]; d != nil && (d.Verdict == compare.Void) != (figure != "" && strings.HasPrefix(row.Name, figure+".")) {
						t.Errorf("the comparison: %s is %q", row.Name, d.Verdict)
					}
				}
			}
		})
	}
}

func pageData(t *testing.T, r *outcome.Run) string {
	t.Helper()
	_, rest, _ := strings.Cut(render(t, "html", r), `<script type="application/json" id="data">`)
	text, _, _ := strings.Cut(rest, "</script>")
	return text
}

// A note names a level like the conclusion does, never by its number.
func TestNotesNameLevels(t *testing.T) {
	numbered := regexp.MustCompile(`(?i)\blevel [0-9]`)
	of := run(load{flags: "--max-concurrency 4", users: 4, n: 400, ttft: 20 * ms}, load{flags: "--max-concurrency 8", users: 8, n: 400, ttft: 30 * ms})
	var all []metric.Reason
	for _, rule := range metric.Rules {
		all = append(all, metric.Reason{Code: rule.Code, Severity: metric.Degraded, Text: rule.Code + " is wrong"})
	}
	for n := range len(all) + 1 { // each reason is among the first, which a screen shows
		r := of
		r.Levels = slices.Clone(of.Levels)
		r.Levels[1].Summary.Verdict = metric.Verdict{Severity: metric.Degraded, Reasons: append(slices.Clone(all[n:]), all[:n]...)[:2]}
		r.Levels[1].Summary.Config.Known = []metric.Reason{{Code: "records", Severity: metric.Degraded, Text: "10 records are missing"}}
		doubts := report.Doubts("", r.Levels)
		for _, text := range doubts {
			if !strings.HasPrefix(text, "DEGRADED at concurrency 8: ") {
				t.Errorf("the screen says %q", text)
			}
		}
		if len(doubts) != 2 {
			t.Errorf("the screen has %q", doubts)
		}
		c := must.Get(compare.Compare([]compare.Side{{Name: "a", Runs: []outcome.Run{of}}, {Name: "b", Runs: []outcome.Run{r}}}, compare.Options{}))(t)
		if !slices.ContainsFunc(c.Warnings, func(text string) bool { return strings.HasPrefix(text, "b, max-concurrency 8 is DEGRADED: ") }) {
			t.Errorf("the comparison warns %q", c.Warnings)
		}
		for place, text := range map[string]string{
			"the screen": render(t, report.Curve, &r), "levels": render(t, "levels", &r), "Markdown": render(t, "markdown", &r), "the comparison": strings.Join(c.Warnings, "\n"), "the conclusion": strings.Join(conclusion.Of(&r).Text, "\n"),
		} {
			if found := numbered.FindString(text); found != "" {
				t.Errorf("%s says %q in\n%s", place, found, text)
			}
		}
	}
}

// No report has a table without rows, a section without lines, or one in which nothing was measured.
func TestNoEmptyTables(t *testing.T) {
	heading, measuredValue := regexp.MustCompile(`^[-=]{2,}.*[A-Za-z].*[-=]{2,}$`), regexp.MustCompile(`[0-9A-Za-z]`)
	for _, one := range slices.Concat(measured(), others(t)) {
		for _, format := range []string{"text", "levels", report.Curve, "markdown"} {
			var title string
			lines, known := 0, 0
			end := func() {
				if title != "" && (lines == 0 || known == 0) {
					t.Errorf("%s, %s: %q has %d lines, %d with a value", one.name, format, title, lines, known)
				}
				title, lines, known = "", 0, 0
			}
			for line := range strings.Lines(render(t, format, &one.run)) {
				line = strings.TrimSpace(line)
				header := heading.MatchString(line) || strings.HasPrefix(line, "|") && title == ""
				switch {
				case header:
					end()
					title = line
				case strings.HasPrefix(line, "|--"), strings.HasPrefix(line, "| --"), strings.HasPrefix(line, "==="), line == "" && format == "text":
				case title == "":
				case strings.HasPrefix(title, "|") && !strings.HasPrefix(line, "|"):
					end()
				default:
					lines++
					value := line
					if _, after, label := strings.Cut(line, ":  "); label {
						value = after
					}
					if measuredValue.MatchString(strings.ReplaceAll(value, "n/a", "")) {
						known++
					}
				}
			}
			end()
		}
	}
}
