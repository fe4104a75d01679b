package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/tacho-bench/tacho/metric"
)

// A Translation is a report in the definitions of another tool.
type Translation struct {
	Report
	Dialect *metric.Dialect
}

// TranslationFormats are the formats of a Translation.
var TranslationFormats = []FormatOf[Translation]{
	{Name: "text", Doc: "a table for each level", Render: translationText},
	{Name: "json", Doc: "the same, for programs", Render: translationJSON},
}

// TranslationFormatNamed returns the format with the given name.
func TranslationFormatNamed(name string) (FormatOf[Translation], error) {
	return named(TranslationFormats, "format of a dialect", name)
}

// A translated is a level in the definitions of a dialect.
type translated struct {
	Run    string `json:"run"`
	Level  string `json:"level"`
	Tool   string `json:"dialect"`
	Owner  string `json:"definitions"`
	Failed int    `json:"failed"`
	Word   string `json:"verdict"`
	*metric.DialectSummary
}

// translated computes all levels again from their requests.
func (t *Translation) translated() ([]translated, error) {
	var out []translated
	for run, level := range t.levels() {
		if level.Records == nil {
			return nil, fmt.Errorf("%s has no record of each request, which a dialect needs: use a run directory or a detailed result", run.Name)
		}
		spoken, err := t.Dialect.Summarize(level.Records(), dialectPercentiles)
		if err != nil {
			return nil, err
		}
		out = append(out, translated{run.Name, strings.TrimLeft(level.Name, "-"), t.Dialect.Name, t.Dialect.Owner, level.Summary.Failed, string(level.Summary.Verdict.Severity), spoken})
	}
	return out, nil
}

// dialectPercentiles are the percentiles that every tool reports.
var dialectPercentiles = []float64{50, 90, 99}

func translationJSON(w io.Writer, t *Translation) error {
	levels, err := t.translated()
	if err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(levels)
}

func translationText(w io.Writer, t *Translation) error {
	levels, err := t.translated()
	if err != nil {
		return err
	}
	out := &strings.Builder{}
	fmt.Fprintf(out, "By the definitions of %s (tacho metrics lists them)\n", t.Dialect.Owner)
	for _, l := range levels {
		fmt.Fprintf(out, "\n%s\n", safe(cmp.Or(strings.TrimSpace(l.Run+" "+l.Level), "one level")))
		fmt.Fprintf(out, "%-39s %9s %9s %9s %9s\n", "", "mean", "p50", "p90", "p99")
		for _, d := range l.Dists {
			fmt.Fprintf(out, "%-39s", d.Name+" ("+string(d.Unit)+")")
			if d.Stats == nil {
				fmt.Fprintf(out, " %9s\n", notMeasured)
				continue
			}
			for _, v := range []float64{d.Stats.Mean, d.Stats.Median, d.Stats.Percentile(90), d.Stats.Percentile(99)} {
				fmt.Fprintf(out, " %9s", metric.Brief(v))
			}
			fmt.Fprintln(out)
		}
		for i, v := range l.Totals {
			fmt.Fprintf(out, "%-39s %9s\n", strings.TrimSuffix(l.Names[i]+" ("+string(t.Dialect.Totals[i].Unit)+")", " ()"), metric.Brief(v))
		}
		fmt.Fprintf(out, "%-39s %9d\n", "failed", l.Failed)
		if l.Word == string(metric.Predicted) {
			fmt.Fprintf(out, "%s: not measured\n", metric.Predicted)
		}
	}
	return written(w, out)
}
