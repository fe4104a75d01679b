package exposition

import (
	"encoding/binary"
	"io"
	"math"
)

// ProtobufType is the media type of WriteProtobuf. Prometheus reads native histograms only in this format.
const ProtobufType = "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"

// zeroThreshold is the width of the bucket around 0, as in Prometheus' own clients.
const zeroThreshold = 0x1p-128

// metricTypes are the values of io.prometheus.client.MetricType.
var metricTypes = map[Kind]enum{Counter: 0, Gauge: 1, Summary: 2, Histogram: 4}

// WriteProtobuf writes families in the Protobuf format of Prometheus. Histograms contain native buckets in addition
// to the ordinary ones, if the points have them.
func WriteProtobuf(w io.Writer, families []Family) error {
	var page []byte
	for i := range families {
		f := &families[i]
		name := f.Name
		if f.Kind == Counter {
			name += "_total"
		}
		m := Message{{1, "name", name}, {2, "help", f.Help}, {3, "type", metricTypes[f.Kind]}}
		for k := range f.Points {
			m = append(m, field{4, "metric", f.Points[k].prometheus(f.Kind)})
		}
		body := m.Proto(nil)
		page = append(binary.AppendUvarint(page, uint64(len(body))), body...)
	}
	_, err := w.Write(page)
	return err
}

func (p *Point) prometheus(kind Kind) Message {
	var m Message
	for _, l := range p.Labels {
		m = append(m, field{1, "label", Message{{1, "name", l.Name}, {2, "value", l.Value}}})
	}
	switch kind {
	case Gauge:
		return append(m, field{2, "gauge", Message{{1, "value", p.Value}}})
	case Counter:
		return append(m, field{3, "counter", Message{{1, "value", p.Value}}})
	case Summary:
		s := Message{{1, "sample_count", p.Count}, {2, "sample_sum", p.Sum}}
		for _, q := range p.Quantiles {
			s = append(s, field{3, "quantile", Message{{1, "quantile", q.Quantile}, {2, "value", q.Value}}})
		}
		return append(m, field{4, "summary", s})
	}
	return append(m, field{7, "histogram", p.histogram()})
}

// histogram returns the ordinary and the native buckets.
func (p *Point) histogram() Message {
	h := Message{{1, "sample_count", p.Count}, {2, "sample_sum", p.Sum}}
	var below uint64
	for i, n := range p.Counts {
		below += n
		bound := math.Inf(1)
		if i < len(p.Bounds) {
			bound = p.Bounds[i]
		}
		h = append(h, field{3, "bucket", Message{{1, "cumulative_count", below}, {2, "upper_bound", bound}}})
	}
	if p.Exponential == nil {
		return h
	}
	return append(h, p.Exponential.native()...)
}

// native returns the fields of a native histogram: spans of consecutive buckets that are not empty, and the difference
// of each count from the one before.
func (e *Exponential) native() Message {
	spans := []Message{}
	deltas := []sint{}
	var last sint
	next := 0 // index of the bucket after the last span
	for i := 0; i < len(e.Counts); {
		if e.Counts[i] == 0 {
			i++
			continue
		}
		first := i
		for ; i < len(e.Counts) && e.Counts[i] > 0; i++ {
			n := sint(e.Counts[i])
			deltas = append(deltas, n-last)
			last = n
		}
		from := e.Offset + first + 1 // Prometheus numbers a bucket by its upper bound
		spans = append(spans, Message{{1, "offset", sint(from - next)}, {2, "length", uint64(i - first)}})
		next = e.Offset + i + 1
	}
	if len(spans) == 0 {
		spans = append(spans, Message{{1, "offset", sint(0)}, {2, "length", uint64(0)}}) // marks an empty histogram as native
	}
	return Message{{5, "schema", sint(e.Scale)}, {6, "zero_threshold", zeroThreshold}, {7, "zero_count", e.Zero}, {12, "positive_span", spans}, {13, "positive_delta", deltas}}
}
