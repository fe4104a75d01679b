package report_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/report"
)

// predicted returns a report of a predicted level.
func predicted() *report.Report {
	level := healthyStage()
	c := level.Summary.Config
	c.Predicted = true
	list := records(400)
	for _, r := range list {
		r.Clock = tacho.VirtualClock
	}
	level.Summary = summarize(c, list)
	out := withRecords(level)
	for k := range 2 { // twice, to cover the table of repeats
		again := out.Runs[0].Levels[0]
		again.Index, again.Repeat = k, k+1
		out.Runs[0].Levels = append(out.Runs[0].Levels[:k:k], again)
	}
	return out
}

// saysPredicted reports whether a rendered report is marked PREDICTED.
func saysPredicted(t *testing.T, format, text string) bool {
	t.Helper()
	if format == "parquet" {
		rows := parquetCells(t, text)
		text = ""
		for _, row := range rows[:min(len(rows), 1)] { // all rows are of one run
			for _, v := range row {
				text += v + "\n"
			}
		}
	}
	return strings.Contains(strings.ToUpper(text), "PREDICTED")
}

// Every format marks a prediction, with every kind of row, and only predictions.
func TestPredictedEverywhere(t *testing.T) {
	for _, f := range report.Formats {
		for _, kind := range report.RowKinds {
			var got, measured bytes.Buffer
			r := predicted()
			r.Rows = kind.Name
			if err := f.Render(&got, r); err != nil {
				t.Fatal(f.Name, kind.Name, err)
			}
			if !saysPredicted(t, f.Name, got.String()) {
				t.Errorf("%s by %s does not say that it is predicted:\n%.600s", f.Name, kind.Name, got.String())
			}
			other := withRecords(healthyStage())
			other.Rows = kind.Name
			must.Do(t, f.Render(&measured, other))
			if f.Name != "html" && f.Name != "openmetrics" && saysPredicted(t, f.Name, measured.String()) {
				t.Errorf("%s by %s calls predicted what was measured", f.Name, kind.Name)
			}
		}
	}
	for _, f := range report.TranslationFormats {
		var got bytes.Buffer
		must.Do(t, f.Render(&got, &report.Translation{Report: *predicted(), Dialect: &metric.Dialects[1]}))
		if !saysPredicted(t, f.Name, got.String()) {
			t.Errorf("a dialect as %s does not say that it is predicted:\n%s", f.Name, got.String())
		}
	}
}

// A comparison marks the predicted side in every format.
func TestPredictedInComparisons(t *testing.T) {
	measured := withRecords(healthyStage()).Runs
	var quantities []metric.Quantity
	for _, name := range compare.Quantities {
		q := must.Get(metric.ParseQuantity(name))(t)
		quantities = append(quantities, q)
	}
	c := must.Get(compare.Compare([]compare.Side{{Name: "mine", Runs: measured}, {Name: "model", Runs: predicted().Runs}}, compare.Options{Quantities: quantities}))(t)
	for _, f := range report.ComparisonFormats {
		var got bytes.Buffer
		must.Do(t, f.Render(&got, c))
		text := got.String()
		if !strings.Contains(text, "model (PREDICTED)") && !strings.Contains(text, "model_(PREDICTED)") && !strings.Contains(text, "model-(PREDICTED)") {
			t.Errorf("%s does not say which side is predicted:\n%s", f.Name, text)
		}
		if strings.Contains(text, "mine (PREDICTED)") {
			t.Errorf("%s calls the other side predicted", f.Name)
		}
	}
}
