package metric_test

import (
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// waited returns a request that waits 40 ms for a slot, spends 5 ms in the client and 2 ms without a
// connection, needs first until its first token and stream for nine more. server holds the times
// reported by the server.
func waited(first, stream time.Duration, server *tacho.ServerTimes) *tacho.Record {
	r := success(10)
	r.Slot = r.Due + 40*ms
	r.Start = r.Slot + 2*ms
	r.Conn = r.Start + 2*ms
	r.Sent = r.Conn + 3*ms
	for i := range 10 {
		r.Events = append(r.Events, tacho.Event{At: r.Sent + first + stream*time.Duration(i)/9, Tokens: 1})
	}
	r.End, r.Server = r.Last(), server
	return r
}

// partsOf returns the parts of a split that are not zero.
func partsOf(t *metric.TimeSplit) map[string]float64 {
	parts := map[string]float64{}
	for _, p := range t.Parts {
		if p.Millis != 0 {
			parts[p.Key()] = p.Millis
		}
	}
	return parts
}

// Every part matches its definition, the parts add up, and components that cannot be separated are one
// part. A request spends 47 ms in the client, 100 ms until its first token and 900 ms until its last.
func TestWhereTheTimeGoes(t *testing.T) {
	ours := map[string]float64{"client_queue": 40, "client": 5, "connect": 2}
	page := metric.Instruments{
		QueueMillis: new(10.0), PrefillMillis: new(70.0), DecodeMillis: new(600.0), TTFTMillis: new(90.0), E2ELMillis: new(980.0), Timed: new(4.0),
	}
	without := func(change func(*metric.Instruments)) []metric.Instruments {
		in := page
		change(&in)
		return []metric.Instruments{in}
	}
	for _, c := range []struct {
		name       string
		server     *tacho.ServerTimes
		page       []metric.Instruments
		trip       *float64
		want       map[string]float64
		bottleneck string
	}{
		{"marks alone", nil, nil, nil, map[string]float64{"server_queue+prefill+front_end+network": 100, "decode+front_end+network": 900}, "decode+front_end+network"},
		{"marks and a round trip", nil, nil, new(30.0), map[string]float64{
			"server_queue+prefill+front_end+network": 70, "network": 30, "decode+front_end+network": 900,
		}, "decode+front_end+network"},
		{"all of vLLM's page", nil, []metric.Instruments{page}, new(3.0), map[string]float64{
			"server_queue": 10, "prefill": 70, "decode": 600, "front_end": 300, "front_end+network": 17, "network": 3,
		}, "front_end"},
		{"a page without prefill", nil, without(func(in *metric.Instruments) { in.PrefillMillis = nil }), nil, map[string]float64{
			"server_queue": 10, "prefill+front_end": 80, "decode": 600, "front_end": 290, "front_end+network": 20,
		}, "front_end"},
		{"a page without prefill and decode", nil, without(func(in *metric.Instruments) { in.PrefillMillis, in.DecodeMillis = nil, nil }), nil, map[string]float64{
			"server_queue": 10, "prefill+front_end": 80, "decode+front_end": 890, "front_end+network": 20,
		}, "decode+front_end"},
		{"TGI's page", nil, without(func(in *metric.Instruments) {
			in.PrefillMillis, in.DecodeMillis, in.TTFTMillis, in.InferenceMillis = nil, nil, nil, new(960.0)
		}), nil, map[string]float64{"server_queue": 10, "prefill+decode": 960, "front_end": 10, "front_end+network": 20}, "prefill+decode"},
		{"two pages, by their requests", nil, []metric.Instruments{
			{QueueMillis: new(20.0), E2ELMillis: new(980.0), Timed: new(1.0)}, {QueueMillis: new(60.0), E2ELMillis: new(940.0), Timed: new(3.0)}, {},
		}, nil, map[string]float64{"server_queue": 50, "prefill+decode+front_end": 900, "front_end+network": 50}, "prefill+decode+front_end"},
		{"llama.cpp's answers", &tacho.ServerTimes{Prefill: 80 * ms, Decode: 890 * ms}, nil, nil, map[string]float64{
			"prefill": 80, "server_queue+front_end+network": 20, "decode": 890, "front_end+network": 10,
		}, "decode"},
		{"Ollama's answers", &tacho.ServerTimes{Queue: 400 * ms, Prefill: 80 * ms, Decode: 500 * ms, Total: 990 * ms}, nil, nil, map[string]float64{
			"server_queue": 400, "prefill": 80, "decode": 500, "front_end": 10, "front_end+network": 10,
		}, "server_queue"},
		{"SGLang's answers", &tacho.ServerTimes{Total: 960 * ms}, nil, nil, map[string]float64{
			"server_queue+prefill+decode+front_end": 960, "front_end+network": 40,
		}, "server_queue+prefill+decode+front_end"},
		{"clocks that differ by a little", &tacho.ServerTimes{Prefill: 102 * ms, Decode: 890 * ms}, nil, nil, map[string]float64{
			"prefill": 102, "decode": 888, "front_end+network": 10,
		}, "decode"},
		{"times that cannot be of these requests", &tacho.ServerTimes{Prefill: 500 * ms, Decode: 890 * ms}, nil, nil, map[string]float64{
			"server_queue+prefill+front_end+network": 100, "decode+front_end+network": 900,
		}, "decode+front_end+network"},
		{"a page that counts others' requests", nil, without(func(in *metric.Instruments) { in.Timed = new(9.0) }), nil, map[string]float64{
			"server_queue+prefill+front_end+network": 100, "decode+front_end+network": 900,
		}, "decode+front_end+network"},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := metric.Config{MaxConcurrency: 1, RoundTripMillis: c.trip}
			r := waited(100*ms, 900*ms, c.server)
			s := sumUp(config, r, r, r, r)
			s.Conclude(c.page, nil)
			maps.Copy(c.want, ours)
			near := cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })
			if diff := cmp.Diff(c.want, partsOf(&s.Where.All), near); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if s.Where.Bottleneck != c.bottleneck || s.Where.Sentence == "" {
				t.Errorf("bottleneck %q (%s), want %q", s.Where.Bottleneck, s.Where.Sentence, c.bottleneck)
			}
			sum, shares := 0.0, 0.0
			for _, p := range s.Where.All.Parts {
				sum, shares = sum+p.Millis, shares+p.Share
				if p.Millis < 0 || p.Source == "" {
					t.Errorf("%s: %+v", p.Key(), p)
				}
			}
			if !near2(sum, 1047) || !near2(s.Where.All.Millis, 1047) || !near2(shares, 1) || !near2(s.Classic(metric.E2ELDue).Mean, 1047) {
				t.Errorf("parts are %v together and %v of the whole, which is %v", sum, shares, s.Where.All.Millis)
			}
			left := strings.Contains(c.name, "cannot") || strings.Contains(c.name, "others'")
			if (s.Where.Note != "") != left {
				t.Errorf("note %q", s.Where.Note)
			}
		})
	}
}

func near2(a, b float64) bool { return a-b < 1e-6 && b-a < 1e-6 }

// The sentence names the bottleneck and claims no more than is known.
func TestBottleneckSentences(t *testing.T) {
	slow := waited(1053*ms, 900*ms, &tacho.ServerTimes{Queue: 1000 * ms, Decode: 900 * ms, Total: 1900 * ms})
	alone := sumUp(metric.Config{}, slow)
	if both := sumUp(metric.Config{}, slow, slow); alone.Where.Sentence != "" || !strings.HasPrefix(both.Where.Sentence, "The server's queue is the limit") {
		t.Errorf("one slow answer: %q, two: %q", alone.Where.Sentence, both.Where.Sentence)
	}
	sumUp := func(c metric.Config, r *tacho.Record) metric.Summary { return sumUp(c, r, r) }
	for _, c := range []struct {
		name string
		s    metric.Summary
		page *metric.Instruments
		want string
	}{
		{
			"a client that is full", sumUp(metric.Config{MaxConcurrency: 8}, waited(10*ms, 30*ms, nil)), nil,
			"The client is the limit: requests wait 47 ms (54 %) for one of 8 slots (--max-concurrency) and take 40 ms after that.",
		},
		{
			"a client that is slow", sumUp(metric.Config{}, waited(10*ms, 30*ms, nil)), nil,
			"The client is the limit: requests spend 47 ms (54 %) in it between due time and write.",
		},
		{
			"a network that is far", sumUp(metric.Config{RoundTripMillis: new(1000.0)}, waited(1053*ms, 900*ms, nil)), nil,
			"The network is the limit: the round trip to the server takes 1 s (50 %).",
		},
		{
			"something on the way", sumUp(metric.Config{}, waited(1053*ms, 900*ms, &tacho.ServerTimes{TTFT: 53 * ms, Prefill: 53 * ms, Decode: 900 * ms})), nil,
			"The path to the engine and back is the limit: requests spend 1 s (50 %) in the network, a proxy or the server's front end, which cannot be separated.",
		},
		{
			"a front end", sumUp(metric.Config{}, waited(153*ms, 1800*ms, nil)),
			&metric.Instruments{QueueMillis: new(0.0), PrefillMillis: new(153.0), DecodeMillis: new(900.0), E2ELMillis: new(1953.0), Timed: new(1.0)},
			"The server's front end (HTTP and tokenizer) is the limit, not its engine: requests spend 900 ms (45 %) of 2 s in it. The engine makes a token every 100 ms, but tokens arrive every 200 ms.",
		},
		{
			"a queue", sumUp(metric.Config{}, waited(1053*ms, 900*ms, nil)),
			&metric.Instruments{QueueMillis: new(1000.0), PrefillMillis: new(53.0), DecodeMillis: new(900.0), E2ELMillis: new(1953.0), Timed: new(1.0)},
			"The server's queue is the limit: requests wait 1 s (50 %) before the engine starts them. After that, most time is decode (900 ms).",
		},
		{
			"prefill", sumUp(metric.Config{}, waited(1053*ms, 900*ms, &tacho.ServerTimes{Prefill: 1000 * ms, Decode: 900 * ms})), nil,
			"Prefill is the largest part: 1 s (50 %).",
		},
		{
			"decode", sumUp(metric.Config{}, waited(53*ms, 900*ms, &tacho.ServerTimes{Prefill: 50 * ms, Decode: 900 * ms})), nil,
			"Decode is the largest part: 900 ms (90 %), 100 ms per token.",
		},
		{
			"a server that says nothing", sumUp(metric.Config{}, waited(53*ms, 900*ms, nil)), nil,
			"The largest part, 900 ms (90 %), is decode + server's front end + network, which the server does not separate.",
		},
	} {
		if c.page != nil {
			c.s.Conclude([]metric.Instruments{*c.page}, nil)
		}
		if c.s.Where.Sentence != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, c.s.Where.Sentence, c.want)
		}
	}
	if s := sumUp(metric.Config{}, failure(tacho.Reset, 200*ms, "x")); s.Where != nil {
		t.Errorf("where the time of no success went: %+v", s.Where)
	}
}

// The tail sentence names the component in which the slowest requests spend more time than the others.
func TestSlowestRequests(t *testing.T) {
	var list []*tacho.Record
	for i := range 300 {
		queue, decode := 20*ms, 500*ms
		switch {
		case i >= 297: // the slowest 1 %
			queue, decode = 620*ms, 520*ms
		case i >= 290:
			decode = 700 * ms
		}
		list = append(list, waited(queue+50*ms, decode, &tacho.ServerTimes{Queue: queue, Prefill: 50 * ms, Decode: decode, Total: queue + 50*ms + decode}))
	}
	s := sumUp(metric.Config{MaxConcurrency: 1}, list...)
	tail := s.Where.Slowest
	if tail == nil || tail.Requests != 3 || !near2(tail.Millis, 47+620+50+520) {
		t.Fatalf("slowest: %+v", tail)
	}
	mean := 47 + 20 + 50 + 500 + (7*200+3*620.0)/300
	want := "The slowest 1 % take 609 ms longer than the mean, mostly in server queue (+594 ms)."
	if s.Where.Tail != want || !near2(s.Where.All.Millis, mean) {
		t.Errorf("%s, want %s; mean %v, want %v", s.Where.Tail, want, s.Where.All.Millis, mean)
	}
	if few := sumUp(metric.Config{}, list[:99]...); few.Where.Slowest != nil {
		t.Error("1 % of 99 requests")
	}
}

// 256 requests in one burst to vLLM 0.24 on an H200, as measured: the values of its metrics page, and
// the mean request at the client.
func TestFrontEndOfAnH200(t *testing.T) {
	r := success(150)
	r.Slot, r.Start, r.Conn, r.Sent = r.Due, r.Due, r.Due, r.Due
	for i := range 150 {
		r.Events = append(r.Events, tacho.Event{At: r.Sent + time.Duration(506_400+3_251_700*i/149)*time.Microsecond, Tokens: 1})
	}
	s := sumUp(metric.Config{}, r, r)
	s.Conclude([]metric.Instruments{{QueueMillis: new(24.75), DecodeMillis: new(1700.28), TTFTMillis: new(415.05), E2ELMillis: new(3667.4), Timed: new(1.0)}}, nil)
	want := "The engine makes a token every 11.4 ms, but tokens arrive every 21.8 ms."
	if w := s.Where; w.Bottleneck != "front_end" || !strings.HasSuffix(w.Sentence, want) {
		t.Errorf("%s: %s, want %s", w.Bottleneck, w.Sentence, want)
	}
}
