package search

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/stat"
)

// window returns the requests of the steady part in order of their due times: sent after
// the warm-up, and at least a p95 latency ago.
func (w *Watch) window(now time.Duration) []observation {
	return w.sentBetween(w.warmupEnd(now), now-w.latencyP95())
}

// sentBetween returns the finished requests that were due in a time, without those that
// were due after the verdict.
func (w *Watch) sentBetween(from, to time.Duration) []observation {
	var out []observation
	for _, o := range w.observations {
		if o.due >= from && o.due <= to && (w.decided == 0 || o.due <= w.decided) {
			out = append(out, o)
		}
	}
	slices.SortStableFunc(out, func(a, b observation) int { return cmp.Compare(a.due, b.due) })
	return out
}

// warmupEnd returns the end of the warm-up: a quarter of the probe, but at least one and
// at most five p95 latencies.
func (w *Watch) warmupEnd(now time.Duration) time.Duration {
	latency := w.latencyP95()
	return min(warmupLatencies*latency, max(now/warmupDivisor, min(latency, now/latencyWarmupDivisor)))
}

// latencyP95 returns the p95 of the durations of the requests so far.
func (w *Watch) latencyP95() time.Duration {
	if len(w.observations) == 0 {
		return 0
	}
	took := make([]float64, len(w.observations))
	for i, o := range w.observations {
		took[i] = float64(o.end - o.due)
	}
	return time.Duration(stat.New(took).Quantile(latencyQuantile))
}

// A trend is the trend of the number of requests in flight.
type trend int

const (
	steady trend = iota
	rising
	growing // rises at a constant rate, so the server is overloaded
)

// trend returns the trend of an open loop. The number of requests in flight rises during
// the warm-up and varies randomly then. If more requests arrive than are served, it
// rises by the difference. minUnserved is the least unserved share of the arrivals that
// counts as growing.
func (w *Watch) trend(now time.Duration, minUnserved float64) trend {
	if !w.Open() {
		return steady
	}
	from := w.warmupEnd(now)
	mean, ended := w.inFlightByQuarter(from, now)
	if slices.Contains(mean[:], 0) {
		return rising
	}
	const parts = len(mean)
	latency, length := w.latencyP95().Seconds(), (now - from).Seconds()
	rise := mean[parts-1] - mean[0]
	// Numbers of requests in flight are independent if they are a latency apart, and each
	// has the variance of a Poisson number.
	independent := max(length/float64(parts)/max(latency, 1e-9), minQuarterLatencies)
	standardError := math.Sqrt(2 * mean[parts-1] / independent)
	if rise < risingSigma*standardError {
		return steady
	}
	// The unserved rate is the lesser of two estimates, because a burst of arrivals also
	// makes the number rise. While a server fills up, the number rises ever more slowly.
	unserved := min(rise/(length*float64(parts-1)/float64(parts)), w.Load-ended/length)
	continues := slices.IsSorted(mean[:]) && mean[parts-1]-mean[parts-2] > rise/float64(parts)
	if continues && rise > growingSigma*standardError && unserved > minUnserved*w.Load && length > growingLatencies*latency {
		return growing
	}
	return rising
}

// inFlightByQuarter returns the mean number of requests in flight at the ends of requests
// for each quarter of a time, 0 if no request ended in it, and the number of requests
// that ended.
func (w *Watch) inFlightByQuarter(from, to time.Duration) (mean [4]float64, ended float64) {
	const idle = 1e6 // inverse of the mean of an idle server, which is not 0
	var count [len(mean)]float64
	for _, o := range w.observations {
		if o.end >= from && o.end <= to && to > from {
			i := min(int(time.Duration(len(mean))*(o.end-from)/(to-from)), len(mean)-1)
			mean[i] += float64(o.inFlight)
			count[i]++
			ended++
		}
	}
	for i, n := range count {
		mean[i] = (mean[i] + n/idle) / max(n, 1)
	}
	return mean, ended
}

// served returns the requests answered per second: in the steady part, or until the last
// answer if this is more, because an overloaded server answers after sending stopped.
func (w *Watch) served(until time.Duration) (rate float64) {
	if from := w.warmupEnd(until); until > from {
		_, ended := w.flow(from, until)
		rate = ended / (until - from).Seconds()
	}
	if w.now > 0 {
		rate = max(rate, float64(len(w.observations))/w.now.Seconds())
	}
	return rate
}

// fellBehind reports whether the server answered far fewer requests than arrived in the
// last third of the time of sending. It counts requests only, so it works for any goal.
func (w *Watch) fellBehind(until time.Duration) bool {
	sending := min(until, w.last)
	arrived, ended := w.flow(sending-sending/3, sending)
	behind := arrived - ended
	return w.Open() && until >= w.Effort.MinTime && behind > (1-keptUpShare)*arrived && behind > keptUpSigma*math.Sqrt(arrived)
}

// flow counts the requests due in a time, and the requests ended in it.
func (w *Watch) flow(from, to time.Duration) (arrived, ended float64) {
	for _, o := range w.observations {
		arrived += indicator(o.due > from && o.due <= to)
		ended += indicator(o.end > from && o.end <= to)
	}
	return arrived, ended
}
