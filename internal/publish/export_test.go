package publish

import (
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tacho-bench/tacho/internal/must"
)

// A collector that reads OpenTelemetry's own messages gets all metrics with their units and attributes, compressed or
// not, and each histogram has all of its values in its buckets.
func TestExport(t *testing.T) {
	for name, vars := range map[string]map[string]string{
		"plain":       nil,
		"gzip":        {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
		"exponential": {"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "base2_exponential_bucket_histogram"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Settings{Endpoint: "http://c", Getenv: lookup(vars)}
			to := must.Get(s.Collector())(t)
			var sent metrics.MetricsData
			to.Now = time.Now
			to.Connect(answers(func(r *http.Request) (int, string) {
				body := io.Reader(r.Body)
				if r.Header.Get("Content-Encoding") == "gzip" {
					body = must.Get(gzip.NewReader(body))(t)
				}
				text, err := io.ReadAll(body)
				if err != nil || proto.Unmarshal(text, &sent) != nil || r.Header.Get("Content-Type") != "application/x-protobuf" {
					t.Fatal(err, r.Header)
				}
				return http.StatusOK, ""
			}))
			must.Do(t, filledFor(t, to).pushOnce(t.Context()))
			units, values := map[string]string{}, map[string]uint64{}
			for _, m := range sent.ResourceMetrics[0].ScopeMetrics[0].Metrics {
				units[m.Name] = m.Unit
				for _, p := range m.GetHistogram().GetDataPoints() {
					values[m.Name] += p.Count
					checkPoint(t, m.Name, p.Attributes, p.BucketCounts, p.Count)
				}
				for _, p := range m.GetExponentialHistogram().GetDataPoints() {
					values[m.Name] += p.Count
					checkPoint(t, m.Name, p.Attributes, append(p.Positive.GetBucketCounts(), p.ZeroCount), p.Count)
				}
			}
			for name, want := range map[string]struct {
				unit   string
				values uint64
			}{
				"gen_ai.client.operation.duration": {"s", 3}, "gen_ai.client.token.usage": {"{token}", 4},
				"gen_ai.client.operation.time_to_first_chunk": {"s", 2}, "gen_ai.client.operation.time_per_output_chunk": {"s", 2},
				"gen_ai.server.time_to_first_token": {"s", 2}, "gen_ai.server.time_per_output_token": {"s", 1},
				"tacho_ttft_seconds": {"s", 2}, "tacho_requests": {"{request}", 0}, "tacho_output_tokens": {"{token}", 0},
			} {
				if units[name] != want.unit || values[name] != want.values {
					t.Errorf("%s has the unit %q and %d values, want %+v", name, units[name], values[name], want)
				}
			}
		})
	}
}

// checkPoint checks that the buckets contain all values, and the attributes of GenAI's conventions.
func checkPoint(t *testing.T, name string, attributes []*common.KeyValue, buckets []uint64, count uint64) {
	t.Helper()
	for _, n := range buckets {
		count -= n
	}
	if count != 0 {
		t.Errorf("%s: %d values are in no bucket", name, count)
	}
	got := map[string]string{}
	for _, a := range attributes {
		got[a.Key] = a.Value.GetStringValue()
	}
	if strings.HasPrefix(name, "gen_ai.") && (got["gen_ai.operation.name"] != "chat" || got["gen_ai.provider.name"] != "vllm" ||
		got["gen_ai.request.model"] != "m" || got["server.address"] != "server") {
		t.Errorf("%s has the attributes %v", name, got)
	}
}
