package truth

import (
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/sim/step"
)

// A Queue serves requests in order of arrival, with service times unknown to the
// client. A field has no effect if it is 0 or nil.
type Queue struct {
	Slots   int
	Service time.Duration // mean
	Sigma   float64       // of the logarithm of the service time; constant if 0
	Pareto  float64       // exponent of Pareto service times, above 1
	Lead    float64       // share of the service time before the first token

	Room     int           // maximum queue length; a request gets 503 if the queue is full
	Rate     float64       // requests/s of a token bucket; a request gets 429 if the bucket is empty
	Bucket   float64       // capacity of the token bucket in requests
	Window   int           // maximum requests in any second; further requests get 429
	Fail     float64       // fraction of requests answered with 500
	Every    time.Duration // period of stalls, outages or slow phases
	Stall    time.Duration // the server stalls for this long, once per period
	Outage   time.Duration // every request gets 503 for this long, once per period
	Slow     time.Duration // service takes SlowBy times as long for this long, once per period
	SlowBy   float64
	Leak     float64 // relative growth of service times per 1,000 requests
	MaxSlots int     // slots after requests have been waiting for all of Scale
	Scale    time.Duration
	Cold     int // number of first requests delayed by Warmup
	Warmup   time.Duration
}

// A history is the state of a server between probes.
type history struct {
	served int
	slots  int
}

// Servers returns a constructor of servers with a common history, one for each
// level.
func (q Queue) Servers() func(seed uint64) predict.Server {
	past := &history{slots: q.Slots}
	return func(seed uint64) predict.Server {
		rng := rand.New(rand.NewPCG(seed, 0x7175657565))
		return &queue{Queue: q, history: past, rng: rng, tokens: q.Bucket, phase: time.Duration(rng.Float64() * float64(q.Every))}
	}
}

type queue struct {
	agenda
	Queue
	*history
	rng     *rand.Rand
	busy    int
	waiting []*job
	since   time.Duration   // since when requests have been waiting without interruption
	tokens  float64         // in the bucket
	filled  time.Duration   // when tokens was updated
	recent  []time.Duration // arrivals in the last second
	phase   time.Duration   // of the stalls
}

// Add implements predict.Server.
func (s *queue) Add(now time.Duration, r *step.Request) error {
	s.now = max(s.now, now)
	switch {
	case s.Fail > 0 && s.rng.Float64() < s.Fail:
		return refused(http.StatusInternalServerError)
	case s.Outage > 0 && s.into(now) < s.Outage:
		return refused(http.StatusServiceUnavailable)
	case s.limited():
		return refused(http.StatusTooManyRequests)
	case s.Room > 0 && s.busy >= s.slots && len(s.waiting) >= s.Room:
		return refused(http.StatusServiceUnavailable)
	}
	if len(s.waiting) == 0 {
		s.since = now
	}
	s.waiting = append(s.waiting, s.accept(now, r))
	s.begin()
	return nil
}

// limited reports whether the rate limiter refuses a request.
func (s *queue) limited() bool {
	if s.Rate > 0 {
		s.tokens = min(s.tokens+s.Rate*(s.now-s.filled).Seconds(), s.Bucket)
		s.filled = s.now
		if s.tokens < 1 {
			return true
		}
		s.tokens--
	}
	if s.Window > 0 {
		for len(s.recent) > 0 && s.recent[0] <= s.now-time.Second {
			s.recent = s.recent[1:]
		}
		if len(s.recent) >= s.Window {
			return true
		}
		s.recent = append(s.recent, s.now)
	}
	return false
}

// begin serves requests while there are free slots.
func (s *queue) begin() {
	if s.MaxSlots > 0 && len(s.waiting) > 0 && s.now-s.since > s.Scale {
		s.slots = s.MaxSlots
	}
	for s.busy < s.slots && len(s.waiting) > 0 {
		j := s.waiting[0]
		s.waiting = s.waiting[1:]
		s.serve(j)
	}
	if len(s.waiting) == 0 {
		s.since = s.now
	}
}

// serve takes a request into a slot.
func (s *queue) serve(j *job) {
	s.busy++
	s.served++
	took := s.Service.Seconds() * (1 + s.Leak*float64(s.served)/1000)
	if s.Sigma > 0 {
		took *= math.Exp(s.Sigma*s.rng.NormFloat64() - s.Sigma*s.Sigma/2)
	}
	if s.Pareto > 0 {
		took *= (s.Pareto - 1) / s.Pareto * math.Pow(1-s.rng.Float64(), -1/s.Pareto)
	}
	if s.Slow > 0 && s.into(s.now) < s.Slow {
		took *= s.SlowBy
	}
	if s.served <= s.Cold {
		took += s.Warmup.Seconds()
	}
	n := max(j.MaxNew, 2)
	for i := range n { // the first after Lead, the last at the end
		j.tokens = append(j.tokens, s.after(took*(s.Lead+(1-s.Lead)*float64(i)/float64(n-1))))
	}
	s.at(j.tokens[n-1], func(deliver func(*step.Emission)) {
		s.busy--
		s.finish(j, deliver)
		s.begin()
	})
}

// into returns the time since the last period began.
func (s *queue) into(t time.Duration) time.Duration { return (t + s.phase) % s.Every }

// after returns when work that begins now is done.
func (s *queue) after(work float64) time.Duration {
	t, left := s.now, time.Duration(work*float64(time.Second))
	if s.Stall == 0 {
		return t + left
	}
	for {
		into := s.into(t)
		if into < s.Stall { // each period begins with a stall
			t += s.Stall - into
			into = s.Stall
		}
		if free := s.Every - into; left > free {
			t, left = t+free, left-free
			continue
		}
		return t + left
	}
}
