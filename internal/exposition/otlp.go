package exposition

import "time"

// An Attribute describes a resource, a point or a span in OTLP. The type of its value is string, int, float64, bool
// or []string.
type Attribute struct {
	Key   string
	Value any
}

// A Resource is the source of metrics and spans in OTLP.
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

// MetricsRequest returns the request of a metrics export. Summaries are omitted, because collectors handle them badly.
func MetricsRequest(r *Resource, families []Family, o Options) Message {
	var metrics []Message
	for i := range families {
		f := &families[i]
		if f.Kind != Summary && len(f.Points) > 0 {
			metrics = append(metrics, f.otlp(&o))
		}
	}
	return r.request("Metrics", field{2, "metrics", metrics})
}

// TracesRequest returns the request of an export of spans.
func TracesRequest(r *Resource, spans []Span) Message {
	var out []Message
	for i := range spans {
		out = append(out, spans[i].otlp())
	}
	return r.request("Spans", field{2, "spans", out})
}

// request wraps a list of metrics or spans. Requests for both have the same fields, with different names.
func (r *Resource) request(kind string, list field) Message {
	scope := Message{{1, "name", r.Scope}, {2, "version", r.Version}}
	return Message{{1, "resource" + kind, []Message{{
		{1, "resource", Message{{1, "attributes", attributes(nil, r.Attributes)}}},
		{2, "scope" + kind, []Message{{{1, "scope", scope}, list}}},
	}}}}
}

// Enums of OTLP.
const (
	cumulative  enum = 2 // AGGREGATION_TEMPORALITY_CUMULATIVE
	clientSpan  enum = 3 // SPAN_KIND_CLIENT
	statusError enum = 2 // STATUS_CODE_ERROR
)

func (f *Family) otlp(o *Options) Message {
	m := Message{{1, "name", f.Name}, {2, "description", f.Help}, {3, "unit", f.otlpUnit()}}
	var points []Message
	exponential := o.Exponential && f.Points[0].Exponential != nil
	for i := range f.Points {
		points = append(points, f.Points[i].otlp(f.Kind, exponential, o))
	}
	data := Message{{1, "dataPoints", points}}
	switch {
	case f.Kind == Gauge:
		return append(m, field{5, "gauge", data})
	case f.Kind == Counter:
		return append(m, field{7, "sum", append(data, field{2, "aggregationTemporality", cumulative}, field{3, "isMonotonic", true})})
	case exponential:
		return append(m, field{10, "exponentialHistogram", append(data, field{2, "aggregationTemporality", cumulative})})
	}
	return append(m, field{9, "histogram", append(data, field{2, "aggregationTemporality", cumulative})})
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

func (p *Point) otlp(kind Kind, exponential bool, o *Options) Message {
	list := attributes(p.Labels, p.Attributes)
	times := Message{{2, "startTimeUnixNano", unixNano(o.Began)}, {3, "timeUnixNano", unixNano(o.Now)}}
	if kind != Histogram {
		return append(times, field{4, "asDouble", p.Value}, field{7, "attributes", list})
	}
	totals := append(times, field{4, "count", fixed64(p.Count)}, field{5, "sum", p.Sum})
	if exponential {
		e := p.Exponential
		buckets := Message{{1, "offset", sint(e.Offset)}, {2, "bucketCounts", e.Counts}}
		return append(totals, field{1, "attributes", list}, field{6, "scale", sint(e.Scale)}, field{7, "zeroCount", fixed64(e.Zero)}, field{8, "positive", buckets})
	}
	counts := make([]fixed64, len(p.Counts))
	for i, n := range p.Counts {
		counts[i] = fixed64(n)
	}
	return append(totals, field{6, "bucketCounts", counts}, field{7, "explicitBounds", p.Bounds}, field{9, "attributes", list})
}

func unixNano(t time.Time) fixed64 { return fixed64(t.UnixNano()) }

func attributes(labels []Label, more []Attribute) []Message {
	out := []Message{}
	for _, l := range labels {
		out = append(out, attribute(l.Name, l.Value))
	}
	for _, a := range more {
		out = append(out, attribute(a.Key, a.Value))
	}
	return out
}

func attribute(key string, value any) Message {
	return Message{{1, "key", key}, {2, "value", anyValue(value)}}
}

func anyValue(value any) Message {
	switch v := value.(type) {
	case string:
		return Message{{1, "stringValue", v}}
	case bool:
		return Message{{2, "boolValue", v}}
	case int:
		return Message{{3, "intValue", int64(v)}}
	case float64:
		return Message{{4, "doubleValue", v}}
	case []string:
		var list []Message
		for _, s := range v {
			list = append(list, anyValue(s))
		}
		return Message{{5, "arrayValue", Message{{1, "values", list}}}}
	}
	panic("exposition: an attribute of an unknown type")
}

// A Span is one request in a trace. Its parent, if any, is unknown to us.
type Span struct {
	Trace      [16]byte
	ID         [8]byte
	Name       string
	Start, End time.Time
	Attributes []Attribute
	Error      string // message of a failure; empty means success
}

func (s *Span) otlp() Message {
	m := Message{
		{1, "traceId", hexBytes(s.Trace[:])},
		{2, "spanId", hexBytes(s.ID[:])},
		{5, "name", s.Name},
		{6, "kind", clientSpan},
		{7, "startTimeUnixNano", unixNano(s.Start)},
		{8, "endTimeUnixNano", unixNano(s.End)},
		{9, "attributes", attributes(nil, s.Attributes)},
	}
	if s.Error != "" {
		m = append(m, field{15, "status", Message{{2, "message", s.Error}, {3, "code", statusError}}})
	}
	return m
}
