package instrument

import (
	"time"

	"github.com/tacho-bench/tacho/metric"
)

// enough is the minimum number of readings for the mean of a gauge.
const enough = 2

// Summarize summarizes the samples of each target, in the order in which the
// targets were first read. Samples before and after the stage, which took the given
// seconds, count for counters but not for gauges.
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

// series accumulates the samples of one target.
type series struct {
	in     metric.Instruments
	last   map[Quantity]float64
	grown  map[Quantity]float64 // increase of counters since the first sample
	gauges map[Quantity]*gauge
	power  energy
	end    float64 // of the stage, in seconds
}

type gauge struct {
	sum, max float64
	n        int
	positive int // readings above 0
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
			if v > 0 {
				g.positive++
			}
		}
	}
	if watts, ok := x.Values[powerWatts]; ok {
		s.power.add(x.At, watts)
	}
}

// grow follows a counter. If the counter decreased, the server was restarted,
// so the whole value is new.
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
	in.Corrupted, in.Rejected = s.counter(corrupted), s.counter(rejected)
	in.PrefixHitShare = s.hitShare()
	in.TTFTMillis, in.QueueMillis = s.mean(ttftSum, ttftCount), s.mean(queueSum, queueCount)
	in.TPOTMillis, in.E2ELMillis = s.mean(tpotSum, tpotCount), s.mean(e2elSum, e2elCount)
	in.PrefillMillis, in.DecodeMillis = s.mean(prefillSum, prefillCount), s.decode()
	in.InferenceMillis, in.Timed = s.mean(inferenceSum, inferenceCount), s.counter(e2elCount)
	in.Speculation, in.Diffusion = s.speculation(), s.diffusion()
	in.More = s.more()
	in.EnergyJoules = s.counter(energyJoules)
	if in.EnergyJoules == nil {
		in.EnergyJoules = s.power.joules()
	}
	return in
}

// figures compute the figures of metric.Instruments.More.
var figures = map[string]func(*series) float64{
	metric.PageWaitingCapacity: peak(waitingCapacity),
	metric.PageWaitingDeferred: peak(waitingDeferred),
	metric.PageWaitingGrammar:  peak(waitingGrammar),
	metric.PageKVFetch:         peak(kvFetch),
	metric.PagePaused:          peak(paused),
	metric.PageAsleep:          func(s *series) float64 { return s.over(asleep, func(g *gauge) int { return g.n }) },
	metric.PageCachedHost:      part(cachedHost, cachedDevice, cachedHost, cachedStorage),
	metric.PageCachedStorage:   part(cachedStorage, cachedDevice, cachedHost, cachedStorage),
	metric.PageExternalHits:    part(externalHits, externalQueries),
	metric.PageMediaHits:       part(mediaHits, mediaQueries),
	metric.PageEvicted:         func(s *series) float64 { return s.grown[evictedTokens] },
	metric.PageEviction:        average(evictionSum, evictionCount),
	metric.PageBlockLifetime:   average(lifetimeSum, lifetimeCount),
	metric.PageBlockIdle:       average(idleSum, idleCount),
	metric.PageBlockReuse:      average(reuseSum, reuseCount),
	metric.PageStageProcess:    average(processSum, processCount),
	metric.PageStagePrefill:    average(forwardSum, forwardCount),
	metric.PageStageChunk:      average(chunksSum, chunksCount),
	metric.PageRequestTPOT:     average(requestTPOTSum, requestTPOTs),
	metric.PageDraftLength:     func(s *series) float64 { return s.over(draftLength, func(g *gauge) int { return g.positive }) },
	metric.PageDraftRate:       func(s *series) float64 { return s.over(draftRate, func(g *gauge) int { return g.positive }) },
}

// more returns the figures above 0. The others say nothing about the run.
func (s *series) more() (out map[string]float64) {
	for name, of := range figures {
		if v := of(s); v > 0 {
			if out == nil {
				out = map[string]float64{}
			}
			out[name] = v
		}
	}
	return out
}

func peak(q Quantity) func(*series) float64 {
	return func(s *series) float64 {
		if g := s.gauges[q]; g != nil {
			return g.max
		}
		return 0
	}
}

func average(sum, count Quantity) func(*series) float64 {
	return func(s *series) float64 {
		if v := s.mean(sum, count); v != nil {
			return *v
		}
		return 0
	}
}

// part is the increase of a counter as a share of the increase of all counters.
func part(q Quantity, all ...Quantity) func(*series) float64 {
	return func(s *series) float64 {
		whole := 0.0
		for _, one := range all {
			whole += s.grown[one]
		}
		return s.grown[q] / max(whole, 1)
	}
}

// over divides the sum of a gauge by a number of readings.
func (s *series) over(q Quantity, readings func(*gauge) int) float64 {
	g := s.gauges[q]
	if g == nil || readings(g) == 0 {
		return 0
	}
	return g.sum / float64(readings(g))
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

// mean is the mean of a distribution, in milliseconds.
func (s *series) mean(sum, count Quantity) *float64 {
	n := s.grown[count]
	if n <= 0 {
		return nil
	}
	v := max(1e3*s.grown[sum]/n, 0) // servers with two clocks report negative times
	return &v
}

// decode is the mean decode time of a request. Runs of vLLM recorded before this
// metric was read contain inter-token gaps of the same clock instead. Other servers
// with gaps do not count prefix cache queries.
func (s *series) decode() *float64 {
	_, read := s.last[decodeCount]
	_, vllm := s.last[prefixQueries]
	if read || !vllm {
		return s.mean(decodeSum, decodeCount)
	}
	return s.mean(tpotSum, e2elCount)
}

// speculation returns nil if the server drafted no tokens.
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

// hitShare is the fraction of prompt tokens found in a cache, from the server's
// counters if possible. A rate computed by the server comes last, because its time
// window is unknown.
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

// energy integrates power over time with the trapezoidal rule.
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
