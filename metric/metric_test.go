package metric_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

const ms = time.Millisecond

// success returns a request with every timestamp: due at 100 ms, a slot 10 ms later, sent 5 ms after
// that, tokens at the given offsets from sent, and the end 2 ms after the last token.
func success(output int, tokensAt ...time.Duration) *tacho.Record {
	r := &tacho.Record{Timeline: tacho.NewTimeline(100 * ms), Output: output, OutputFrom: tacho.FromUsage, Input: 10}
	r.Slot, r.Start, r.Conn, r.Sent, r.Wrote = 110*ms, 111*ms, 113*ms, 115*ms, 116*ms
	r.Head = r.Sent + 20*ms
	for _, at := range tokensAt {
		r.Events = append(r.Events, tacho.Event{At: r.Sent + at, ReadLag: 3000, Tokens: 1})
	}
	r.End = r.Sent + 2*ms
	if len(tokensAt) > 0 {
		r.End += tokensAt[len(tokensAt)-1]
	}
	r.Clock, r.Conns = tacho.KernelClock, 1
	return r
}

func failure(cause tacho.Cause, at time.Duration, message string) *tacho.Record {
	r := success(0)
	r.Events, r.End = nil, at
	r.Failure = &tacho.Failure{Cause: cause, Message: message}
	return r
}

func thinking() *tacho.Record {
	r := success(3, 10*ms, 25*ms, 40*ms)
	r.Events[0].Kind = tacho.Reasoning
	r.Server = &tacho.ServerTimes{Queue: 1500 * time.Microsecond, TTFT: 9 * ms, Decode: 30 * ms}
	return r
}

func tells(times tacho.ServerTimes) *tacho.Record {
	r := success(1, 10*ms)
	r.Server = &times
	return r
}

// cached returns a request with a prompt of 40 tokens, by the server's count, and the given number of
// them from the cache.
func cached(tokens int, tells bool) *tacho.Record {
	r := success(1, 10*ms)
	r.Usage = &tacho.Usage{Prompt: 40, Cached: tokens, TellsCached: tells}
	return r
}

func merged(tokens ...int16) *tacho.Record {
	r := success(9, 30*ms, 50*ms, 80*ms)
	for i := range r.Events {
		r.Events[i].Tokens = tokens[i]
	}
	return r
}

func TestFormulas(t *testing.T) {
	five := success(5, 30*ms, 40*ms, 60*ms, 90*ms)
	worked := map[string]bool{}
	for _, c := range []struct {
		name   string
		record *tacho.Record
		want   map[string][]float64
	}{
		{"a stream of four events and five tokens", five, map[string][]float64{
			"ttft": {30}, "tpot": {15}, "itl": {10, 20, 30}, "e2el": {90},
			"ttft_due": {45}, "e2el_due": {105},
			"lag": {15}, "queue": {10}, "wait": {15}, "send_lag": {5}, "connect": {2}, "write": {1},
			"read_lag": {0.003, 0.003, 0.003, 0.003}, "first_byte": {20}, "request_time": {92},
			"stream_rate": {4 / 0.06}, "input_tokens": {10}, "output_tokens": {5},
			"ttst": {10}, "longest_gap": {30}, "stalls": {0},
			"user_speed": {5 / 0.09}, "normalized_latency": {18}, "prefill_rate": {1e3 * 10 / 30.0}, "cached_share": nil,
		}},
		{"one token has no TPOT, no gap and no rate", success(1, 30*ms), map[string][]float64{
			"ttft": {30}, "tpot": nil, "itl": nil, "e2el": {30}, "stream_rate": nil, "output_tokens": {1},
			"ttst": nil, "longest_gap": nil, "stalls": nil, "user_speed": {1 / 0.03}, "normalized_latency": {30},
		}},
		{"a gap of a second is no stall, and a longer one is", success(4, 10*ms, 1010*ms, 2011*ms, 4011*ms), map[string][]float64{
			"stalls": {2}, "longest_gap": {2000}, "ttst": {1000},
		}},
		{"a prompt of which a quarter was cached", cached(10, true), map[string][]float64{"cached_share": {0.25}, "prefill_rate": {4000}}},
		{"a prompt of which nothing was cached", cached(0, true), map[string][]float64{"cached_share": {0}}},
		{"a server that tells nothing of its cache", cached(0, false), map[string][]float64{"cached_share": nil}},
		{"thoughts before the answer, and a server that tells its times", thinking(), map[string][]float64{
			"ttft": {10}, "ttft_content": {25}, "e2el": {40},
			"server_ttft": {9}, "server_queue": {1.5}, "server_prefill": nil, "server_decode": {30}, "server_e2el": nil,
		}},
		{"a server that tells the rest of its times", tells(tacho.ServerTimes{Prefill: 7 * ms, Total: 45 * ms}), map[string][]float64{
			"server_ttft": nil, "server_prefill": {7}, "server_service": nil, "server_e2el": {45},
		}},
		{"the queue and the rest", tells(tacho.ServerTimes{Queue: 5 * ms, Total: 45 * ms}), map[string][]float64{"server_queue": {5}, "server_service": {40}}},
		{"prefill and decode", tells(tacho.ServerTimes{Queue: 5 * ms, Prefill: 7 * ms, Decode: 30 * ms, Total: 45 * ms}), map[string][]float64{"server_service": {37}}},
		{"an answer without tokens", success(0), map[string][]float64{
			"ttft": nil, "ttft_content": nil, "tpot": nil, "e2el": {2}, "e2el_due": {17}, "request_time": {2},
			"user_speed": nil, "normalized_latency": nil, "prefill_rate": nil,
		}},
		{"all tokens in one event", success(8, 30*ms), map[string][]float64{
			"ttft": {30}, "tpot": {0}, "itl": nil, "stream_rate": nil,
		}},
		{"several tokens an event, by the wire", merged(2, 2, 5), map[string][]float64{
			"tokens_per_event": {3}, "itl": {20, 30}, "token_gap": {10, 6},
		}},
		{"several tokens an event, by the server's count", merged(0, 0, 0), map[string][]float64{
			"tokens_per_event": {3}, "itl": {20, 30}, "token_gap": {20.0 / 3, 10},
		}},
		{"more events than tokens", success(2, 10*ms, 20*ms, 50*ms), map[string][]float64{
			"tokens_per_event": {2.0 / 3}, "itl": {10, 30}, "token_gap": {10, 30},
		}},
		{"a failure counts for the client only", failure(tacho.Reset, 200*ms, "x"), map[string][]float64{
			"ttft": nil, "e2el": nil, "request_time": nil, "output_tokens": nil, "lag": {15}, "connect": {2},
			"user_speed": nil, "normalized_latency": nil, "prefill_rate": nil, "stalls": nil,
		}},
		{"nothing happened", &tacho.Record{
			Timeline: tacho.NewTimeline(0), Failure: &tacho.Failure{Cause: tacho.Unsent},
		}, map[string][]float64{"lag": nil, "queue": nil, "send_lag": nil, "connect": nil, "write": nil, "read_lag": nil}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, want := range c.want {
				worked[name] = worked[name] || want != nil
				var got []float64
				metric.Named(name).Of(c.record, func(v float64) { got = append(got, v) })
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("%s: -want +got\n%s", name, diff)
				}
			}
		})
	}
	for _, m := range metric.All {
		if !worked[m.Name] {
			t.Errorf("%s has no value worked out here", m.Name)
		}
	}
	t.Run("partial failure", func(t *testing.T) {
		five.Failure = &tacho.Failure{Cause: tacho.Truncated}
		for _, m := range metric.Classic {
			m.Of(five, func(v float64) { t.Errorf("%s of a failed request: %v", m.Name, v) })
		}
	})
	t.Run("the server's prompt count comes first", func(t *testing.T) {
		r := success(1, 1*ms)
		r.Usage = &tacho.Usage{Prompt: 12}
		if got := metric.InputTokens(r); got != 12 {
			t.Errorf("got %d, want 12", got)
		}
	})
	t.Run("a moment that did not come", func(t *testing.T) {
		r := success(1, 1*ms)
		r.Slot = tacho.Never
		metric.SendLag.Of(r, func(v float64) { t.Errorf("send lag %v from a slot it never got", v) })
		metric.Queue.Of(r, func(v float64) { t.Errorf("queue %v for a slot it never got", v) })
	})
	t.Run("a read clock knows no read lag", func(t *testing.T) {
		r := success(1, 1*ms)
		r.Clock = tacho.ReadClock
		metric.ReadLag.Of(r, func(v float64) { t.Errorf("read lag %v", v) })
	})
}

func TestMetricsAreDocumented(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range metric.All {
		if m.Name == "" || m.Title == "" || m.Unit == "" || m.Doc == "" || seen[m.Name] {
			t.Errorf("metric %+v: a name of its own, a title, a unit and a doc are needed", m)
		}
		seen[m.Name] = true
		if metric.Named(m.Name) != m {
			t.Errorf("Named(%q) is another", m.Name)
		}
	}
	if metric.Named("no such") != nil {
		t.Error("an unknown name has a metric")
	}
}

func TestConfigValidate(t *testing.T) {
	good := metric.DefaultConfig()
	good.Goodput = []metric.SLO{{Metric: "ttft", LimitMillis: 100}, {Metric: "itl", LimitMillis: 0}}
	if err := good.Validate(); err != nil {
		t.Errorf("good config: %v", err)
	}
	for want, c := range map[string]metric.Config{
		"percentile 101":                  {Percentiles: []float64{101}},
		"percentile -1":                   {Percentiles: []float64{-1}},
		`unknown percentile metric "e2e"`: {Metrics: []string{"e2e"}},
		`unknown goodput metric "output_tokens"`: {Goodput: []metric.SLO{
			{Metric: "output_tokens", LimitMillis: 1},
		}},
		"goodput ttft: limit -1": {Goodput: []metric.SLO{{Metric: "ttft", LimitMillis: -1}}},
		"request rate -2":        {RequestRate: -2},
		"stall threshold -1":     {StallMillis: -1},
		"GPU price -3":           {GPUPrice: -3},
	} {
		if err := c.Validate(); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want an error that begins %q", err, want)
		}
	}
}
