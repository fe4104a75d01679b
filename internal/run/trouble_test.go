package run_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
)

// The error for a server that cannot be measured names the option to change,
// with and without --model.
func TestTroubleNamesTheOption(t *testing.T) {
	answer := func(status int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(status)
			_, _ = io.WriteString(w, body)
		}
	}
	mutual := func(version uint16) func(t *testing.T, h http.Handler) string {
		return func(t *testing.T, h http.Handler) string {
			t.Helper()
			srv := unstarted(t, h)
			srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert, MaxVersion: version}
			srv.StartTLS()
			t.Cleanup(srv.Close)
			return srv.URL
		}
	}
	plain := func(t *testing.T, h http.Handler) string {
		t.Helper()
		srv := listen(t, h)
		t.Cleanup(srv.Close)
		return srv.URL
	}
	// A server closes the connection after a TLS alert, or after bytes of HTTP/2. A write may fail before the client reads that.
	const wantsCert = "requires a client certificate[,;] set --client-cert and --client-key"
	for name, test := range map[string]struct {
		start   func(*testing.T, http.Handler) string
		handler http.HandlerFunc
		change  func(*plan.Plan)
		want    string
	}{
		"TLS 1.3 alert": {mutual(tls.VersionTLS13), nil, func(p *plan.Plan) { p.Insecure = true }, wantsCert},
		"TLS 1.2 alert": {mutual(tls.VersionTLS12), nil, func(p *plan.Plan) { p.Insecure = true }, `the client certificate \(--client-cert\)`},
		"nginx":         {plain, answer(400, "<html><head><title>400 No required SSL certificate was sent</title></head></html>"), nil, wantsCert},
		"HTTP/2":        {plain, answer(200, ""), func(p *plan.Plan) { p.HTTP2 = true }, "does not support cleartext HTTP/2[,;] remove --http2"},
		"ignore_eos": {
			plain, answer(422, `{"detail":"Unexpected fields in the request: {'ignore_eos'}"}`), func(p *plan.Plan) { p.Model = "m" },
			"does not support ignore_eos, use --ignore-eos=false, or --backend transformers",
		},
		"request id": {
			plain, answer(422, `{"detail":[{"loc":["header","x-request-id"],"msg":"value is not a valid UUID"}]}`), func(p *plan.Plan) { p.Model = "m" },
			"rejects the request id, use --request-id-format uuid",
		},
	} {
		for _, model := range []string{"", "m"} {
			t.Run(name+" "+model, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					url := test.start(t, test.handler)
					out := execute(t.Context(), planFor(url, func(p *plan.Plan) {
						p.Model, p.NoTrial = model, false
						if test.change != nil {
							test.change(p)
						}
					}), run.Env{})
					if out.err == nil || !regexp.MustCompile(test.want).MatchString(out.err.Error()) {
						t.Errorf("%v", out.err)
					}
					if said := strings.Join(out.said, "\n"); strings.Contains(said, "token ids") {
						t.Error("taken for a refusal of token ids:", said)
					}
				})
			})
		}
	}
}
