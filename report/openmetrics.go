package report

import (
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/exposition"
	"github.com/tacho-bench/tacho/metric"
)

var openMetricsFormat = Format{
	Name: "openmetrics", Ext: "prom", Doc: "the figures of every level as OpenMetrics, for Prometheus and compatible systems",
	Render: renderOpenMetrics,
}

// renderOpenMetrics writes a gauge for each number of a level and a summary for each of
// its metrics. Values that were not measured are omitted.
func renderOpenMetrics(w io.Writer, r *Report) error {
	var places []levelRow
	var labels [][]exposition.Label
	for run, level := range r.levels() {
		here := levelRow{run, level}
		places = append(places, here)
		labels = append(labels, levelLabels(here, len(labels)))
	}
	families := []exposition.Family{verdictFamily(places, labels)}
	for _, s := range slices.Concat(levelColumns(), moreColumns(), figureColumns()) {
		if s.Kind != textKind {
			families = append(families, gaugeFamily(s, places, labels))
		}
	}
	for _, m := range metric.All {
		families = append(families, summaryFamily(m, places, labels))
	}
	some := families[:0]
	for _, f := range families {
		if len(f.Points) > 0 {
			some = append(some, f)
		}
	}
	return exposition.WriteOpenMetrics(w, some)
}

// levelLabels identify the level of a point. Levels with the same settings differ in
// their number.
func levelLabels(p levelRow, n int) (out []exposition.Label) {
	for _, s := range identity(func(p levelRow) levelRow { return p }) {
		switch c := s.of(p); {
		case s.Kind == textKind && c.Text != "":
			out = append(out, exposition.Label{Name: s.Name, Value: safe(c.Text)})
		case s.Kind != textKind && c.Number > 0: // 0 means not set
			out = append(out, exposition.Label{Name: s.Name, Value: strconv.FormatFloat(c.Number, 'f', -1, 64)})
		}
	}
	return append(out, exposition.Label{Name: "number", Value: strconv.Itoa(n + 1)})
}

// verdictFamily exports the verdicts, which also mark predicted levels.
func verdictFamily(places []levelRow, labels [][]exposition.Label) exposition.Family {
	f := exposition.Family{Name: "tacho_level_verdict", Kind: exposition.Gauge, Help: "1 for the verdict that the level got, with its reasons"}
	for i, p := range places {
		verdict := &p.level.Summary.Verdict
		all := append(labels[i][:len(labels[i]):len(labels[i])], exposition.Label{Name: "verdict", Value: string(verdict.Severity)}, exposition.Label{Name: "reasons", Value: reasonCodes(verdict)})
		f.Points = append(f.Points, exposition.Point{Labels: all, Value: 1})
	}
	return f
}

func gaugeFamily(s source[levelRow], places []levelRow, labels [][]exposition.Label) exposition.Family {
	name, seconds := strings.CutSuffix(s.Name, "_s")
	f := exposition.Family{Name: "tacho_level_" + name, Kind: exposition.Gauge, Help: "of a level, as in the CSV: " + s.Name}
	if seconds {
		f.Name, f.Unit = f.Name+"_seconds", "seconds"
	}
	for i, p := range places {
		if c := s.of(p); c.Known {
			f.Points = append(f.Points, exposition.Point{Labels: labels[i], Value: c.Number})
		}
	}
	return f
}

func summaryFamily(m *metric.Metric, places []levelRow, labels [][]exposition.Label) exposition.Family {
	f := exposition.Family{Name: "tacho_level_" + m.Name, Kind: exposition.Summary, Help: m.Title + ": " + m.Doc}
	scale := 1.0
	if m.Unit == metric.Millis {
		f.Name, f.Unit, scale = f.Name+"_seconds", "seconds", 1e-3
	}
	for i, p := range places {
		d := p.level.Summary.Dist(m)
		if d.Stats == nil {
			continue
		}
		point := exposition.Point{Labels: labels[i], Count: uint64(d.N), Sum: d.Stats.Mean * float64(d.N) * scale}
		point.Quantiles = append(point.Quantiles, exposition.Quantile{Quantile: 0.5, Value: d.Stats.Median * scale})
		for _, v := range d.Stats.Percentiles {
			if v.P != 50 {
				point.Quantiles = append(point.Quantiles, exposition.Quantile{Quantile: v.P / 100, Value: v.Value * scale})
			}
		}
		f.Points = append(f.Points, point)
	}
	return f
}
