package metric

import "fmt"

const (
	leastMillis = 5   // times shorter than this need not be known any better
	shareWeight = 2.5 // makes a tenth of the events as bad as gaps that are a quarter off
	leastStep   = 1   // milliseconds that a server takes at least to make a token
	lateGaps    = 2   // windows of more than so many gaps surely hold events of several
)

// clockRules ask how far the times can be trusted.
var clockRules = []Rule{
	unbuffered(Rule{
		Code: "coalesced", Unit: "share", Note: 0, Degraded: 0.02, Invalid: never,
		Do:  "give the client more CPU, or --clock wire; where the server sends tokens together, read TPOT and not ITL",
		Doc: fmt.Sprintf("by how much gaps between tokens, or their p99, may be off at p99 / p99 ITL, taken as %d ms at least. A token event that shared a read with a later one came before its time, and after its connection was last seen empty. Of older runs, which do not tell when that was, %g times the share of such events", leastMillis, shareWeight),
		value: func(s *Summary) (float64, bool) {
			d := s.Dist(ITL)
			if d.Stats == nil {
				return 0, false
			}
			if s.ITLSlackUnknown {
				return shareWeight * *s.CoalescedShare(), true
			}
			return uncertain(d.Stats, s.ITLSlackMillis), true
		},
		inWords: coalescedWords,
	}),
	unbuffered(Rule{
		Code: "late-reads", Unit: "gaps", Note: never, Degraded: never, Invalid: lateGaps,
		Do:  "give the client more CPU, or --clock wire",
		Doc: fmt.Sprintf("by how much gaps may be off at p99 / p99 of the gaps that are exact, or of all gaps at their least: above %d, tokens of several steps of the server were read at once, for the client was late. It is asked where %d gaps or more are exact, and their p99 is %d ms or more", lateGaps, exactEnough, leastStep),
		value: func(s *Summary) (float64, bool) {
			d := s.Dist(ITL)
			if s.ExactGapMillis == nil || d.Stats == nil || *s.ExactGapMillis < leastStep {
				return 0, false
			}
			return s.ITLSlackMillis / max(*s.ExactGapMillis, d.Stats.Bound(99).Low, leastMillis), true
		},
		inWords: func(s *Summary, v float64) string {
			return fmt.Sprintf("the client read late, and tokens that came %.1f ms apart or less have one time: gaps may be off by %.1f times the usual", s.ITLSlackMillis, v)
		},
	}),
	unbuffered(Rule{
		Code: "ttft-bound", Unit: "share", Note: 0.005, Degraded: 0.02, Invalid: never,
		Do:  "give the client more CPU, or --clock wire",
		Doc: fmt.Sprintf("by how much TTFT, or its p99, may be off at p99 / p99 TTFT, taken as %d ms at least. A request left within its write and not before it, and a first token may have shared a read with later ones", leastMillis),
		value: func(s *Summary) (float64, bool) {
			d := s.Dist(TTFT)
			if d.Stats == nil {
				return 0, false
			}
			return uncertain(d.Stats, s.TTFTSlackMillis), true
		},
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("when some requests left, or had their first token, is known within limits only: TTFT, or its p99, may be off by %s ms (P99 TTFT: %s)", offWords(s.Dist(TTFT).Stats, s.TTFTSlackMillis), s.boundWords(TTFT))
		},
	}),
	{
		Code: "clock-step", Unit: "share", Note: never, Degraded: 0, Invalid: 0.10,
		Do:    "stop time synchronization while measuring",
		Doc:   fmt.Sprintf("requests during which the wall clock was moved by more than %v and more than %g of their time / all: their latencies are off by as much", clockStepMin, clockStepShare),
		value: func(s *Summary) (float64, bool) { return ratio(s.Clock.Steps, s.Requests) },
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the wall clock moved during %d requests, by up to %.3f s", s.Clock.Steps, s.Clock.WorstStepS)
		},
	},
	{
		Code: "read-clock", Unit: "share", Note: 0, Degraded: never, Invalid: never,
		Do:    "read latencies as upper bounds; on Linux, HTTP/1.1 over TCP has kernel times",
		Doc:   "requests stamped when the read returned and not by the kernel / all: delays of our own process are in the latencies",
		value: func(s *Summary) (float64, bool) { return ratio(s.Clock.Read, s.Clock.Wire+s.Clock.Kernel+s.Clock.Read) },
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("%s of the requests have no kernel receive times, so delays of the client are in their latencies", percent(v))
		},
	},
	{
		Code: "wire-missed", Unit: "share", Note: 0, Degraded: never, Invalid: never,
		Do:    "read these times as the kernel's; give the client more CPU",
		Doc:   "times that the wire clock missed, of requests that it stamped / all of these: they are the kernel's",
		value: func(s *Summary) (float64, bool) { return ratio(s.Clock.FellBack, s.Clock.WireTimes) },
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the wire clock missed %d of %d times, which are the kernel's", s.Clock.FellBack, s.Clock.WireTimes)
		},
	},
}

// uncertain is by how much values, and their p99, may be off, as a part of it.
func uncertain(s *Stats, off float64) float64 {
	return offMillis(s, off) / max(s.Percentile(99), leastMillis)
}

// offMillis is by how much values, which are off by so much at p99, or their p99 may be
// off.
func offMillis(s *Stats, off float64) float64 {
	b := s.Bound(99)
	return max(off, b.High-b.Low)
}

// offWords is the same with as many digits as show it.
func offWords(s *Stats, off float64) string {
	v := offMillis(s, off)
	if v < 0.01 {
		return fmt.Sprintf("%.1g", v)
	}
	return fmt.Sprintf("%.2f", v)
}

// boundWords is what the p99 of m lies between.
func (s *Summary) boundWords(m *Metric) string {
	stats := s.Classic(m)
	return stats.Bound(99).String()
}

// String gives both ends in milliseconds.
func (b Bound) String() string {
	low, high := fmt.Sprintf("%.2f", b.Low), fmt.Sprintf("%.2f", b.High)
	if low == high {
		return low + " ms either way"
	}
	return low + " to " + high + " ms"
}

func coalescedWords(s *Summary, _ float64) string {
	share := percent(*s.CoalescedShare())
	if s.ITLSlackUnknown {
		return share + " of the token events shared a read with a later one, and the run does not tell by how much gaps may be off"
	}
	return fmt.Sprintf("%s of the token events shared a read with a later one, so gaps, or their p99, may be off by %s ms (P99 ITL: %s)", share, offWords(s.Dist(ITL).Stats, s.ITLSlackMillis), s.boundWords(ITL))
}
