package page_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/report/page"
)

const ms = time.Millisecond

// hostile is a malicious name or message from a server or a user.
const hostile = `</script><script>window.hacked=1</script><img src=x onerror="window.hacked=2">'"&lt; ` + "\u202e =cmd|' /C calc'!A0"

// requests returns n requests of a level, sent at a rate. One in failing requests fails.
func requests(stage, n int, rate float64, failing int) []*tacho.Record {
	rng := rand.New(rand.NewPCG(uint64(stage), 1))
	var list []*tacho.Record
	for i := range n {
		r := &tacho.Record{Stage: stage, Session: uint64(i), Timeline: tacho.NewTimeline(time.Duration(float64(i) / rate * 1e9)), Asked: 32}
		r.Turn, r.Turns = i%3, 3
		r.Labels = tacho.Labels{{Key: "tenant", Value: []string{"blue", "green"}[i%2]}}
		r.Endpoint = []string{"http://127.0.0.1:8000", "http://127.0.0.1:8001"}[i%2]
		r.Input = 100 + rng.IntN(900)
		r.Slot, r.Start, r.Conn = r.Due, r.Due+ms/10, r.Due+ms/5
		r.Sent, r.Wrote, r.Head = r.Due+ms/4, r.Due+ms/2, r.Due+5*ms
		r.Clock, r.Conns = tacho.KernelClock, 1
		at := r.Sent + 20*ms + time.Duration(r.Input)*50*time.Microsecond + time.Duration(rng.IntN(int(20*rate)))*ms/10
		for range 20 + rng.IntN(20) {
			r.Events = append(r.Events, tacho.Event{At: at, ReadLag: 20_000, Tokens: 1})
			at += 5*ms + time.Duration(rng.IntN(int(10*ms)))
		}
		r.End = r.Last() + ms
		r.Output, r.OutputFrom = len(r.Events), tacho.FromUsage
		r.Usage = &tacho.Usage{Prompt: r.Input, Completion: r.Output}
		if failing > 0 && i%failing == failing-1 {
			r.Events, r.Output = nil, 0
			r.Failure = &tacho.Failure{Cause: tacho.Status, Status: 503, Message: "busy: " + hostile}
		}
		list = append(list, r)
	}
	slices.SortStableFunc(list, func(a, b *tacho.Record) int { return int(a.End - b.End) }) // in order of completion
	return list
}

// measured returns a run with the given levels.
func measured(about outcome.About, levels ...[]*tacho.Record) outcome.Run {
	run := outcome.Run{About: about, Records: func() iter.Seq2[*tacho.Record, error] { return all(slices.Concat(levels...)) }}
	for i, list := range levels {
		rate := float64(10 * (i + 1))
		c := metric.DefaultConfig()
		c.RequestRate, c.GPUs = rate, 2
		var sum metric.Accumulator
		for _, r := range list {
			if err := sum.Add(r); err != nil {
				panic(err)
			}
		}
		l := outcome.Level{Setting: outcome.Setting{Index: i, Name: fmt.Sprintf("--request-rate %g", rate), Value: fmt.Sprint(rate), Rate: rate}, Summary: sum.Summary(c)}
		for s := range int(l.Summary.DurationS) + 1 {
			l.Samples = append(l.Samples, instrument.Sample{Target: "http://127.0.0.1:8000/metrics", At: time.Duration(s) * time.Second, Values: map[instrument.Quantity]float64{
				"running": float64(3 * s), "queued": float64(s), "kv_share": 0.1 * float64(s%10), "gpu_share": 0.9, "power_w": 400 + float64(s),
			}})
		}
		l.Summary.Conclude(instrument.Summarize(l.Samples, l.Summary.DurationS), nil)
		run.Levels = append(run.Levels, l)
	}
	return run
}

func all(list []*tacho.Record) iter.Seq2[*tacho.Record, error] {
	return func(yield func(*tacho.Record, error) bool) {
		for _, r := range list {
			if !yield(r, nil) {
				return
			}
		}
	}
}

var about = outcome.About{
	Name: "20260301-120000-vllm", Tool: "tacho", Version: "v1", Began: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Varies: "request-rate", Label: "tuned",
	Backend: "vllm", Model: "llama-3.1-8b", Dataset: "random", URLs: []string{"http://127.0.0.1:8000"}, GPUs: "2 x H200", Host: "load-1, 16 cores, linux/amd64",
	Args: []string{"bench", "--request-rate", "10,20,30", "--metadata", "note=it's fine"},
}

// levels returns the requests of three levels, with failures in the second.
func levels() [][]*tacho.Record {
	return [][]*tacho.Record{requests(0, 60, 10, 0), requests(1, 120, 20, 12), requests(2, 180, 30, 0)}
}

func write(t testing.TB, runs ...outcome.Run) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, page.Write(&b, runs, nil))
	return b.Bytes()
}

// data decodes the data of a page.
func data(t testing.TB, html []byte, into any) {
	t.Helper()
	_, rest, _ := bytes.Cut(html, []byte(`<script type="application/json" id="data">`))
	text, _, found := bytes.Cut(rest, []byte("</script>"))
	if !found {
		t.Fatal("the page has no data")
	}
	must.Do(t, json.Unmarshal(text, into))
}

// withRecords returns a run whose levels have records. later is added to the latency of
// each request.
func withRecords(name string, later time.Duration, lists ...[]*tacho.Record) outcome.Run {
	for _, list := range lists {
		for _, r := range list {
			for i := range r.Events {
				r.Events[i].At += later
			}
			r.End += later
		}
	}
	is := about
	is.Name, is.Label = name, name
	run := measured(is, lists...)
	for i := range run.Levels {
		run.Levels[i].Records = func() iter.Seq2[*tacho.Record, error] { return all(lists[i]) }
	}
	return run
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-4*max(math.Abs(a), math.Abs(b), 1e-9) }

// many generates n requests of a hundred tokens while they are read.
func many(n, failing int) iter.Seq2[*tacho.Record, error] {
	one := &tacho.Record{Timeline: tacho.NewTimeline(0), Input: 512, Asked: 100}
	one.Events = make(tacho.Events, 100)
	return func(yield func(*tacho.Record, error) bool) {
		for i := range n {
			r := *one
			r.Due = time.Duration(i) * ms
			r.Slot, r.Start, r.Conn, r.Sent, r.Wrote, r.Head = r.Due, r.Due, r.Due, r.Due, r.Due, r.Due+ms
			at := r.Due + time.Duration(50+i%50)*ms
			for k := range r.Events {
				r.Events[k] = tacho.Event{At: at, Tokens: 1}
				at += time.Duration(4+(i*k)%9) * ms
			}
			r.Output, r.OutputFrom, r.End = 100, tacho.FromUsage, r.Last()
			if i%failing == 0 {
				r.Failure = &tacho.Failure{Cause: tacho.Reset, Message: strings.Repeat("x", 10_000)}
			}
			if i == n/2 { // one outlier
				r.End += 30 * time.Second
			}
			if !yield(&r, nil) {
				return
			}
		}
	}
}

// large returns a run of one level with many requests.
func large(n, failing int) outcome.Run {
	var sum metric.Accumulator
	for r := range many(n, failing) {
		if err := sum.Add(r); err != nil {
			panic(err)
		}
	}
	return outcome.Run{
		About: about, Records: func() iter.Seq2[*tacho.Record, error] { return many(n, failing) },
		Levels: []outcome.Level{{Setting: outcome.Setting{Name: "large"}, Summary: sum.Summary(metric.DefaultConfig())}},
	}
}
