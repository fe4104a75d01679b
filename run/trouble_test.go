package run_test

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"tacho/plan"
	"tacho/run"
)

// A server that cannot be measured as asked gets an error that names the option
// to change, whether the model is known or asked for.
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
	const wantsCert = "wants a client certificate: name it with --client-cert and --client-key"
	for name, test := range map[string]struct {
		start   func(*testing.T, http.Handler) string
		handler http.HandlerFunc
		change  func(*plan.Plan)
		want    string
	}{
		"TLS 1.3 alert": {mutual(tls.VersionTLS13), nil, func(p *plan.Plan) { p.Insecure = true }, wantsCert},
		"TLS 1.2 alert": {mutual(tls.VersionTLS12), nil, func(p *plan.Plan) { p.Insecure = true }, "the client certificate (--client-cert)"},
		"nginx":         {plain, answer(400, "<html><head><title>400 No required SSL certificate was sent</title></head></html>"), nil, wantsCert},
		"HTTP/2":        {plain, answer(200, ""), func(p *plan.Plan) { p.HTTP2 = true }, "does not speak HTTP/2 in the clear: leave out --http2"},
		"ignore_eos": {
			plain, answer(422, `{"detail":"Unexpected fields in the request: {'ignore_eos'}"}`), func(p *plan.Plan) { p.Model = "m" },
			"does not take ignore_eos: write --ignore-eos=false, or --backend transformers",
		},
		"request id": {
			plain, answer(422, `{"detail":[{"loc":["header","x-request-id"],"msg":"value is not a valid UUID"}]}`), func(p *plan.Plan) { p.Model = "m" },
			"does not take the request id: write --request-id-format uuid",
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
					if out.err == nil || !strings.Contains(out.err.Error(), test.want) {
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
