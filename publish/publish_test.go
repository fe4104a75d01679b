package publish

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tacho"
	"tacho/internal/exposition"
	"tacho/internal/memnet"
)

const ms = time.Millisecond

// answered is a request that got its tokens at these times after it was sent.
func answered(at ...time.Duration) *tacho.Record {
	r := &tacho.Record{Input: 7, Output: len(at)}
	r.Sent = time.Second
	for _, d := range at {
		r.Events = append(r.Events, tacho.Event{At: time.Second + d, Tokens: 1})
	}
	r.End = r.Events[len(r.Events)-1].At
	return r
}

// filled is a board with a level that is over and one that runs.
func filled(t *testing.T) *Board {
	t.Helper()
	b := New(time.Unix(1000, 0), exposition.Label{Name: "model", Value: "a\"b\\c\nd"})
	b.Name("r1")
	b.Begin("rate 1", func() Counts { return Counts{Started: 1, Finished: 1, OutputTokens: 3} })
	if err := b.Add(answered(50*ms, 60*ms, 90*ms)); err != nil {
		t.Fatal(err)
	}
	b.Begin("rate 2", func() Counts { return Counts{Started: 5, Finished: 2, OutputTokens: 40} })
	for _, r := range []*tacho.Record{answered(20 * ms), {Failure: &tacho.Failure{Cause: "timeout"}}} {
		if err := b.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

// get is the page as one asks for it.
func get(t *testing.T, b *Board, path, accept string) (code int, kind, page string) {
	t.Helper()
	req := httptest.NewRequest(http.MethodGet, path, http.NoBody)
	req.Header.Set("Accept", accept)
	w := httptest.NewRecorder()
	b.ServeHTTP(w, req)
	resp := w.Result()
	defer func() { _ = resp.Body.Close() }() // it is in memory
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
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

// A level that is over keeps its counts, and its source is not asked again.
func TestEndedLevel(t *testing.T) {
	b := filled(t)
	b.End()
	b.levels[1].now = nil
	if _, _, page := get(t, b, "/metrics", ""); !strings.Contains(page, `tacho_requests_started_total{run="r1",level="rate 2",number="2"} 5.0`) {
		t.Error(page)
	}
}

// scrape reads the page, and says whether there is one.
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

// The page stays up after the run until it is scraped once more, for LastScrape at
// most, and not at all if it was never scraped or the run was stopped.
func TestServe(t *testing.T) {
	for _, c := range []struct {
		name          string
		before, after bool // scrapes: during the run, and 4 s after its end
		stopped       bool
		want          time.Duration // from the end of the run to the end of the page
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
					t.Error("there is no page during the run")
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
							t.Error("there is no page after the run")
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

// Ten buckets a decade, each at most 30 % wider than the one below.
func TestBounds(t *testing.T) {
	if n := len(bounds); n != 70 || bounds[0] != 1e-4 || bounds[10] != 1e-3 || bounds[n-1] != 800 {
		t.Errorf("%d bounds: %v", n, bounds)
	}
	for i := 1; i < len(bounds); i++ {
		if ratio := bounds[i] / bounds[i-1]; ratio < 1.2 || ratio > 1.3 {
			t.Errorf("%g follows %g", bounds[i], bounds[i-1])
		}
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
		address, err := CollectorURL("http://127.0.0.1:4318")
		if err != nil {
			t.Fatal(err)
		}
		stop := filled(t).Push(t.Context(), Collector{
			URL: address, Headers: http.Header{"Api-Key": {"k"}}, Every: 10 * time.Second, Now: time.Now, Client: &http.Client{Transport: collector},
			Trouble: func(err error) { troubles = append(troubles, err) },
		})
		time.Sleep(25 * time.Second)
		mu.Lock()
		fail = true
		mu.Unlock()
		time.Sleep(30 * time.Second) // three more fail, and are told once
		mu.Lock()
		fail = false
		mu.Unlock()
		stop()
		if len(bodies) != 3 || len(troubles) != 1 {
			t.Errorf("%d bodies, troubles %v", len(bodies), troubles)
		}
		if !strings.Contains(bodies[0], `"service.instance.id","value":{"stringValue":"r1"}`) {
			t.Error("a collector cannot tell two runs apart")
		}
		if !json.Valid([]byte(bodies[0])) || !strings.Contains(bodies[0], `"explicitBounds"`) {
			t.Error(bodies[0])
		}
	})
}

func TestCollectorURL(t *testing.T) {
	for given, want := range map[string]string{
		"http://c:4318": "http://c:4318/v1/metrics", "https://c/": "https://c/v1/metrics", "http://c/otlp/v1/metrics": "http://c/otlp/v1/metrics",
		"c:4318": "", "": "", "ftp://c": "",
	} {
		if got, err := CollectorURL(given); got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q, %v", given, got, err)
		}
	}
}
