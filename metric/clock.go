package metric

import "fmt"

const (
	minMillis     = 5 // milliseconds; shorter times need no better precision
	minStepMillis = 1 // milliseconds; no server generates a token faster
	lateGap       = 1 // an uncertainty of more gaps than this contains events of two steps
	lateGaps      = 2 // an uncertainty of more gaps than this contains events of several steps

	maxUncertain = 0.02 // share of a p99 that may be uncertain in a VALID level
)

// gapFigures are computed from single gaps between token events, firstFigures from the first token event.
// Errors of single gaps cancel out in the mean over an answer (TPOT).
var (
	gapFigures   = []*Metric{ITL, TokenGap, ttst, LongestGap, Stalls}
	firstFigures = []*Metric{TTFT, TTFTDue, TTFTContent, prefillRate}
)

// clockRules check the timestamps.
var clockRules = []Rule{
	unbuffered(Rule{
		Code: "coalesced", Unit: "share", Note: 0, Degraded: maxUncertain, Invalid: never,
		Figures: gapFigures,
		Action:  "add client CPU, use --clock wire, or read TPOT",
		Doc:     fmt.Sprintf("largest error of the gaps between tokens at p99, or of their p99 / p99 ITL, but at least %d ms. A token event that shared a read with a later event arrived before its timestamp. The next rule replaces this one if the error is larger than a gap", minMillis),
		value: func(s *Summary) (float64, bool) {
			d := s.Dist(ITL)
			if late, _ := lateReads(s); d.Stats == nil || late > lateGap {
				return 0, false
			}
			return uncertain(d.Stats, s.ITLSlackMillis), true
		},
		text: coalescedWords,
		actionFor: func(s *Summary) string {
			if _, lumpy := s.lumpy(); lumpy { // TPOT is in doubt too
				return "add client CPU, or use --clock wire"
			}
			return ""
		},
	}),
	unbuffered(Rule{
		Code: "late-reads", Unit: "gaps", Note: never, Degraded: lateGap, Invalid: lateGaps,
		Figures: gapFigures,
		Action:  "add client CPU, or use --clock wire",
		Doc:     fmt.Sprintf("largest error of the gaps at p99 / p99 of the exact gaps, or the lower bound of the p99 of all gaps. Above %d, the client read tokens of several steps together. The rule needs at least %d exact gaps with a p99 of %d ms or more", lateGaps, MinExactGaps, minStepMillis),
		value:   lateReads,
		text: func(_ *Summary, v float64) string {
			if v > lateGaps {
				return "the client read tokens of several steps together"
			}
			return "the client read tokens of two steps together, so ITL is uncertain"
		},
	}),
	unbuffered(Rule{
		Code: "ttft-bound", Unit: "share", Note: 0.005, Degraded: maxUncertain, Invalid: never,
		Figures: firstFigures,
		Action:  "give the client more CPU or use --clock wire",
		Doc:     fmt.Sprintf("largest error of TTFT at p99, or of its p99 / p99 TTFT, but at least %d ms. A request left during its write, and a first token may have shared a read with later tokens", minMillis),
		value: func(s *Summary) (float64, bool) {
			d := s.Dist(TTFT)
			if d.Stats == nil {
				return 0, false
			}
			return uncertain(d.Stats, s.TTFTSlackMillis), true
		},
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("some send or first-token times are uncertain, so TTFT may be off by %s", Duration(offMillis(s.Dist(TTFT).Stats, s.TTFTSlackMillis)))
		},
	}),
	{
		Code: "clock-step", Unit: "share", Note: never, Degraded: 0, Invalid: 0.10,
		Action: "stop time synchronization during the run",
		Doc:    fmt.Sprintf("requests during which the wall clock moved by more than %v and more than %g of their duration / all requests. Their latencies are off by as much", clockStepMin, clockStepShare),
		value:  func(s *Summary) (float64, bool) { return ratio(s.Clock.Steps, s.Requests) },
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the wall clock moved during %d requests, by up to %s", s.Clock.Steps, Duration(1e3*s.Clock.WorstStepS))
		},
	},
	{
		Code: "read-clock", Unit: "share", Note: 0, Degraded: never, Invalid: never,
		Action: "read latencies as upper bounds, or use HTTP/1.1 on Linux",
		Doc:    "requests stamped when the read returned instead of by the kernel / all requests. Latencies include delays of the client",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Clock.Read, s.Clock.Wire+s.Clock.Kernel+s.Clock.Read) },
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("%s of requests have no kernel timestamps, so their latencies include client delays", Percent(v))
		},
	},
	{
		Code: "wire-missed", Unit: "share", Note: 0, Degraded: never, Invalid: never,
		Action: "give the client more CPU",
		Doc:    "timestamps missed by the wire clock / timestamps of requests with the wire clock. Kernel timestamps replace them",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Clock.FellBack, s.Clock.WireTimes) },
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the wire clock missed %d of %d timestamps, and kernel timestamps replace them", s.Clock.FellBack, s.Clock.WireTimes)
		},
	},
}

// uncertain returns offMillis as a share of the p99.
func uncertain(s *Stats, off float64) float64 {
	return offMillis(s, off) / max(s.Percentile(99), minMillis)
}

// offMillis returns the largest error of the values or of their p99. off is the error of the values at
// p99.
func offMillis(s *Stats, off float64) float64 {
	b := s.Bound(99)
	return max(off, b.High-b.Low)
}

// String returns both ends in milliseconds.
func (b Bound) String() string {
	low, high := Brief(b.Low), Brief(b.High)
	if low == high {
		return low + " ms"
	}
	return low + " to " + high + " ms"
}

func coalescedWords(s *Summary, _ float64) string {
	return fmt.Sprintf("%s of events were read late, so ITL may be off by %s", Percent(*s.CoalescedShare()), Duration(offMillis(s.Dist(ITL).Stats, s.ITLSlackMillis)))
}

// lateReads returns the largest error of the gaps at p99, in gaps between tokens.
func lateReads(s *Summary) (float64, bool) {
	d := s.Dist(ITL)
	if s.ExactGapMillis == nil || d.Stats == nil || *s.ExactGapMillis < minStepMillis {
		return 0, false
	}
	return s.ITLSlackMillis / max(*s.ExactGapMillis, d.Stats.Bound(99).Low, minMillis), true
}
