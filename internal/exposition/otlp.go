package exposition

import (
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	resource "go.opentelemetry.io/proto/otlp/resource/v1"
)

// An Attribute describes a resource or a point in OTLP. The type of its value is string or int.
type Attribute struct {
	Key   string
	Value any
}

// A Resource is the source of metrics in OTLP.
type Resource struct {
	Attributes []Attribute
	Scope      string // name of the program
	Version    string // of the program
}

// Options change how metrics are encoded in OTLP.
type Options struct {
	Began       time.Time // start of all counters
	Now         time.Time
	Exponential bool // prefer exponential histograms
}

// OTLP returns the request of a metrics export: MetricsData has the same fields as ExportMetricsServiceRequest, without
// the packages of gRPC. Summaries are omitted, because collectors handle them badly.
func OTLP(r *Resource, families []Family, o Options) *metrics.MetricsData {
	var list []*metrics.Metric
	for i := range families {
		f := &families[i]
		if f.Kind != Summary && len(f.Points) > 0 {
			list = append(list, f.otlp(&o))
		}
	}
	return &metrics.MetricsData{ResourceMetrics: []*metrics.ResourceMetrics{{
		Resource: &resource.Resource{Attributes: attributes(nil, r.Attributes)},
		ScopeMetrics: []*metrics.ScopeMetrics{{
			Scope:   &common.InstrumentationScope{Name: r.Scope, Version: r.Version},
			Metrics: list,
		}},
	}}}
}

// cumulative means that counters count from the start of the run.
const cumulative = metrics.AggregationTemporality_AGGREGATION_TEMPORALITY_CUMULATIVE

func (f *Family) otlp(o *Options) *metrics.Metric {
	m := &metrics.Metric{Name: f.Name, Description: f.Help, Unit: f.otlpUnit()}
	began, now := uint64(o.Began.UnixNano()), uint64(o.Now.UnixNano())
	var numbers []*metrics.NumberDataPoint
	var histograms []*metrics.HistogramDataPoint
	var exponentials []*metrics.ExponentialHistogramDataPoint
	for i := range f.Points {
		p := &f.Points[i]
		list := attributes(p.Labels, p.Attributes)
		switch e := p.Exponential; {
		case f.Kind != Histogram:
			numbers = append(numbers, &metrics.NumberDataPoint{
				Attributes: list, StartTimeUnixNano: began, TimeUnixNano: now, Value: &metrics.NumberDataPoint_AsDouble{AsDouble: p.Value},
			})
		case o.Exponential && e != nil:
			exponentials = append(exponentials, &metrics.ExponentialHistogramDataPoint{
				Attributes: list, StartTimeUnixNano: began, TimeUnixNano: now, Count: p.Count, Sum: &p.Sum, Scale: int32(e.Scale), ZeroCount: e.Zero,
				Positive: &metrics.ExponentialHistogramDataPoint_Buckets{Offset: int32(e.Offset), BucketCounts: e.Counts},
			})
		default:
			histograms = append(histograms, &metrics.HistogramDataPoint{
				Attributes: list, StartTimeUnixNano: began, TimeUnixNano: now, Count: p.Count, Sum: &p.Sum, BucketCounts: p.Counts, ExplicitBounds: p.Bounds,
			})
		}
	}
	switch {
	case f.Kind == Gauge:
		m.Data = &metrics.Metric_Gauge{Gauge: &metrics.Gauge{DataPoints: numbers}}
	case f.Kind == Counter:
		m.Data = &metrics.Metric_Sum{Sum: &metrics.Sum{DataPoints: numbers, AggregationTemporality: cumulative, IsMonotonic: true}}
	case len(exponentials) > 0:
		m.Data = &metrics.Metric_ExponentialHistogram{ExponentialHistogram: &metrics.ExponentialHistogram{DataPoints: exponentials, AggregationTemporality: cumulative}}
	default:
		m.Data = &metrics.Metric_Histogram{Histogram: &metrics.Histogram{DataPoints: histograms, AggregationTemporality: cumulative}}
	}
	return m
}

// otlpUnit returns the unit in UCUM.
func (f *Family) otlpUnit() string {
	switch {
	case f.UCUM != "":
		return f.UCUM
	case f.Unit == "seconds":
		return "s"
	}
	return "1"
}

func attributes(labels []Label, more []Attribute) (out []*common.KeyValue) {
	add := func(key string, value any) {
		v := &common.AnyValue{}
		if n, ok := value.(int); ok {
			v.Value = &common.AnyValue_IntValue{IntValue: int64(n)}
		} else {
			v.Value = &common.AnyValue_StringValue{StringValue: valid(value.(string))}
		}
		out = append(out, &common.KeyValue{Key: key, Value: v})
	}
	for _, l := range labels {
		add(l.Name, l.Value)
	}
	for _, a := range more {
		add(a.Key, a.Value)
	}
	return out
}
