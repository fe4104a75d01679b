package report_test

import (
	"bytes"
	"iter"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report"
)

func rendered(t *testing.T, s metric.Summary) string {
	t.Helper()
	var b bytes.Buffer
	for _, f := range report.Formats {
		if f.Name == "text" {
			must.Do(t, f.Render(&b, of(outcome.Level{Summary: s})))
		}
	}
	return b.String()
}

// The report shows server metrics next to client metrics, and each of several servers on
// its own line.
func TestServerSections(t *testing.T) {
	list := records(40)
	for i, r := range list {
		r.Endpoint, r.Finish, r.Attempts = []string{"http://127.0.0.1:1", "http://127.0.0.1:2"}[i%2], "length", 1+i%2
	}
	s := summarize(metric.DefaultConfig(), list)
	of := func(v float64) *float64 { return &v }
	s.Instruments = []metric.Instruments{{
		Target: "http://127.0.0.1:1/metrics", Scrapes: 12, Failed: 1, Problem: "status 500",
		Running: &metric.Gauge{}, Queued: &metric.Gauge{Mean: of(0.25), Max: of(2)}, KVShare: &metric.Gauge{Mean: of(0.125), Max: of(0.5)},
		Preemptions: of(3), More: map[string]float64{metric.PageKVFetch: 5, metric.PageEviction: 0.5}, PrefixHitShare: of(0.4), TTFTMillis: of(21.5), QueueMillis: of(1.25),
		PowerWatts: &metric.Gauge{Mean: of(400), Max: of(700)}, EnergyJoules: of(240),
	}}
	text := rendered(t, s)
	for _, want := range []string{
		"Server Metrics", "Requests queued mean/max:                0.25 / 2.00", "KV cache in use mean/max (%):            12.50 / 50.00",
		"Prefix cache hits (% of prompt tokens):  40.00", "Preemptions:                             3", "Peak Fetching KV Cache:                  5\n", "Mean Eviction (ms):                      0.5\n", "Mean TTFT server/client (ms):            21.50 / 27.90",
		"Mean server queue time (ms):             1.25", "GPU power mean/max (W):                  400.00 / 700.00",
		"Scrapes of the metrics endpoint:         12, 1 failed (status 500)", "Energy per output token (J):             2.00",
		"By Endpoint", "http://127.0.0.1:2\n", "Finish reasons (requests):               length (40)", "Requests resent after a failure:         20",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "Requests running") {
		t.Errorf("a line without a value in\n%s", text)
	}
	plain := rendered(t, summarize(metric.DefaultConfig(), records(40)))
	for _, unwanted := range []string{"Server Metrics", "By Endpoint", "Finish reasons"} {
		if strings.Contains(plain, unwanted) {
			t.Errorf("%q without server metrics", unwanted)
		}
	}
}

// The sections on speculative and diffusion decoding sum the counters of two servers.
// For a diffusion model the section on drafts is omitted.
func TestDraftingLayout(t *testing.T) {
	s := summarize(metric.DefaultConfig(), records(40))
	s.DurationS = 2
	half := metric.Instruments{Speculation: &metric.Speculation{Drafts: 4, DraftTokens: 8, Accepted: 5, AcceptedAt: []float64{3, 2}}}
	s.Instruments = []metric.Instruments{half, half}
	block, _, _ := strings.Cut(rendered(t, s), " Behind the Numbers ")
	const want = `---------------Speculative Decoding---------------
Acceptance rate (%):                     62.50     
Acceptance length:                       2.25      
Drafts:                                  8         
Draft tokens:                            16        
Accepted tokens:                         10        
Per-position acceptance (%):
  Position 0:                            75.00     
  Position 1:                            50.00     
==================================================
`
	if !strings.Contains(block, want) {
		t.Errorf("no\n%s in\n%s", want, block)
	}
	s.Instruments[0].Diffusion = &metric.Diffusion{Steps: 18, Positions: 576, Committed: 128}
	block, _, _ = strings.Cut(rendered(t, s), " Behind the Numbers ")
	const canvases = `----------------Diffusion Decoding----------------
Committed throughput (tok/s):            64.00     
Denoising steps per canvas:              3.50      
Committed per denoising step:            9.14      
Committed tokens:                        128       
Denoising steps:                         14        
Canvas positions evaluated:              576       
==================================================
`
	if !strings.Contains(block, canvases) || strings.Contains(block, "Speculative") {
		t.Errorf("no\n%s in\n%s", canvases, block)
	}
	var file bytes.Buffer
	must.Do(t, (report.NewVLLMResult(&outcome.Run{}, &outcome.Level{Summary: s}, false)).Write(&file))
	const keys = `"spec_decode_acceptance_rate": 62.5, "spec_decode_acceptance_length": 2.25, "spec_decode_num_drafts": 8, "spec_decode_draft_tokens": 16, ` +
		`"spec_decode_accepted_tokens": 10, "spec_decode_per_position_acceptance_rates": [0.75, 0.5], "diffusion_committed_throughput": 64.0, ` +
		`"diffusion_steps_per_canvas": 3.5, "diffusion_committed_per_step": 9.142857142857142, "diffusion_committed_tokens": 128, ` +
		`"diffusion_denoising_steps": 14, "diffusion_canvas_positions": 576, "mean_ttft_ms"`
	if !strings.Contains(file.String(), keys) {
		t.Errorf("no %s in %s", keys, file.String())
	}
}

// The classic block of a model that generates no tokens.
func TestPoolingLayout(t *testing.T) {
	list := records(40)
	for _, r := range list {
		r.Events, r.Output, r.Usage.Completion, r.Inputs = nil, 0, 0, 4
	}
	c := metric.DefaultConfig()
	c.Pools, c.Metrics = true, []string{"ttft", "e2el", "client_queue_time"}
	c.Goodput = []metric.SLO{{Metric: "e2el", LimitMillis: 1e6}}
	text := rendered(t, summarize(c, list))
	block, _, _ := strings.Cut(text, " Behind the Numbers ")
	for _, want := range []string{"Input throughput (inputs/s):             78.96", "Total token throughput (tok/s):", "Mean E2EL (ms):", "Total input tokens:"} {
		if !strings.Contains(block, want) {
			t.Errorf("no %q in\n%s", want, block)
		}
	}
	for _, unwanted := range []string{"generated", "Output token", "Peak", "TTFT", "TPOT", "ITL", "Queue", "goodput"} {
		if strings.Contains(block, unwanted) {
			t.Errorf("%q in\n%s", unwanted, block)
		}
	}
	sum := summarize(c, list)
	var file bytes.Buffer
	must.Do(t, report.NewVLLMResult(&outcome.Run{About: outcome.About{Backend: "vllm-pooling"}}, &outcome.Level{
		Summary: sum, Records: func() iter.Seq2[*tacho.Record, error] { return each(list[:1]) },
	}, true).Write(&file))
	_, keys, _ := strings.Cut(file.String(), `"max_concurrency": null, `)
	var got []string
	for _, m := range regexp.MustCompile(`"([a-z0-9_]+)": `).FindAllStringSubmatch(keys, -1) {
		got = append(got, m[1])
	}
	want := strings.Fields(`duration completed total_input_tokens total_input_sequences request_throughput input_sequence_throughput
		total_token_throughput input_lens latencies queue_times errors mean_e2el_ms median_e2el_ms std_e2el_ms p99_e2el_ms`)
	if diff := cmp.Diff(want, got); diff != "" || !strings.Contains(keys, `"total_input_sequences": 160,`) {
		t.Errorf("keys of the result file (-want +got):\n%s\nof %s", diff, keys)
	}
}

// The report shows the error bound of estimated percentiles.
func TestEstimatesAreShown(t *testing.T) {
	a := metric.Accumulator{Limit: 5}
	for _, r := range records(20) {
		must.Do(t, a.Add(r))
	}
	var b strings.Builder
	must.Do(t, text(&b, of(outcome.Level{Summary: a.Summary(metric.DefaultConfig())})))
	if want := "Percentile error bound (%):              0.0061 for ttft, "; !strings.Contains(b.String(), want) {
		t.Errorf("no %q in\n%s", want, b.String())
	}
}
