package exposition

import (
	"encoding/json"
	"strconv"
	"time"
)

// OTLP is the body of an export of metrics over OTLP/HTTP, as JSON. Counts run
// from began. Summaries have no form that collectors like, and are left out.
func OTLP(resource []Label, families []Family, began, now time.Time) ([]byte, error) {
	var metrics []any
	for i := range families {
		f := &families[i]
		m := map[string]any{"name": f.Name, "description": f.Help, "unit": otlpUnit(f.Unit)}
		points := otlpPoints(f, began, now)
		switch f.Kind {
		case Gauge:
			m["gauge"] = map[string]any{"dataPoints": points}
		case Counter:
			m["sum"] = map[string]any{"dataPoints": points, "aggregationTemporality": cumulative, "isMonotonic": true}
		case Histogram:
			m["histogram"] = map[string]any{"dataPoints": points, "aggregationTemporality": cumulative}
		case Summary:
			continue
		}
		metrics = append(metrics, m)
	}
	return json.Marshal(map[string]any{"resourceMetrics": []any{map[string]any{
		"resource":     map[string]any{"attributes": attributes(resource)},
		"scopeMetrics": []any{map[string]any{"scope": map[string]any{"name": "tacho"}, "metrics": metrics}},
	}}})
}

// cumulative is AGGREGATION_TEMPORALITY_CUMULATIVE: enums are numbers in OTLP's
// JSON.
const cumulative = 2

// otlpUnit is the unit as UCUM writes it.
func otlpUnit(unit string) string {
	if unit == "seconds" {
		return "s"
	}
	return "1"
}

func otlpPoints(f *Family, began, now time.Time) []any {
	var out []any
	for i := range f.Points {
		p := &f.Points[i]
		point := map[string]any{
			"attributes": attributes(p.Labels), "timeUnixNano": strconv.FormatInt(now.UnixNano(), 10),
			"startTimeUnixNano": strconv.FormatInt(began.UnixNano(), 10),
		}
		if f.Kind == Histogram {
			counts := make([]string, len(p.Counts))
			for k, n := range p.Counts {
				counts[k] = strconv.FormatUint(n, 10)
			}
			point["count"], point["sum"] = strconv.FormatUint(p.Count, 10), p.Sum
			point["bucketCounts"], point["explicitBounds"] = counts, p.Bounds
		} else {
			point["asDouble"] = p.Value
		}
		out = append(out, point)
	}
	return out
}

func attributes(labels []Label) []any {
	out := []any{}
	for _, l := range labels {
		out = append(out, map[string]any{"key": l.Name, "value": map[string]any{"stringValue": l.Value}})
	}
	return out
}
