package otlp

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"go.opentelemetry.io/collector/component/componenttest"
	"go.opentelemetry.io/collector/config/configgrpc"
	"go.opentelemetry.io/collector/config/confighttp"
	"go.opentelemetry.io/collector/config/confignet"
	"go.opentelemetry.io/collector/config/configoptional"
	"go.opentelemetry.io/collector/consumer/consumertest"
	"go.opentelemetry.io/collector/pdata/pcommon"
	"go.opentelemetry.io/collector/pdata/pmetric"
	"go.opentelemetry.io/collector/pdata/ptrace"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/receiver/receivertest"

	"github.com/tacho-bench/tacho/internal/cli"
)

// A collector is the OTLP receiver of the OpenTelemetry collector, with its three protocols.
type collector struct {
	http, grpc string // addresses
	metrics    consumertest.MetricsSink
	traces     consumertest.TracesSink
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
	c := &collector{http: freeAddress(t), grpc: freeAddress(t)}
	factory := otlpreceiver.NewFactory()
	config := factory.CreateDefaultConfig().(*otlpreceiver.Config)
	grpc := configgrpc.NewDefaultServerConfig()
	grpc.NetAddr = confignet.AddrConfig{Endpoint: c.grpc, Transport: confignet.TransportTypeTCP}
	server := confighttp.NewDefaultServerConfig()
	server.NetAddr = confignet.AddrConfig{Endpoint: c.http, Transport: confignet.TransportTypeTCP}
	config.Protocols.GRPC = configoptional.Some(grpc)
	config.Protocols.HTTP = configoptional.Some(otlpreceiver.HTTPConfig{ServerConfig: server, MetricsURLPath: "/v1/metrics", TracesURLPath: "/v1/traces"})
	settings := receivertest.NewNopSettings(factory.Type())
	metrics, err := factory.CreateMetrics(t.Context(), settings, config, &c.metrics)
	if err != nil {
		t.Fatal(err)
	}
	traces, err := factory.CreateTraces(t.Context(), settings, config, &c.traces)
	if err != nil {
		t.Fatal(err)
	}
	host := componenttest.NewNopHost()
	if err := metrics.Start(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	if err := traces.Start(t.Context(), host); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = metrics.Shutdown(context.Background())
		_ = traces.Shutdown(context.Background())
	})
	return c
}

// A server is a chat server that streams two tokens, and keeps the traceparent of each request.
type server struct {
	*httptest.Server
	mu      sync.Mutex
	parents map[string]string // by request id
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{parents: map[string]string{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
			return
		}
		s.mu.Lock()
		s.parents[r.Header.Get("X-Request-Id")] = r.Header.Get("Traceparent")
		s.mu.Unlock()
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
func bench(t *testing.T, s *server, vars map[string]string, flags ...string) {
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

// The receiver of the collector accepts metrics and spans over each protocol, with and without compression.
func TestReceiver(t *testing.T) {
	for _, c := range []struct {
		protocol string
		vars     map[string]string
	}{
		{"http/protobuf", nil},
		{"http/json", nil},
		{"grpc", nil},
		{"http/protobuf", map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}},
		{"grpc", map[string]string{"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip"}},
		{"http/protobuf", map[string]string{"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "base2_exponential_bucket_histogram"}},
		{"http/json", map[string]string{"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "base2_exponential_bucket_histogram"}},
	} {
		name := c.protocol
		for variable := range c.vars {
			name += " " + variable
		}
		t.Run(name, func(t *testing.T) {
			to, s := start(t), serve(t)
			endpoint := "http://" + to.http
			if c.protocol == "grpc" {
				endpoint = "http://" + to.grpc
			}
			bench(t, s, c.vars, "--otlp-endpoint", endpoint, "--otlp-protocol", c.protocol, "--otlp-spans", "1")
			checkMetrics(t, to.metrics.AllMetrics())
			checkSpans(t, s, to.traces.AllTraces())
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

// Every request has a span whose ids the server received, with the tokens and latencies of the request.
func checkSpans(t *testing.T, s *server, all []ptrace.Traces) {
	t.Helper()
	var parents []string
	for _, traces := range all {
		for _, span := range traces.ResourceSpans().At(0).ScopeSpans().At(0).Spans().All() {
			a := span.Attributes()
			id, _ := a.Get("tacho.request.id")
			s.mu.Lock()
			parent := s.parents[id.Str()]
			s.mu.Unlock()
			if want := "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-01"; parent != want {
				t.Errorf("the server received %q, and the span is %q", parent, want)
			}
			parents = append(parents, parent)
			first, _ := a.Get("gen_ai.response.time_to_first_chunk")
			whole := span.EndTimestamp().AsTime().Sub(span.StartTimestamp().AsTime()).Seconds()
			if first.Double() <= 0 || first.Double() > whole {
				t.Errorf("time to first chunk %v s of %v s", first.Double(), whole)
			}
			for key, want := range map[string]any{"gen_ai.usage.input_tokens": int64(9), "gen_ai.usage.output_tokens": int64(2), "gen_ai.request.model": "m"} {
				if v, _ := a.Get(key); v.AsRaw() != want {
					t.Errorf("%s is %v", key, v.AsRaw())
				}
			}
			if span.Name() != "chat m" || span.Kind() != ptrace.SpanKindClient {
				t.Errorf("span %q of kind %v", span.Name(), span.Kind())
			}
		}
	}
	slices.Sort(parents)
	if len(slices.Compact(parents)) != 10 {
		t.Errorf("%d spans", len(parents))
	}
}
