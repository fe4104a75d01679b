package exposition

import (
	"io"
	"math"
	"strings"

	client "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"
)

// ProtobufType is the media type of WriteProtobuf. Prometheus reads native histograms only in this format.
const ProtobufType = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

// WriteProtobuf writes families in the Protobuf format of Prometheus. Histograms contain native buckets in addition
// to the ordinary ones, if the points have them.
func WriteProtobuf(w io.Writer, families []Family) error {
	for i := range families {
		f := &families[i]
		kind := client.MetricType(client.MetricType_value[strings.ToUpper(string(f.Kind))])
		out := &client.MetricFamily{Name: &f.Name, Help: &f.Help, Type: &kind}
		if f.Kind == Counter {
			out.Name = new(f.Name + "_total")
		}
		for k := range f.Points {
			out.Metric = append(out.Metric, f.Points[k].prometheus(f.Kind))
		}
		if _, err := protodelim.MarshalTo(w, out); err != nil {
			return err
		}
	}
	return nil
}

func (p *Point) prometheus(kind Kind) *client.Metric {
	m := &client.Metric{}
	for _, l := range p.Labels {
		m.Label = append(m.Label, &client.LabelPair{Name: &l.Name, Value: new(valid(l.Value))})
	}
	switch kind {
	case Gauge:
		m.Gauge = &client.Gauge{Value: &p.Value}
	case Counter:
		m.Counter = &client.Counter{Value: &p.Value}
	case Summary:
		m.Summary = &client.Summary{SampleCount: &p.Count, SampleSum: &p.Sum}
		for i := range p.Quantiles {
			q := &p.Quantiles[i]
			m.Summary.Quantile = append(m.Summary.Quantile, &client.Quantile{Quantile: &q.Quantile, Value: &q.Value})
		}
	default:
		m.Histogram = p.histogram()
	}
	return m
}

// histogram returns the ordinary and the native buckets.
func (p *Point) histogram() *client.Histogram {
	h := &client.Histogram{SampleCount: &p.Count, SampleSum: &p.Sum}
	var below uint64
	for i, n := range p.Counts {
		below += n
		bound := math.Inf(1)
		if i < len(p.Bounds) {
			bound = p.Bounds[i]
		}
		h.Bucket = append(h.Bucket, &client.Bucket{CumulativeCount: new(below), UpperBound: &bound})
	}
	if p.Exponential != nil {
		p.Exponential.native(h)
	}
	return h
}

// native adds the fields of a native histogram: spans of consecutive buckets that are not empty, and the difference
// of each count from the one before.
func (e *Exponential) native(h *client.Histogram) {
	h.Schema, h.ZeroThreshold, h.ZeroCount = new(int32(e.Scale)), new(0x1p-128), &e.Zero // as in Prometheus' own clients
	var last int64
	next := 0 // index of the bucket after the last span
	for i := 0; i < len(e.Counts); {
		if e.Counts[i] == 0 {
			i++
			continue
		}
		first := i
		for ; i < len(e.Counts) && e.Counts[i] > 0; i++ {
			n := int64(e.Counts[i])
			h.PositiveDelta = append(h.PositiveDelta, n-last)
			last = n
		}
		from := e.Offset + first + 1 // Prometheus numbers a bucket by its upper bound
		h.PositiveSpan = append(h.PositiveSpan, &client.BucketSpan{Offset: new(int32(from - next)), Length: new(uint32(i - first))})
		next = e.Offset + i + 1
	}
	if len(h.PositiveSpan) == 0 { // an empty span marks an empty histogram as native
		h.PositiveSpan = []*client.BucketSpan{{Offset: new(int32), Length: new(uint32)}}
	}
}
