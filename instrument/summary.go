package instrument

import (
	"time"

	"tacho/metric"
)

// enough is how many readings of a gauge make a mean.
const enough = 2

// Summarize says what the samples of each target came to, in the order in
// which the targets were first read. The stage took so many seconds: what was
// read before and after it counts for counters, and not for gauges.
func Summarize(samples []Sample, seconds float64) []metric.Instruments {
	var order []string
	by := map[string]*series{}
	for _, s := range samples {
		if by[s.Target] == nil {
			by[s.Target] = newSeries(s.Target, seconds)
			order = append(order, s.Target)
		}
		by[s.Target].add(s)
	}
	var out []metric.Instruments
	for _, target := range order {
		out = append(out, by[target].sum())
	}
	return out
}

// series is what one target said in the course of time.
type series struct {
	in     metric.Instruments
	last   map[Quantity]float64
	grown  map[Quantity]float64 // of counters, since the first sample
	gauges map[Quantity]*gauge
	power  energy
	end    float64 // of the stage, in seconds
}

type gauge struct {
	sum, max float64
	n        int
}

func newSeries(target string, end float64) *series {
	return &series{
		in: metric.Instruments{Target: target}, end: end,
		last: map[Quantity]float64{}, grown: map[Quantity]float64{}, gauges: map[Quantity]*gauge{},
	}
}

func (s *series) add(x Sample) {
	if x.Error != "" {
		if s.in.Failed++; s.in.Problem == "" {
			s.in.Problem = x.Error
		}
		return
	}
	s.in.Scrapes++
	inside := x.At > 0 && x.At.Seconds() <= s.end
	for q, v := range x.Values {
		s.grow(q, v)
		g := s.gauges[q]
		if g == nil {
			g = &gauge{}
			s.gauges[q] = g
		}
		if inside {
			g.sum, g.n, g.max = g.sum+v, g.n+1, max(g.max, v)
		}
	}
	if watts, ok := x.Values[powerWatts]; ok {
		s.power.add(x.At, watts)
	}
}

// grow follows a counter. One that has shrunk began anew with its server, so
// all of it is new.
func (s *series) grow(q Quantity, v float64) {
	before, seen := s.last[q]
	s.last[q] = v
	switch {
	case !seen:
		s.grown[q] = 0
	case v >= before:
		s.grown[q] += v - before
	default:
		s.grown[q] += v
	}
}

func (s *series) sum() metric.Instruments {
	in := s.in
	in.Running, in.Queued, in.KVShare = s.gauge(running), s.gauge(queued), s.gauge(kvShare)
	in.GPUShare, in.PowerWatts = s.gauge(gpuShare), s.gauge(powerWatts)
	in.PromptTokens, in.GenerationTokens = s.counter(promptTokens), s.counter(generatedTokens)
	in.Finished, in.Preemptions = s.counter(finished), s.counter(preemptions)
	in.PrefixHitShare = s.hitShare()
	in.TTFTMillis, in.QueueMillis = s.mean(ttftSum, ttftCount), s.mean(queueSum, queueCount)
	in.TPOTMillis, in.E2ELMillis = s.mean(tpotSum, tpotCount), s.mean(e2elSum, e2elCount)
	in.PrefillMillis, in.DecodeMillis = s.mean(prefillSum, prefillCount), s.decode()
	in.InferenceMillis, in.Timed = s.mean(inferenceSum, inferenceCount), s.counter(e2elCount)
	in.Speculation, in.Diffusion = s.speculation(), s.diffusion()
	in.EnergyJoules = s.counter(energyJoules)
	if in.EnergyJoules == nil {
		in.EnergyJoules = s.power.joules()
	}
	return in
}

func (s *series) gauge(q Quantity) *metric.Gauge {
	g := s.gauges[q]
	if g == nil {
		return nil
	}
	if g.n < enough {
		return &metric.Gauge{}
	}
	mean := g.sum / float64(g.n)
	return &metric.Gauge{Mean: &mean, Max: &g.max}
}

func (s *series) counter(q Quantity) *float64 {
	if v, ok := s.grown[q]; ok && s.in.Scrapes > 1 {
		return &v
	}
	return nil
}

// mean is of a distribution, in milliseconds.
func (s *series) mean(sum, count Quantity) *float64 {
	n := s.grown[count]
	if n <= 0 {
		return nil
	}
	v := max(1e3*s.grown[sum]/n, 0) // servers with two clocks have negative times
	return &v
}

// decode is the mean for a request. Runs that were kept before it was read have
// the gaps between tokens of the same clock, if they are of vLLM; no other server
// that tells gaps counts what it looks for in its cache.
func (s *series) decode() *float64 {
	_, read := s.last[decodeCount]
	_, vllm := s.last[prefixQueries]
	if read || !vllm {
		return s.mean(decodeSum, decodeCount)
	}
	return s.mean(tpotSum, e2elCount)
}

// speculation is nil where the server drafted nothing.
func (s *series) speculation() *metric.Speculation {
	if s.grown[specDraftTokens] <= 0 {
		return nil
	}
	out := &metric.Speculation{Drafts: s.grown[specDrafts], DraftTokens: s.grown[specDraftTokens], Accepted: s.grown[specAccepted]}
	for position := range maxDraft {
		n, ok := s.grown[specAcceptedAt.at(position)]
		if !ok {
			break
		}
		out.AcceptedAt = append(out.AcceptedAt, n)
	}
	return out
}

func (s *series) diffusion() *metric.Diffusion {
	if s.grown[diffusionSteps] <= 0 {
		return nil
	}
	return &metric.Diffusion{Steps: s.grown[diffusionSteps], Positions: s.grown[diffusionPlaces], Committed: s.grown[diffusionTokens]}
}

// hitShare is the share of the prompt tokens that were found in a cache, by
// whichever counts the server has; a rate that it computes itself, over a time
// of its own choice, comes last.
func (s *series) hitShare() *float64 {
	for _, pair := range [][2]Quantity{{prefixHits, prefixQueries}, {cachedTokens, promptTokens}} {
		_, known := s.grown[pair[0]]
		if whole := s.grown[pair[1]]; known && whole > 0 {
			v := s.grown[pair[0]] / whole
			return &v
		}
	}
	if g := s.gauge(prefixHitRate); g != nil {
		return g.Mean
	}
	return nil
}

// energy adds up power over time, by trapezoids.
type energy struct {
	at    time.Duration
	watts float64
	sum   float64
	n     int
}

func (e *energy) add(at time.Duration, watts float64) {
	if e.n > 0 {
		e.sum += (watts + e.watts) / 2 * (at - e.at).Seconds()
	}
	e.at, e.watts, e.n = at, watts, e.n+1
}

func (e *energy) joules() *float64 {
	if e.n < 2 {
		return nil
	}
	return &e.sum
}
