package run_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
)

// on serves h at an address of the in-memory network.
func on(t *testing.T, addr string, h http.HandlerFunc) string {
	t.Helper()
	s := unstarted(t, h)
	s.Listener = listener(t, addr)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// Redirects never forward API keys to another server, in any request before or
// during a run.
func TestKeysStayAtHome(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		asked := map[string]bool{}
		away := on(t, "127.0.0.2", func(_ http.ResponseWriter, r *http.Request) {
			t.Errorf("the other server was asked for %s with %v", r.URL, r.Header)
		})
		home := on(t, "127.0.0.1", func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			asked[r.URL.Path] = true
			mu.Unlock()
			http.Redirect(w, r, away+r.URL.Path, http.StatusTemporaryRedirect)
		})
		env := run.Env{APIKey: "sk-verysecret"}
		for _, change := range []func(*plan.Plan){
			func(p *plan.Plan) { p.Backend = "auto" },
			func(*plan.Plan) {},
			func(p *plan.Plan) { p.Model = "m"; p.FlushCache = true },
			func(p *plan.Plan) { p.Model = "m"; p.Profile = true },
			func(p *plan.Plan) {
				p.Model = "m"
				p.MetricsURL = []string{strings.Replace(home, "://", "://me:sk-verysecret@", 1) + "/page"}
			},
			func(p *plan.Plan) { p.Backend, p.Model = "anthropic", "m" },
			func(p *plan.Plan) { p.Backend = "gemini" },
		} {
			p := planFor(strings.Replace(home, "://", "://me:sk-verysecret@", 1), change)
			p.Header = []string{"X-Team=sk-verysecret"}
			out := execute(t.Context(), p, env)
			for _, said := range append(out.said, fmt.Sprint(out.err)) {
				if strings.Contains(said, "verysecret") {
					t.Errorf("told: %s", said)
				}
			}
		}
		mu.Lock() // a server may still handle a canceled request
		defer mu.Unlock()
		for _, path := range []string{"/v1/models", "/metrics", "/page", "/v1/completions", "/reset_prefix_cache", "/start_profile"} {
			if !asked[path] {
				t.Errorf("%s was never asked for: %v", path, asked)
			}
		}
	})
}

// mute returns a server that accepts connections and sends an incomplete
// answer.
func mute(t *testing.T, says string) (url string, asked <-chan struct{}) {
	t.Helper()
	ln := listener(t, "127.0.0.1")
	t.Cleanup(func() { ln.Close() })
	got := make(chan struct{}, 100)
	go func() {
		for {
			nc, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer nc.Close()
				b := make([]byte, 1<<10)
				if _, err := nc.Read(b); err != nil {
					return
				}
				io.WriteString(nc, says)
				got <- struct{}{}
				_, _ = io.Copy(io.Discard, nc)
			}()
		}
	}()
	return ln.Addr().String(), got
}

// A server that stops responding before the run times out after one request
// timeout, also in a TLS handshake. A user interrupt ends the wait immediately.
func TestSilentServers(t *testing.T) {
	for name, says := range map[string]string{
		"silent":          "",
		"half a header":   "HTTP/1.1 200 OK\r\nContent-Ty",
		"half a body":     "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{",
		"other protocol":  "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n",
		"hints, no more":  "HTTP/1.1 103 Early Hints\r\n\r\n",
		"refusal, broken": "HTTP/1.1 503 Busy\r\nContent-Length: 100\r\n\r\n{",
	} {
		for _, scheme := range []string{"http", "https"} {
			for _, kind := range []string{"auto", "vllm"} {
				for _, stop := range []bool{false, true} {
					t.Run(fmt.Sprint(name, "/", scheme, "/", kind, "/stopped ", stop), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							addr, asked := mute(t, says)
							ctx, cancel := context.WithCancel(t.Context())
							defer cancel()
							p := planFor(scheme+"://"+addr, func(p *plan.Plan) { p.Backend, p.RequestTimeout = kind, 0.2 })
							if stop {
								p.RequestTimeout, p.ReadyCheck = 3600, 3600
								go func() { <-asked; cancel() }()
							}
							began := time.Now()
							if out := execute(ctx, p, run.Env{}); out.err == nil {
								t.Error("no error")
							}
							most := p.RequestTimeout.Duration() // one timeout, although several requests could be tried
							if stop {
								most = 0
							}
							if took := time.Since(began); took > most {
								t.Errorf("took %v, want at most %v", took, most)
							}
						})
					})
				}
			}
		}
	}
}

// An absurd context length is ignored.
func TestAbsurdContextLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, said := range []string{"-1", "-9223372036854775808", "9223372036854775807"} {
			url, _ := serve(t, func(h http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if r.URL.Path != "/v1/models" {
						h.ServeHTTP(w, r)
						return
					}
					fmt.Fprintf(w, `{"object":"list","data":[{"id":"tiny","max_model_len":%s}]}`, said)
				})
			})
			if s := do(t, planFor(url, nil)).summaries[0]; s.Completed != 6 {
				t.Errorf("max_model_len %s: %d completed, %+v", said, s.Completed, s.Failures)
			}
		}
	})
}

// The size of answers is limited too, for example an endless list of models.
func TestEndlessList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url := on(t, "127.0.0.1", func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"data":[`)
			for {
				if _, err := io.WriteString(w, strings.Repeat("{},", 1<<10)); err != nil {
					return
				}
			}
		})
		out := execute(t.Context(), planFor(url, func(p *plan.Plan) { p.RequestTimeout = plan.Seconds(time.Hour.Seconds()) }), run.Env{})
		if out.err == nil || !strings.Contains(out.err.Error(), "more than 2 MiB") {
			t.Errorf("%v, want an error that names the bound", out.err)
		}
	})
}
