package metric_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/metric"
)

// shared simulates an engine that shares its speed among all requests in flight, as a batch does, and
// serves at most limit requests in parallel. Arrivals are Poisson at rate 1, and load is the share of
// its capacity they need.
func shared(r *rand.Rand, n, limit int, load float64) []tacho.Record {
	type job struct{ due, left float64 }
	records := make([]tacho.Record, 0, n)
	var jobs []job
	now, next := 0.0, r.ExpFloat64()
	for arrived := 0; arrived < n || len(jobs) > 0; {
		active := min(len(jobs), limit)
		until, ends := next, -1
		if arrived == n {
			until = 1e18
		}
		for i := range active {
			if at := now + jobs[i].left*float64(active); at < until {
				until, ends = at, i
			}
		}
		for i := range active {
			jobs[i].left -= (until - now) / float64(active)
		}
		now = until
		if ends < 0 {
			jobs = append(jobs, job{now, load * (0.5 + r.Float64())})
			arrived, next = arrived+1, now+r.ExpFloat64()
			continue
		}
		rec := tacho.Record{Session: uint64(len(records)), Timeline: tacho.NewTimeline(seconds(jobs[ends].due))}
		rec.Slot, rec.Sent, rec.End = rec.Due, rec.Due, seconds(now)
		records = append(records, rec)
		jobs = slices.Delete(jobs, ends, ends+1)
	}
	return records
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

func grows(records []tacho.Record) bool {
	var a metric.Accumulator
	for i := range records {
		_ = a.Add(&records[i]) // in memory, cannot fail
	}
	s := a.Summary(metric.Config{RequestRate: 1})
	return slices.ContainsFunc(s.Verdict.Reasons, func(r metric.Reason) bool { return r.Code == "queue-growth" })
}

// The queue-growth rule rarely fires for a server that keeps up and finds a server that does not,
// whether the server shares its speed or queues requests.
func TestQueueGrowth(t *testing.T) {
	const runs = 40
	for _, c := range []struct {
		n    int
		load float64
		most float64 // maximum share of runs with growth reported
		low  float64 // minimum share
	}{
		{300, 0.5, 0, 0},
		{300, 0.8, 0, 0},
		{300, 0.9, 0.05, 0},
		{1000, 0.9, 0, 0},
		{300, 1.3, 1, 0.6},
		{1000, 1.3, 1, 1},
	} {
		for _, limit := range []int{1, 1 << 30} {
			found := 0
			for seed := range uint64(runs) {
				if grows(shared(rand.New(rand.NewPCG(seed, 1)), c.n, limit, c.load)) {
					found++
				}
			}
			t.Logf("%d requests, load %v, at most %d at a time: %d of %d", c.n, c.load, limit, found, runs)
			if share := float64(found) / runs; share > c.most || share < c.low {
				t.Errorf("%d requests, load %v, at most %d at a time: grows in %d of %d runs, want %v to %v of them", c.n, c.load, limit, found, runs, c.low, c.most)
			}
		}
	}
}

// Requests longer than the run accumulate at any server. This is not growth.
func TestLongRequestsAreNoGrowth(t *testing.T) {
	var records []tacho.Record
	for i := range 400 {
		rec := tacho.Record{Session: uint64(i), Timeline: tacho.NewTimeline(time.Duration(i) * 100 * time.Millisecond)}
		rec.Slot, rec.Sent, rec.End = rec.Due, rec.Due, rec.Due+30*time.Second
		records = append(records, rec)
	}
	if grows(records) {
		t.Error("400 requests of 30 s each within 40 s: said to grow")
	}
}

// The burst rule uses the time in which the burst was sent, with or without a limit. A paced load is
// not a burst.
func TestBurstSpread(t *testing.T) {
	of := func(config metric.Config, due func(i int) time.Duration, apart time.Duration) string {
		var a metric.Accumulator
		for i := range 100 {
			rec := tacho.Record{Session: uint64(i), Timeline: tacho.NewTimeline(due(i)), Output: 1}
			rec.Sent = due(i) + time.Duration(i)*apart
			rec.Slot = rec.Due + time.Microsecond
			if config.MaxConcurrency > 0 { // a closed loop: due when a slot is free
				rec.Due, rec.Slot = rec.Sent, rec.Sent
			}
			rec.Events = tacho.Events{{At: rec.Sent + 100*time.Millisecond}}
			rec.End = rec.Sent + 100*time.Millisecond
			_ = a.Add(&rec) // in memory, cannot fail
		}
		s := a.Summary(config)
		for _, r := range s.Verdict.Reasons {
			if r.Code == "burst-spread" {
				return string(r.Severity) + " " + r.Text
			}
		}
		return ""
	}
	atOnce := func(int) time.Duration { return 0 }
	paced := func(i int) time.Duration { return time.Duration(i) * 10 * time.Millisecond }
	for _, c := range []struct {
		name   string
		config metric.Config
		due    func(int) time.Duration
		apart  time.Duration
		want   string
	}{
		{"at once", metric.Config{}, atOnce, 90 * time.Microsecond, ""},
		{"over 20 ms", metric.Config{}, atOnce, 200 * time.Microsecond, "DEGRADED"},
		{"over 200 ms", metric.Config{}, atOnce, 2 * time.Millisecond, "INVALID sending the burst took 196 ms, 196 % of"},
		{"as many as the limit lets", metric.Config{MaxConcurrency: 100}, atOnce, 2 * time.Millisecond, "INVALID"},
		{"more than the limit lets", metric.Config{MaxConcurrency: 10}, atOnce, time.Millisecond, ""},
		{"paced", metric.Config{}, paced, time.Millisecond, ""},
	} {
		if got := of(c.config, c.due, c.apart); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The cache rule reports tokens found in the cache beyond shared prefixes, from answers or from the
// metrics page. Later turns do not count.
func TestCacheBeyondSharing(t *testing.T) {
	share := func(f float64) *float64 { return &f }
	for _, c := range []struct {
		name   string
		shared *float64
		cached int // of 100, in first turns
		later  int // of 100, in second turns
		page   *float64
		want   string
	}{
		{"nothing found", share(0), 0, -1, share(0), ""},
		{"found", share(0), 40, -1, nil, "DEGRADED the server found 40 % of the prompt tokens in its cache, but the prompts share only 0 %"},
		{"little found", share(0), 2, -1, nil, "NOTE"},
		{"shared by design", share(0.5), 40, -1, nil, ""},
		{"more than shared", share(0.2), 40, -1, nil, "DEGRADED"},
		{"nobody knows what is shared", nil, 40, -1, nil, ""},
		{"by the page", share(0), 0, -1, share(0.4), "DEGRADED"},
		{"later turns", share(0), 0, 90, share(0.45), ""},
		{"first turns among later ones", share(0), 40, 90, share(0.65), "DEGRADED"},
	} {
		var a metric.Accumulator
		for i := range 50 {
			for turn, cached := range []int{c.cached, c.later} {
				if cached < 0 {
					continue
				}
				rec := tacho.Record{Session: uint64(i), Turn: turn, Input: 100, Timeline: tacho.NewTimeline(0)}
				rec.Usage = &tacho.Usage{Prompt: 100, Cached: cached}
				_ = a.Add(&rec) // in memory, cannot fail
			}
		}
		s := a.Summary(metric.Config{SharedShare: c.shared})
		s.Conclude([]metric.Instruments{{PrefixHitShare: c.page}}, nil)
		got := ""
		for _, r := range s.Verdict.Reasons {
			if r.Code == "cache" {
				got = fmt.Sprint(r.Severity, " ", r.Text)
			}
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
