package otlp

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/tacho-bench/tacho/internal/cli"
)

// A collector is the OTLP receiver of the OpenTelemetry collector, over HTTP.
type collector struct {
	http    string // address
	metrics consumertest.MetricsSink
}

func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

func start(t *testing.T) *collector {
	t.Helper()
	c := &collector{http: freeAddress(t)}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr = confignet.AddrConfig{Endpoint: c.http, Transport: confignet.TransportTypeTCP}
	config.Protocols.HTTP = configoptional.Some(otlpreceiver.HTTPConfig{ServerConfig: server, MetricsURLPath: "/v1/metrics"})
	settings := receivertest.NewNopSettings(factory.Type())
	metrics, err := factory.CreateMetrics(t.Context(), settings, config, &c.metrics)
	if err != nil {
		t.Fatal(err)
	}
	host := componenttest.NewNopHost()
	if err := metrics.Start(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = metrics.Shutdown(context.Background())
	})
	return c
}

// serve starts a chat server that streams two tokens.
func serve(t *testing.T) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, event := range []string{
			`{"choices":[{"index":0,"delta":{"content":"a"}}]}`, `{"choices":[{"index":0,"delta":{"content":"b"},"finish_reason":"length"}]}`,
			`{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":2}}`, `[DONE]`,
		} {
			_, _ = io.WriteString(w, "data: "+event+"\n\n")
			w.(http.Flusher).Flush()
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// bench measures the server with ten requests.
func bench(t *testing.T, s *httptest.Server, vars map[string]string, flags ...string) {
	t.Helper()
	var out bytes.Buffer
	args := append([]string{
		"bench", "--backend", "openai-chat", "--base-url", s.URL, "--model", "m", "--num-prompts", "10", "--random-input-len", "5", "--random-output-len", "2",
		"--runs-dir", t.TempDir(), "--disable-tqdm", "--prompt-text",
	}, flags...)
	code := cli.Main(&cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(name string) string { return vars[name] }, Width: func() int { return 80 },
	})
	if strings.Contains(out.String(), "collector") {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
}

// The receiver of the collector accepts metrics, with and without compression.
func TestReceiver(t *testing.T) {
	for name, vars := range map[string]map[string]string{
		"plain":       nil,
		"gzip":        {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"},
		"exponential": {"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "base2_exponential_bucket_histogram"},
	} {
		t.Run(name, func(t *testing.T) {
			to := start(t)
			bench(t, serve(t), vars, "--otlp-endpoint", "http://"+to.http)
			checkMetrics(t, to.metrics.AllMetrics())
		})
	}
}

// All settings can come from the standard variables.
func TestVariables(t *testing.T) {
	to, s := start(t), serve(t)
	vars := map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://" + to.http + "/v1/metrics", "OTEL_SERVICE_NAME": "load", "OTEL_RESOURCE_ATTRIBUTES": "team=a%20b"}
	var out bytes.Buffer
	cli.Main(&cli.Env{
		Args:  []string{"bench", "--backend", "openai-chat", "--base-url", s.URL, "--model", "m", "--num-prompts", "1", "--random-input-len", "5", "--random-output-len", "2", "--runs-dir", t.TempDir(), "--prompt-text"},
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(name string) string { return vars[name] }, Width: func() int { return 80 },
	})
	all := to.metrics.AllMetrics()
	if len(all) == 0 {
		t.Fatal(out.String())
	}
	got := all[len(all)-1].ResourceMetrics().At(0).Resource().Attributes()
	for key, want := range map[string]string{"service.name": "load", "team": "a b"} {
		if v, _ := got.Get(key); v.Str() != want {
			t.Errorf("%s is %q", key, v.Str())
		}
	}
	if !strings.Contains(out.String(), "because OTEL_EXPORTER_OTLP_METRICS_ENDPOINT is set") {
		t.Error(out.String())
	}
}

func checkMetrics(t *testing.T, all []pmetric.Metrics) {
	t.Helper()
	if len(all) == 0 {
		t.Fatal("no metrics arrived")
	}
	from := all[len(all)-1].ResourceMetrics().At(0)
	for _, key := range []string{"service.name", "service.version", "service.instance.id", "tacho.run.name"} {
		if _, ok := from.Resource().Attributes().Get(key); !ok {
			t.Errorf("the resource has no %s", key)
		}
	}
	got := map[string]string{} // unit
	for _, m := range from.ScopeMetrics().At(0).Metrics().All() {
		got[m.Name()] = m.Unit()
		if !strings.HasPrefix(m.Name(), "gen_ai.") {
			continue
		}
		if n := count(t, m); n < 10 {
			t.Errorf("%s has %d values", m.Name(), n)
		}
	}
	for name, unit := range map[string]string{
		"gen_ai.client.operation.duration": "s", "gen_ai.client.token.usage": "{token}", "gen_ai.client.operation.time_to_first_chunk": "s",
		"gen_ai.client.operation.time_per_output_chunk": "s", "gen_ai.server.time_to_first_token": "s", "gen_ai.server.time_per_output_token": "s",
		"tacho_ttft_seconds": "s", "tacho_requests": "{request}", "tacho_output_tokens": "{token}",
	} {
		if got[name] != unit {
			t.Errorf("%s has the unit %q", name, got[name])
		}
	}
}

// count returns the number of values in a histogram, and checks the attributes.
func count(t *testing.T, m pmetric.Metric) (n uint64) {
	t.Helper()
	check := func(attributes pcommon.Map) {
		for key, want := range map[string]any{"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "m", "server.address": "127.0.0.1"} {
			if v, _ := attributes.Get(key); v.AsRaw() != want {
				t.Errorf("%s: %s is %v", m.Name(), key, v.AsRaw())
			}
		}
		if v, _ := attributes.Get("server.port"); v.Type() != pcommon.ValueTypeInt || v.Int() == 0 {
			t.Errorf("%s: the port is %v", m.Name(), v.AsRaw())
		}
	}
	switch m.Type() {
	case pmetric.MetricTypeHistogram:
		for _, p := range m.Histogram().DataPoints().All() {
			check(p.Attributes())
			if p.BucketCounts().Len() != p.ExplicitBounds().Len()+1 {
				t.Errorf("%s has %d counts of %d bounds", m.Name(), p.BucketCounts().Len(), p.ExplicitBounds().Len())
			}
			n += p.Count()
		}
	case pmetric.MetricTypeExponentialHistogram:
		for _, p := range m.ExponentialHistogram().DataPoints().All() {
			check(p.Attributes())
			var sum uint64
			for _, c := range p.Positive().BucketCounts().All() {
				sum += c
			}
			if sum+p.ZeroCount() != p.Count() {
				t.Errorf("%s: buckets have %d of %d values", m.Name(), sum, p.Count())
			}
			n += p.Count()
		}
	default:
		t.Errorf("%s is %v", m.Name(), m.Type())
	}
	return n
}
