package publish

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/must"
)

func lookup(vars map[string]string) func(string) string {
	return func(name string) string { return vars[name] }
}

// Flags take precedence over the variables of metrics, and these over the variables of all signals.
func TestStandardVariables(t *testing.T) {
	const all, own = "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	for name, c := range map[string]struct {
		flag string
		vars map[string]string
		want string // URL; empty for none
	}{
		"nothing":           {},
		"for all":           {"", map[string]string{all: "http://c:4318/base/"}, "http://c:4318/base/v1/metrics"},
		"for metrics":       {"", map[string]string{own: "http://m/own", all: "http://c"}, "http://m/own"},
		"only traces":       {"", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://t/v1/traces"}, ""},
		"flag":              {"http://f:1", map[string]string{all: "http://c"}, "http://f:1/v1/metrics"},
		"flag beside gRPC":  {"http://f:1", map[string]string{all: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http://f:1/v1/metrics"},
		"none":              {"", map[string]string{all: "http://c", "OTEL_METRICS_EXPORTER": "none"}, ""},
		"disabled":          {"", map[string]string{all: "http://c", "OTEL_SDK_DISABLED": "true"}, ""},
		"the only protocol": {"", map[string]string{all: "http://c", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf"}, "http://c/v1/metrics"},
	} {
		t.Run(name, func(t *testing.T) {
			to := must.Get((&Settings{Endpoint: c.flag, Getenv: lookup(c.vars)}).Collector())(t)
			got := ""
			if to != nil {
				got = to.URL
			}
			if got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Variables for all programs of the machine that prevent the export do not stop a run.
func TestNotSent(t *testing.T) {
	for _, s := range []Settings{
		{Endpoint: "http://c", Getenv: lookup(map[string]string{"OTEL_SDK_DISABLED": "true"})},
		{Getenv: lookup(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})},
	} {
		if _, err := s.Collector(); !errors.Is(err, ErrNotSent) || !strings.Contains(err.Error(), "OTEL_") {
			t.Error(err)
		}
	}
}

func TestMoreVariables(t *testing.T) {
	s := Settings{Headers: []string{"x-key=flag"}, Getenv: lookup(map[string]string{
		"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c", "OTEL_EXPORTER_OTLP_HEADERS": "x-key=variable, authorization=Bearer%20k",
		"OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "1500", "OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_METRIC_EXPORT_INTERVAL": "2000",
		"OTEL_SERVICE_NAME": "load", "OTEL_RESOURCE_ATTRIBUTES": "service.name=other,team=a%20b",
	})}
	to := must.Get(s.Collector())(t)
	if to.Headers.Get("X-Key") != "flag" || to.Headers.Get("Authorization") != "Bearer k" || to.timeout != 1500*time.Millisecond || !to.gzip || to.Every != 2*time.Second {
		t.Errorf("%+v", to)
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
		must.Do(t, err)
		var asked []string
		to.Now = time.Now
		to.Connect(answers(func(r *http.Request) (int, string) {
			asked = append(asked, r.URL.String())
			if len(asked) == 1 {
				return http.StatusTemporaryRedirect, location
			}
			return http.StatusOK, ""
		}))
		err = filledFor(t, to).pushOnce(t.Context())
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

// A failed request has a duration and an error.type, and no latencies.
func TestConventionsOfFailures(t *testing.T) {
	b := filledFor(t, &Collector{})
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
