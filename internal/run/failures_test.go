package run_test

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report"
	"github.com/tacho-bench/tacho/sim"
)

// The report counts every kind of failure, with the time and message of the
// first one.
func TestEveryFailureIsReported(t *testing.T) {
	stream := func(events string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, events)
		}
	}
	for name, tc := range map[string]struct {
		fault string           // fault of the simulator
		serve http.HandlerFunc // replaces the simulator
		large bool             // prompts larger than the socket buffers
		line  string           // line of the report
		words string           // in the next line
	}{
		"status":         {fault: "429", line: "status 429: +6, first at", words: "simulated fault"},
		"in-band":        {fault: "error:2", line: "in-band 200: +6, first at", words: "simulated fault"},
		"truncated":      {fault: "truncate:2", line: "truncated 200: +6, first at", words: "after 2 token events"},
		"malformed":      {fault: "malformed:2", line: "malformed 200: +6, first at", words: "choices"},
		"reset":          {fault: "reset:0", line: "reset: +6, first at", words: "."},
		"empty":          {serve: stream("data: {\"choices\":[{\"text\":\"\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"), line: "empty 200: +6, first at", words: "no token"},
		"stalled":        {fault: "stall:2", line: "timeout in phase stream 200: +6, first at", words: "deadline"},
		"no answer":      {serve: hang(true), line: "timeout in phase wait: +6, first at", words: "deadline"},
		"nobody reads":   {serve: hang(false), large: true, line: "timeout in phase send: +6, first at", words: "deadline"},
		"reset half-way": {fault: "reset:2", line: "reset 200: +6, first at", words: "."},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSim(t, sim.Options{})
				srv := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if tc.serve != nil && strings.HasSuffix(r.URL.Path, "completions") {
						tc.serve(w, r)
						return
					}
					s.ServeHTTP(w, r)
				}))
				defer srv.Close()
				out := do(t, planFor(srv.URL, func(p *plan.Plan) {
					p.RequestTimeout = 60 // other faults end earlier
					if strings.Contains(tc.line, "timeout") {
						p.RequestTimeout = 1
					}
					if tc.fault != "" {
						p.Header = []string{"X-Sim-Fault=" + tc.fault}
					}
					if tc.large {
						p.ExtraBody = plan.JSONObject{"padding": strings.Repeat("x", 16<<20)}
					}
				}))
				checkReported(t, out, tc.line, tc.words)
			})
		})
	}
}

// hang returns a handler that never answers, with or without reading the
// request.
func hang(read bool) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		if read {
			_, _ = io.Copy(io.Discard, r.Body)
		}
		time.Sleep(3 * time.Second) // longer than the request timeout
	}
}

// checkReported checks a line in the report of a run, and words in the next
// line.
func checkReported(t *testing.T, out result, line, words string) {
	t.Helper()
	text := must.Get(report.FormatNamed("text"))(t)
	var b strings.Builder
	must.Do(t, text.Render(&b, &report.Report{Runs: []outcome.Run{{Levels: out.levels[:1]}}}))
	if !regexp.MustCompile(`(?m)^` + line + ` [0-9.]+ s\n  .*` + words).MatchString(b.String()) {
		_, failures, _ := strings.Cut(b.String(), "Failures")
		t.Errorf("want %q and %q in: %s", line, words, failures)
	}
}

// A stopped server refuses connections. Requests in flight when a run is
// stopped are canceled and do not count as failures.
func TestGoneAndStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := must.Get(sim.New(sim.Options{Model: "tiny"}))(t)
		defer func() { _ = s.Close() }()
		srv := unstarted(t, nil)
		srv.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "completions") {
				_ = srv.Listener.Close()
				w.Header().Set("Connection", "close")
			}
			s.ServeHTTP(w, r)
		})
		srv.Start()
		defer srv.Close()
		out := do(t, planFor(srv.URL, func(p *plan.Plan) { p.MaxConcurrency = 1 }))
		checkReported(t, out, "refused: +[1-5], first at", "nothing is listening")

		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var arrived atomic.Int64
		hanging := listen(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "completions") {
				_, _ = io.Copy(io.Discard, r.Body)
				if arrived.Add(1) == 6 {
					cancel()
				}
				<-r.Context().Done()
				return
			}
			s.ServeHTTP(w, r)
		}))
		defer hanging.Close()
		stopped := execute(ctx, planFor(hanging.URL, func(p *plan.Plan) { p.Model = "tiny" }), run.Env{})
		if len(stopped.summaries) != 1 || stopped.summaries[0].Canceled != 6 {
			t.Fatalf("%v, %+v", stopped.err, stopped.summaries)
		}
		for _, r := range stopped.records {
			if r.Failure == nil || r.Failure.Cause != tacho.Canceled {
				t.Errorf("%+v", r.Failure)
			}
		}
	})
}
