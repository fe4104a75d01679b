package truth

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho/internal/predict"
)

// A Case is a server, a kind of load, and the expected properties of the limit.
type Case struct {
	Name    string
	SLO     string
	Kind    string // search variable of find: rate or concurrency
	Input   string // lengths, in the syntax of the flags
	Output  string
	Bursty  float64 // --burstiness; a Poisson process if 0
	Profile string  // of a simulated engine; Servers if empty
	Servers func() func(seed uint64) predict.Server
	Top     float64                                 // a load above the server's capacity
	Still   func() func(seed uint64) predict.Server // the server without its changes over time; Servers if nil
	None    bool                                    // no load meets the SLO
	Rhythm  bool                                    // misses come in clusters
	Drifts  bool                                    // the server changes, so there is no limit
}

// Queues are servers independent of tacho's models, with parameters drawn from a
// seed.
func Queues(seed uint64) []Case {
	d := &drawer{rand.New(rand.NewPCG(seed, 0x63617365))}
	return append(d.queues(), d.refusals()...)
}

// A drawer draws parameters.
type drawer struct{ *rand.Rand }

// near returns a number between 0.7 and 1.4 times x.
func (d *drawer) near(x float64) float64 { return x * (0.7 + 0.7*d.Float64()) }

// time returns a duration near a number of milliseconds.
func (d *drawer) time(ms float64) time.Duration {
	return time.Duration(d.near(ms) * float64(time.Millisecond)).Round(100 * time.Microsecond)
}

// count returns an integer near x.
func (d *drawer) count(x int) int { return max(int(d.near(float64(x))+0.5), 1) }

// below returns a goal at a fraction of a duration.
func below(goal string, part float64, of time.Duration) string {
	return goal + "<" + strconv.FormatFloat(part*of.Seconds()*1000, 'g', 4, 64) + "ms"
}

// queue1 is a case of a queue. Top is its maximum throughput.
func queue1(name, slo string, q Queue) Case {
	top := float64(max(q.Slots, q.MaxSlots)) / q.Service.Seconds()
	return Case{Name: name, SLO: slo, Input: "8", Output: "4", Servers: q.Servers, Top: top}
}

func (d *drawer) queues() []Case {
	b := Batch{Slots: 4096, Step: d.time(20), PerSeq: d.time(1), Prefill: d.time(30), Usual: 512}
	few := Batch{Slots: d.count(8), Step: d.time(20), PerSeq: d.time(1), Prefill: d.time(30), Usual: 512}
	most := b.most(512, 64)
	batch := func(name, slo, input, output string, engine Batch, top float64) Case {
		return Case{Name: name, SLO: slo, Input: input, Output: output, Servers: engine.Servers, Top: top}
	}
	det := Queue{Slots: d.count(8), Service: d.time(200)}
	log5 := Queue{Slots: d.count(16), Service: d.time(350), Sigma: 0.5}
	log8 := Queue{Slots: d.count(8), Service: d.time(350), Sigma: 0.8}
	slow := Queue{Slots: 2, Service: d.time(3000), Sigma: 0.4}
	heavy := Queue{Slots: d.count(4), Service: d.time(150), Sigma: 1.2}
	one := Queue{Slots: 1, Service: d.time(40), Sigma: 1}
	many := Queue{Slots: d.count(200), Service: d.time(50), Sigma: 0.5}
	return []Case{
		batch("batching", below("ttft:p99", 12, b.Prefill)+","+below("tpot:p95", 80, b.PerSeq), "512", "64", b, most),
		batch("batching, few slots", below("ttft:p99", 15, few.Prefill), "512", "64", few, few.most(512, 64)),
		batch("batching, lognormal lengths", below("ttft:p99", 30, b.Prefill)+","+below("tpot:p95", 110, b.PerSeq), "lognormal(450,0.5)", "lognormal(56,0.5)", b, most),
		queue1("M/D/c", below("ttft:p99", 1.5, det.Service), det),
		queue1("M/G/c, sigma 0.5, e2el", below("e2el:p95", 2.9, log5.Service), log5),
		queue1("M/G/c, sigma 0.8, mean", below("ttft:mean", 0.55, log8.Service), log8),
		queue1("M/G/2, below 1 req/s", below("ttft:p90", 1, slow.Service), slow),
		queue1("M/G/c, sigma 0.8, p99", below("ttft:p99", 1.4, log8.Service), log8),
		queue1("M/G/c, sigma 1.2", below("ttft:p95", 2, heavy.Service), heavy),
		queue1("M/G/1, sigma 1", below("ttft:p99", 12, one.Service), one),
		queue1("M/G/c, above 2,000 req/s", below("ttft:p99", 0.2, many.Service), many),
	}
}

func (d *drawer) refusals() []Case {
	served := Queue{Slots: 400, Service: d.time(100), Sigma: 0.3}
	bucket := served
	bucket.Rate, bucket.Bucket = d.near(40), float64(d.count(20))
	window := served
	window.Window = d.count(40)
	finite := Queue{Slots: d.count(8), Service: d.time(200), Sigma: 0.5, Room: d.count(24)}
	fails := Queue{Slots: d.count(8), Service: d.time(200), Sigma: 0.3, Fail: 0.01 + 0.015*d.Float64()}
	always := fails
	always.Fail = 0.015 + 0.015*d.Float64()
	stalls := Queue{Slots: d.count(8), Service: d.time(90), Sigma: 0.3, Every: 20 * time.Second}
	stalls.Stall = time.Duration((0.45 + 0.3*d.Float64()) * float64(time.Second))
	leaks := Queue{Slots: d.count(8), Service: d.time(200), Sigma: 0.3, Leak: 0.15 + 0.1*d.Float64()}
	scales := Queue{Slots: 4, Service: d.time(250), Sigma: 0.3, MaxSlots: 16, Scale: 5 * time.Second}
	warms := Queue{Slots: d.count(16), Service: d.time(200), Sigma: 0.3, Cold: 1500, Warmup: d.time(500)}
	small := scales
	small.MaxSlots = 0
	still := func(c Case, q Queue) Case {
		c.Still, c.Top = q.Servers, float64(q.Slots)/q.Service.Seconds()
		return c
	}
	limited := func(name, slo string, q Queue, top float64) Case {
		c := queue1(name, slo, q)
		c.Top = top
		return c
	}
	none := func(c Case) Case {
		c.None = true
		return c
	}
	drifts := func(c Case) Case {
		c.Drifts = true
		return c
	}
	return []Case{
		limited("token bucket, error<1%", "ttft:p95<400ms,error<1%", bucket, 1.2*bucket.Rate),
		limited("token bucket, error<0.1%", "ttft:p99<600ms,error<0.1%", bucket, 1.2*bucket.Rate),
		limited("token bucket, p99 alone", "ttft:p99<600ms", bucket, 1.2*bucket.Rate),
		limited("requests in any second", "ttft:p95<400ms,error<1%", window, 1.2*float64(window.Window)),
		queue1("finite queue", below("ttft:p95", 2, finite.Service)+",error<1%", finite),
		queue1("random failures, error<5%", below("ttft:p95", 1.5, fails.Service)+",error<5%", fails),
		queue1("random failures, p95", below("ttft:p95", 1.5, fails.Service), fails),
		none(queue1("random failures, error<0.1%", "error<0.1%", always)),
		none(queue1("random failures, p99", below("ttft:p99", 1.5, always.Service), always)),
		queue1("stalls, loose goal", below("ttft:p99", 1.6, stalls.Stall), stalls),
		none(queue1("stalls, tight goal", below("ttft:p99", 0.45, stalls.Stall), stalls)),
		drifts(queue1("leak", below("ttft:p99", 1.5, leaks.Service), leaks)),
		still(queue1("scales", below("ttft:p99", 1.2, scales.Service), scales), small),
		drifts(queue1("cold cache", below("ttft:p99", 2.5, warms.Service), warms)),
	}
}

// Rhythms are servers with pauses, slow phases, outages, quotas with bursts, and caches that become warm, with parameters
// drawn from a seed. Periods are 10 s to 3 minutes.
func Rhythms(seed uint64) (all []Case) {
	d := &drawer{rand.New(rand.NewPCG(seed, 0x72687974))}
	every := func(seconds float64, q Queue) Queue {
		q.Every = d.time(1000 * seconds)
		return q
	}
	add := func(name, slo string, q Queue, change func(c *Case)) {
		c := queue1(name, slo, q)
		c.Rhythm = true
		if change != nil {
			change(&c)
		}
		all = append(all, c)
	}
	none, drifts := func(c *Case) { c.None = true }, func(c *Case) { c.Drifts = true }
	plain := func() Queue { return Queue{Slots: d.count(8), Service: d.time(180), Sigma: 0.4} }
	stalls := func(seconds, ms float64) Queue {
		q := every(seconds, plain())
		q.Stall = d.time(ms)
		return q
	}
	slow := func(seconds, ms, by float64) Queue {
		q := every(seconds, plain())
		q.Slow, q.SlowBy = d.time(ms), by
		return q
	}
	fails := func(seconds, ms float64) Queue {
		q := every(seconds, plain())
		q.Outage = d.time(ms)
		return q
	}
	quota := func(rate, bucket float64) Queue {
		return Queue{Slots: 400, Service: d.time(100), Sigma: 0.3, Rate: d.near(rate), Bucket: d.near(bucket)}
	}
	limited := func(c *Case) { c.Top = 1.2 * c.Servers()(0).(*queue).Rate }
	add("pauses each 12 s, p90", "ttft:p90<300ms", stalls(12, 400), nil)
	add("pauses each 25 s, p90", "ttft:p90<400ms", stalls(25, 1000), nil)
	add("pauses each 25 s, p99", "ttft:p99<300ms", stalls(25, 1200), none)
	add("pauses each 80 s, p95", "ttft:p95<500ms", stalls(80, 1800), nil)
	add("pauses each 150 s, p95", "ttft:p95<500ms", stalls(130, 2500), nil)
	add("slow phases each 35 s", "ttft:p95<500ms", slow(35, 6000, 1.7), nil)
	add("slow phases each 100 s", "ttft:p90<500ms", slow(100, 15000, 1.6), nil)
	add("outages each 90 s, error<1%", "ttft:p95<400ms,error<1%", fails(80, 3000), none)
	add("outages each 120 s, p95", "ttft:p95<400ms", fails(120, 2500), nil)
	add("outages each 60 s, error<5%", "ttft:p95<400ms,error<5%", fails(60, 900), nil)
	add("quota, burst of 120", "error<1%", quota(30, 120), limited)
	add("quota, burst of 500", "ttft:p95<400ms,error<1%", quota(35, 500), limited)
	cold := plain()
	cold.Cold, cold.Warmup = d.count(2000), d.time(400)
	add("warm cache", below("ttft:p99", 2.5, cold.Service), cold, drifts)
	return all
}

// Quiet are servers without a rhythm, with parameters drawn from a seed.
func Quiet(seed uint64) (all []Case) {
	names := []string{
		"batching", "batching, few slots", "batching, lognormal lengths", "M/D/c", "M/G/c, sigma 0.5, e2el", "M/G/c, sigma 0.8, mean", "M/G/c, sigma 0.8, p99",
		"M/G/c, sigma 1.2", "M/G/c, above 2,000 req/s", "finite queue", "random failures, p95", "random failures, error<0.1%",
	}
	for _, c := range Queues(seed) {
		if slices.Contains(names, c.Name) {
			all = append(all, c)
		}
	}
	return all
}

// Engines are the simulated engines of tacho with loads that were not used for
// tuning.
func Engines() []Case {
	const in, out = "lognormal(600,0.8)[16,8000]", "lognormal(150,0.6)[4,1500]"
	return []Case{
		{Name: "v1", Profile: "vllm-8b-h100", SLO: "ttft:p99<500ms,tpot:p95<50ms", Input: in, Output: out, Top: 50},
		{Name: "v2", Profile: "vllm-8b-h100", SLO: "ttft:p99<300ms", Input: in, Output: out, Top: 50},
		{Name: "v3", Profile: "sglang-70b-h100x4", SLO: "ttft:p99<700ms,tpot:p95<80ms", Input: in, Output: out, Top: 20},
		{Name: "v4", Profile: "trtllm-70b-fp8-h100x2", SLO: "ttft:p95<400ms,tpot:mean<35ms", Input: in, Output: out, Top: 25},
		{Name: "v5", Profile: "vllm-8b-h200", SLO: "ttft:p99<500ms,tpot:p95<50ms", Input: in, Output: out, Top: 70},
		{Name: "v6", Profile: "vllm-8b-h100", SLO: "e2el:p90<6s", Input: in, Output: out, Top: 50},
		{Name: "v7", Profile: "sglang-70b-h100x4", SLO: "ttft:p99<1s", Input: in, Output: out, Top: 20},
		{Name: "d1", Profile: "vllm-8b-h100", SLO: "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", Input: "1024", Output: "128", Top: 50},
		{Name: "d2", Profile: "sglang-70b-h100x4", SLO: "ttft:p99<500ms,tpot:p95<50ms,error<0.1%", Input: "1024", Output: "128", Top: 20},
		{Name: "f1", Profile: "vllm-8b-h200", SLO: "ttft:p99<300ms,tpot:p95<25ms", Input: "512", Output: "128", Top: 100},
		{Name: "f2", Profile: "llamacpp-8b-q4-rtx4090", SLO: "ttft:p95<1s", Input: "256", Output: "64", Top: 20},
		{Name: "f4", Profile: "vllm-8b-h100", SLO: "ttft:p99<500ms,tpot:p95<50ms", Input: "1024", Output: "128", Bursty: 0.3, Top: 50},
		{Name: "c1", Profile: "vllm-8b-h100", SLO: "ttft:p99<500ms,tpot:p95<50ms", Kind: "concurrency", Input: in, Output: out, Top: 1024},
		{Name: "c2", Profile: "sglang-70b-h100x4", SLO: "tpot:mean<50ms", Kind: "concurrency", Input: in, Output: out, Top: 256},
		{Name: "c3", Profile: "vllm-8b-h200", SLO: "ttft:p99<300ms,tpot:p95<10ms", Kind: "concurrency", Input: "512", Output: "128", Top: 512},
	}
}
