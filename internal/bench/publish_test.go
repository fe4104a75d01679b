package bench_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
)

// Options of a collector that is missing are an error. Headers of the standard variable are secret.
func TestCollector(t *testing.T) {
	p := plan.Default()
	p.BaseURL, p.OTLPHeaders = []string{"http://server"}, []string{"x-key=1"}
	secrets := &redact.Secrets{}
	vars := map[string]string{}
	o := bench.Options{
		Env: run.Env{Secrets: secrets, Dial: func(context.Context, string, string) (net.Conn, error) {
			return nil, errors.New("no server")
		}},
		Getenv: func(name string) string { return vars[name] },
	}
	if _, err := bench.Open(t.Context(), p, o); err == nil || !strings.Contains(err.Error(), "--otlp-endpoint") {
		t.Error(err)
	}
	vars["OTEL_EXPORTER_OTLP_ENDPOINT"], vars["OTEL_EXPORTER_OTLP_HEADERS"] = "http://collector", "authorization=Bearer%20hush-1234567"
	if _, err := bench.Open(t.Context(), p, o); err == nil || strings.Contains(err.Error(), "otlp") {
		t.Error(err)
	}
	if got := secrets.Hide("the collector answered hush-1234567"); strings.Contains(got, "hush") {
		t.Error(got)
	}
}
