package publish

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metrics "go.opentelemetry.io/proto/otlp/metrics/v1"
	"google.golang.org/protobuf/proto"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/exposition"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
)

const ms = time.Millisecond

// answered returns a request with tokens at the given times after sending.
func answered(at ...time.Duration) *tacho.Record {
	r := &tacho.Record{Input: 7, Output: len(at)}
	r.Sent = time.Second
	for _, d := range at {
		r.Events = append(r.Events, tacho.Event{At: time.Second + d, Tokens: 1})
	}
	r.End = r.Events[len(r.Events)-1].At
	return r
}

// filled returns an Exporter with one finished and one running level.
func filled(t *testing.T) *Exporter {
	t.Helper()
	return filledFor(t, nil)
}

// filledFor returns the same Exporter for a collector.
func filledFor(t *testing.T, to *Collector) *Exporter {
	t.Helper()
	about := About{
		Version: "v1", Operation: "chat", Provider: "vllm", Model: "m", Server: "http://server:8000",
		Labels: []exposition.Label{{Name: "model", Value: "a\"b\\c\nd"}},
	}
	b := New(time.Unix(1000, 0), about, to)
	b.Name("r1")
	b.Begin(Level{Name: "rate 1", Now: func() Counts { return Counts{Started: 1, Finished: 1, OutputTokens: 3} }})
	must.Do(t, b.Add(answered(50*ms, 60*ms, 90*ms)))
	b.Begin(Level{Name: "rate 2", Now: func() Counts { return Counts{Started: 5, Finished: 2, OutputTokens: 40} }})
	for _, r := range []*tacho.Record{answered(20 * ms), {Timeline: tacho.Timeline{Sent: time.Second, End: 4 * time.Second}, Failure: &tacho.Failure{Cause: tacho.Timeout}}} {
		must.Do(t, b.Add(r))
	}
	return b
}

// get requests the page with an Accept header.
func get(t *testing.T, b *Exporter, path, accept string) (code int, kind, page string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	req.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	b.ServeHTTP(w, req)
	resp := w.Result()
	defer func() { _ = resp.Body.Close() }() // in memory
	body := must.Get(io.ReadAll(resp.Body))(t)
	return resp.StatusCode, resp.Header.Get("Content-Type"), string(body)
}

func TestPage(t *testing.T) {
	b := filled(t)
	_, got, page := get(t, b, "/metrics", "")
	if got != exposition.PrometheusType {
		t.Error(got)
	}
	for _, want := range []string{
		"# TYPE tacho_requests_total counter\n",
		`tacho_run{run="r1",model="a\"b\\c\nd"} 1.0` + "\n",
		`tacho_requests_started_total{run="r1",level="rate 1",number="1"} 1.0` + "\n",
		`tacho_requests_started_total{run="r1",level="rate 2",number="2"} 5.0` + "\n",
		`tacho_requests_in_flight{run="r1",level="rate 1",number="1"} 0.0` + "\n",
		`tacho_requests_in_flight{run="r1",level="rate 2",number="2"} 3.0` + "\n",
		`tacho_requests_total{run="r1",level="rate 2",number="2",outcome="ok"} 1.0` + "\n",
		`tacho_requests_total{run="r1",level="rate 2",number="2",outcome="timeout"} 1.0` + "\n",
		`tacho_output_tokens_total{run="r1",level="rate 2",number="2"} 40.0` + "\n",
		`tacho_input_tokens_total{run="r1",level="rate 1",number="1"} 7.0` + "\n",
		`tacho_ttft_seconds_bucket{run="r1",level="rate 1",number="1",le="0.04"} 0.0` + "\n",
		`tacho_ttft_seconds_bucket{run="r1",level="rate 1",number="1",le="0.05"} 1.0` + "\n",
		`tacho_ttft_seconds_bucket{run="r1",level="rate 1",number="1",le="+Inf"} 1.0` + "\n",
		`tacho_itl_seconds_count{run="r1",level="rate 1",number="1"} 2.0` + "\n",
		`tacho_itl_seconds_sum{run="r1",level="rate 1",number="1"} 0.04` + "\n",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("no %s in\n%s", want, page)
		}
	}
	_, got, page = get(t, b, "/metrics", "application/openmetrics-text; version=1.0.0,text/plain;q=0.5")
	if got != exposition.OpenMetricsType {
		t.Error(got)
	}
	if !strings.Contains(page, "# TYPE tacho_requests counter\n") || !strings.HasSuffix(page, "# EOF\n") {
		t.Error(page)
	}
	if code, _, _ := get(t, b, "/", ""); code != http.StatusNotFound {
		t.Error(code)
	}
}

// A finished level keeps its counters and does not call now again.
func TestEndedLevel(t *testing.T) {
	b := filled(t)
	b.End()
	b.levels[1].Now = nil
	if _, _, page := get(t, b, "/metrics", ""); !strings.Contains(page, `tacho_requests_started_total{run="r1",level="rate 2",number="2"} 5.0`) {
		t.Error(page)
	}
}

// scrape requests the page and reports whether it is available.
func scrape(t *testing.T, client *http.Client, at string) bool {
	t.Helper()
	resp, err := client.Get(at)
	if err != nil {
		return false
	}
	body, err := io.ReadAll(resp.Body)
	if bad := resp.Body.Close(); err != nil || bad != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), "tacho_run") {
		t.Error(resp.Status, err, bad)
	}
	return true
}

// The page stays available after the run until the next scrape, for at most LastScrape. If the page was never
// scraped or the run was stopped, it closes at once.
func TestServe(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after bool // scrape during the run, and 4 s after its end
		stopped       bool
		want          time.Duration // time from the end of the run to the end of the page
	}{
		{"never scraped", false, false, false, 0},
		{"scraped once more", true, true, false, 4 * time.Second},
		{"the scraper is gone", true, false, false, LastScrape},
		{"the run was stopped", true, false, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := memnet.Listen()
				at, stop := filled(t).Serve(l)
				client := &http.Client{Transport: &http.Transport{DialContext: l.Dial, DisableKeepAlives: true}}
				if c.before && !scrape(t, client, at) {
					t.Error("the page is missing during the run")
				}
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if c.stopped {
					cancel()
				}
				if c.after {
					go func() {
						time.Sleep(4 * time.Second)
						if !scrape(t, client, at) {
							t.Error("the page is missing after the run")
						}
					}()
				}
				end := time.Now()
				stop(ctx)
				if took := time.Since(end).Truncate(time.Second); took != c.want {
					t.Errorf("the page closed after %v, want %v", took, c.want)
				}
				if scrape(t, client, at) {
					t.Error("the page answers after stop")
				}
			})
		})
	}
}

// roundTrip is a collector in memory.
type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var bodies []string
		fail := false
		collector := roundTrip(func(r *http.Request) (*http.Response, error) {
			mu.Lock()
			defer mu.Unlock()
			body, err := io.ReadAll(r.Body)
			if fail {
				return nil, errors.New("gone")
			}
			if r.Header.Get("Api-Key") != "k" || r.URL.Path != "/v1/metrics" {
				t.Error(r.Header, r.URL)
			}
			bodies = append(bodies, string(body))
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("{}"))}, err
		})
		var troubles []error
		settings := Settings{Endpoint: "http://127.0.0.1:4318", Headers: []string{"api-key=k"}}
		to := must.Get(settings.Collector())(t)
		to.Now = time.Now
		to.Connect(&http.Client{Transport: collector})
		stop := filledFor(t, to).Push(t.Context(), func(err error) { troubles = append(troubles, err) })
		time.Sleep(25 * time.Second)
		mu.Lock()
		fail = true
		mu.Unlock()
		time.Sleep(30 * time.Second) // three more failures, one report
		mu.Lock()
		fail = false
		mu.Unlock()
		stop()
		if len(bodies) != 3 || len(troubles) != 1 {
			t.Errorf("%d bodies, troubles %v", len(bodies), troubles)
		}
		var sent metrics.MetricsData
		must.Do(t, proto.Unmarshal([]byte(bodies[0]), &sent))
		about := map[string]string{}
		for _, a := range sent.ResourceMetrics[0].Resource.Attributes {
			about[a.Key] = a.Value.GetStringValue()
		}
		if about["tacho.run.name"] != "r1" || about["service.instance.id"] == "" {
			t.Error("a collector cannot tell two runs apart")
		}
		got := map[string]uint64{}
		for _, m := range sent.ResourceMetrics[0].ScopeMetrics[0].Metrics {
			for _, p := range m.GetHistogram().GetDataPoints() {
				got[m.Name] += p.Count
				if len(p.BucketCounts) != len(p.ExplicitBounds)+1 {
					t.Errorf("%s has %d bounds and %d counts", m.Name, len(p.ExplicitBounds), len(p.BucketCounts))
				}
			}
		}
		if got["tacho_ttft_seconds"] != 2 || got["gen_ai.client.operation.duration"] != 3 {
			t.Error(got)
		}
	})
}

func TestCollectorURL(t *testing.T) {
	for given, want := range map[string]string{
		"http://c:4318": "http://c:4318/v1/metrics", "https://c/": "https://c/v1/metrics", "http://c/otlp/v1/metrics": "http://c/otlp/v1/metrics",
		"http://c/own": "http://c/own", "c:4318": "", "": "", "ftp://c": "",
	} {
		if got, err := collectorURL(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", given, got, err)
		}
	}
}
