package publish

import (
	"bufio"
	"errors"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"google.golang.org/protobuf/encoding/protodelim"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/exposition"
	"github.com/tacho-bench/tacho/internal/must"
)

// Prometheus' own messages accept the page, and its native buckets contain every value at the right place.
func TestNativeHistogram(t *testing.T) {
	b := New(time.Now(), About{Labels: []exposition.Label{{Name: "model", Value: "m\xff"}}}, nil)
	b.Begin(Level{Name: "a", Now: func() Counts { return Counts{Started: 3} }})
	const n = 500
	for i := range n {
		ttft := time.Duration(i+1) * time.Millisecond
		r := &tacho.Record{Output: 1}
		r.Sent, r.End = time.Second, time.Second+ttft
		r.Events = tacho.Events{{At: time.Second + ttft, Tokens: 1}}
		must.Do(t, b.Add(r))
	}
	req := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
	req.Header.Set("Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,text/plain;version=0.0.4;q=0.2")
	w := httptest.NewRecorder()
	b.ServeHTTP(w, req)
	families := map[string]*dto.MetricFamily{}
	for page := bufio.NewReader(w.Result().Body); ; {
		f := &dto.MetricFamily{}
		err := protodelim.UnmarshalFrom(page, f)
		if errors.Is(err, io.EOF) {
			break
		}
		must.Do(t, err)
		families[f.GetName()] = f
	}
	if v := families["tacho_requests_started_total"].GetMetric()[0].GetCounter().GetValue(); v != 3 {
		t.Errorf("%v requests started", v)
	}
	if families["tacho_itl_seconds"].GetMetric()[0].GetHistogram().GetPositiveSpan() == nil {
		t.Error("an empty histogram is not native")
	}
	h := families["tacho_ttft_seconds"].GetMetric()[0].GetHistogram()
	if h.GetSampleCount() != n || h.GetSchema() != 6 || len(h.GetBucket()) < 70 {
		t.Errorf("%d values, schema %d, %d buckets", h.GetSampleCount(), h.GetSchema(), len(h.GetBucket()))
	}
	var index int32
	var count, total int64
	next := 0
	for _, span := range h.GetPositiveSpan() {
		index += span.GetOffset()
		for range span.GetLength() {
			count += h.GetPositiveDelta()[next]
			low, high := math.Exp2(float64(index-1)/64), math.Exp2(float64(index)/64)
			if want := int64(math.Floor(high*1000+1e-9)) - int64(math.Floor(low*1000+1e-9)); count != want {
				t.Errorf("bucket %g to %g has %d values instead of %d", low, high, count, want)
			}
			total += count
			next++
			index++
		}
	}
	if total != n {
		t.Errorf("the buckets have %d values", total)
	}
}
