package publish

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/exposition"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/traceid"
)

func lookup(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// Flags take precedence over the variables of a signal, and these over the variables for all signals.
func TestStandardVariables(t *testing.T) {
	for name, c := range map[string]struct {
		flags           Settings
		vars            map[string]string
		metrics, traces string // URLs; empty for none
	}{
		"nothing":       {},
		"for all":       {Settings{Sample: 1}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318/base/"}, "http://c:4318/base/v1/metrics", "http://c:4318/base/v1/traces"},
		"for metrics":   {Settings{}, map[string]string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m/own", "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "http://m/own", ""},
		"only traces":   {Settings{Sample: 0.1}, map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/v1/traces"}, "", "http://t/v1/traces"},
		"flag":          {Settings{Endpoint: "http://f:1", Sample: 1}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c"}, "http://f:1/v1/metrics", "http://f:1/v1/traces"},
		"none":          {Settings{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_METRICS_EXPORTER": "none"}, "", ""},
		"disabled":      {Settings{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_SDK_DISABLED": "true"}, "", ""},
		"gRPC":          {Settings{}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://c:4317/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", ""},
		"gRPC address":  {Settings{Protocol: "grpc"}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4317"}, "https://c:4317/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", ""},
		"gRPC insecure": {Settings{Protocol: "grpc"}, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "c:4317", "OTEL_EXPORTER_OTLP_INSECURE": "true"}, "http://c:4317/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c.flags.Getenv = lookup(c.vars)
			to, err := c.flags.Collector()
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			if to != nil {
				for _, s := range to.Signals() {
					got[s.Name] = s.URL
				}
			}
			if got["metrics"] != c.metrics || got["traces"] != c.traces {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestMoreVariables(t *testing.T) {
	s := Settings{Headers: []string{"x-key=flag"}, Getenv: lookup(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=variable, authorization=Bearer%20k",
		"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "1500", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_METRIC_EXPORT_INTERVAL": "2000",
		"OTEL_SERVICE_NAME": "load", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,team=a%20b",
	})}
	to, err := s.Collector()
	if err != nil {
		t.Fatal(err)
	}
	m := to.Metrics
	if m.Headers.Get("X-Key") != "flag" || m.Headers.Get("Authorization") != "Bearer k" || m.timeout != 1500*time.Millisecond || !m.gzip || to.Every != 2*time.Second {
		t.Errorf("%+v of %+v", m, to)
	}
	got := map[string]any{}
	for _, a := range New(time.Now(), About{Version: "v1"}, to).resource().Attributes {
		got[a.Key] = a.Value
	}
	if got["service.name"] != "load" || got["team"] != "a b" || got["service.version"] != "v1" || len(got["service.instance.id"].(string)) != 36 {
		t.Error(got)
	}
}

// An error names the variable, and never contains a value that may be secret.
func TestBadVariables(t *testing.T) {
	for name, value := range map[string]string{
		"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "c:4318", "OTEL_EXPORTER_OTLP_PROTOCOL": "thrift", "OTEL_EXPORTER_OTLP_TIMEOUT": "5s", "OTEL_EXPORTER_OTLP_COMPRESSION": "br",
		"OTEL_EXPORTER_OTLP_HEADERS": "hush%zz", "OTEL_EXPORTER_OTLP_CERTIFICATE": "/nowhere.pem", "OTEL_METRIC_EXPORT_INTERVAL": "-1",
		"OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION": "x", "OTEL_RESOURCE_ATTRIBUTES": "a",
	} {
		s := Settings{Getenv: lookup(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", name: value})}
		if _, err := s.Collector(); err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := (&Settings{Sample: 1}).Collector(); err == nil {
		t.Error("spans without a collector")
	}
	s := Settings{Endpoint: "http://c", Getenv: lookup(map[string]string{"OTEL_SDK_DISABLED": "true"})}
	if _, err := s.Collector(); !errors.Is(err, ErrDisabled) {
		t.Error(err)
	}
}

// answers returns the HTTP client of a collector in memory.
func answers(of func(*http.Request) (status int, location string)) *http.Client {
	return &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
		status, location := of(r)
		header := http.Header{}
		if location != "" {
			header.Set("Location", location)
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: header, Body: http.NoBody, Request: r}, nil
	})}
}

// The metrics and the key of a collector never go to another server. A redirect within the collector is followed.
func TestRedirects(t *testing.T) {
	for location, want := range map[string]int{"http://other/v1/metrics": 1, "https://c/v1/metrics": 1, "http://c:81/v1/metrics": 1, "http://c/moved": 2} {
		s := Settings{Endpoint: "http://c", Headers: []string{"x-key=hush"}}
		to, err := s.Collector()
		if err != nil {
			t.Fatal(err)
		}
		var asked []string
		to.Now = time.Now
		to.Metrics.Connect(answers(func(r *http.Request) (int, string) {
			asked = append(asked, r.URL.String())
			if len(asked) == 1 {
				return http.StatusTemporaryRedirect, location
			}
			return http.StatusOK, ""
		}))
		err = filledFor(t, to).exportMetrics(t.Context())
		if len(asked) != want || (err == nil) != (want == 2) {
			t.Errorf("%s: asked %v, error %v", location, asked, err)
		}
		if want == 1 && !strings.Contains(err.Error(), "redirects to ") {
			t.Error(err)
		}
	}
}

// A web page of another site that resolves its own name to this machine gets nothing.
func TestHostHeader(t *testing.T) {
	h := ownNames([]string{"node1", "bench.example"}, filled(t))
	for host, want := range map[string]int{
		"127.0.0.1:9464": 200, "[::1]:9464": 200, "10.1.2.3": 200, "localhost:9464": 200, "LOCALHOST": 200, "node1:9464": 200, "bench.example.": 200,
		"evil.example:9464": 403, "localhost.evil.example": 403, "node1.evil.example": 403, "127.0.0.1.evil.example": 403, "": 403,
	} {
		r := httptest.NewRequest(http.MethodGet, "/metrics", http.NoBody)
		r.Host = host
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		resp := w.Result()
		body, err := io.ReadAll(resp.Body)
		if bad := resp.Body.Close(); err != nil || bad != nil {
			t.Fatal(err, bad)
		}
		if resp.StatusCode != want {
			t.Errorf("%q: %d", host, resp.StatusCode)
		}
		if want == 403 && (strings.Contains(string(body), "tacho_run") || !strings.Contains(string(body), "--metrics-listen")) {
			t.Errorf("%q: %s", host, body)
		}
	}
}

func tracing(t *testing.T, status int) (*Exporter, *int) {
	t.Helper()
	s := Settings{Endpoint: "http://c", Sample: 1}
	to, err := s.Collector()
	if err != nil {
		t.Fatal(err)
	}
	posts := new(int)
	to.Traces.Connect(answers(func(*http.Request) (int, string) { *posts++; return status, "" }))
	return filledFor(t, to), posts
}

// A span has the times of the record, and the ids that the server received.
func TestSpan(t *testing.T) {
	b, _ := tracing(t, http.StatusOK)
	r := answered(20*ms, 50*ms)
	r.ID, r.Clock, r.Usage = "bench-5", tacho.KernelClock, &tacho.Usage{Prompt: 11, Completion: 2, Cached: 3, TellsCached: true}
	if err := b.Add(r); err != nil {
		t.Fatal(err)
	}
	s := b.spans.pending[0]
	epoch := time.Unix(2000, 0)
	if !s.Start.Equal(epoch.Add(time.Second)) || !s.End.Equal(epoch.Add(1050*ms)) || s.Name != "chat m" || s.Trace != traceid.Of(7, "bench-5").Trace {
		t.Errorf("%+v", s)
	}
	got := map[string]any{}
	for _, a := range s.Attributes {
		got[a.Key] = a.Value
	}
	for key, want := range map[string]any{
		"gen_ai.response.time_to_first_chunk": 0.02, "gen_ai.usage.input_tokens": 11, "gen_ai.usage.cache_read.input_tokens": 3, "server.address": "server", "server.port": 8000,
		"tacho.clock": "kernel",
	} {
		if got[key] != want {
			t.Errorf("%s is %v", key, got[key])
		}
	}
}

// Spans that the collector does not take wait for it, up to a limit. Rejected spans are dropped. Both are reported.
func TestSpanQueue(t *testing.T) {
	for status, want := range map[int]struct{ posts, left int }{200: {3, 0}, 503: {1, 1100}, 400: {3, 0}} {
		b, posts := tracing(t, status)
		for i := range 1100 {
			r := answered(ms)
			r.ID = strings.Repeat("x", i+1)
			if err := b.Add(r); err != nil {
				t.Fatal(err)
			}
		}
		for range 3 {
			if err := b.exportSpans(t.Context()); status == 200 && err != nil || status == 503 {
				break
			}
		}
		if *posts != want.posts || len(b.spans.pending) != want.left {
			t.Errorf("status %d: %d posts, %d spans left", status, *posts, len(b.spans.pending))
		}
		if err := b.lostSpans(); (err == nil) != (status == 200) {
			t.Errorf("status %d: %v", status, err)
		}
	}
	b, _ := tracing(t, http.StatusOK)
	b.spans.pending = make([]exposition.Span, maxSpans)
	r := answered(ms)
	r.ID = "one more"
	if err := b.Add(r); err != nil || len(b.spans.pending) != maxSpans || b.spans.dropped != 1 {
		t.Error("the queue grows beyond its limit")
	}
}

// A failed request has a duration and an error.type, and no latencies.
func TestConventionsOfFailures(t *testing.T) {
	b := filledFor(t, &Collector{Metrics: &Signal{}})
	got := map[string]uint64{}
	for _, f := range b.conventions() {
		for _, p := range f.Points {
			for _, a := range p.Attributes {
				if a.Key == "error.type" {
					got[f.Name+" "+a.Value.(string)] += p.Count
				}
			}
		}
	}
	if len(got) != 1 || got["gen_ai.client.operation.duration timeout"] != 1 {
		t.Error(got)
	}
}

// A stopped gRPC server and a wrong port give errors that say so.
func TestGRPCStatus(t *testing.T) {
	for code, want := range map[string]string{"0": "", "14": "gRPC status 14: no room", "16": "gRPC status 16: no room", "": "gRPC status (none)"} {
		resp := &http.Response{Trailer: http.Header{"Grpc-Status": {code}, "Grpc-Message": {"no%20room"}}}
		err := grpcStatus(resp)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", code, err)
		}
		if rejected := errors.As(err, new(rejection)); rejected != (code == "16" || code == "") {
			t.Errorf("%s: rejected is %v", code, rejected)
		}
	}
}

// A gRPC call is one frame over HTTP/2, and its status is in the trailer.
func TestGRPC(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := memnet.Listen()
		var got []byte
		status := "0"
		server := &http.Server{ReadHeaderTimeout: time.Second, Protocols: new(http.Protocols), Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			if err != nil || r.Header.Get("Te") != "trailers" || r.Header.Get("Content-Type") != "application/grpc" || !strings.HasSuffix(r.URL.Path, ".MetricsService/Export") {
				t.Error(err, r.Header, r.URL)
			}
			got = body
			w.Header().Set("Trailer", "Grpc-Status")
			w.WriteHeader(http.StatusOK)
			_, _ = w.Write(make([]byte, 5)) // an empty answer
			w.Header().Set("Grpc-Status", status)
		})}
		server.Protocols.SetUnencryptedHTTP2(true)
		go func() { _ = server.Serve(l) }() // until Close
		s := Settings{Endpoint: "http://c:4317", Protocol: "grpc"}
		to, err := s.Collector()
		if err != nil {
			t.Fatal(err)
		}
		to.Now = time.Now
		to.Metrics.Connect(&http.Client{Transport: &http.Transport{DialContext: l.Dial}})
		b := filledFor(t, to)
		if err := b.exportMetrics(t.Context()); err != nil {
			t.Error(err)
		}
		if len(got) < 5 || got[0] != 0 || int(binary.BigEndian.Uint32(got[1:])) != len(got)-5 {
			t.Errorf("%d bytes: %x", len(got), got[:min(5, len(got))])
		}
		status = "14"
		if err := b.exportMetrics(t.Context()); err == nil || !strings.Contains(err.Error(), "gRPC status 14") {
			t.Error(err)
		}
		to.Metrics.Close()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}
