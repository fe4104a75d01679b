package socket

import "time"

const (
	// gatherTime and gatherMost are the shortest and the longest gathering period. One
	// wakeup per period then serves several connections.
	gatherTime = time.Millisecond
	gatherMost = 4 * time.Millisecond
	// Gathering needs at least gatherRate segments per second on one thread.
	gatherRate = 1_000
	// The gaps between segments of one connection must be at least gatherGap periods, so
	// that gathering merges hardly any. With a real engine of that speed, 1 gap in 4,000 was
	// shorter than a period.
	gatherGap = 10
	// At most one segment in gatherAwaitedPart may be the end of an awaited response. The
	// client should see such an end at once, because the next request follows it.
	gatherAwaitedPart = 8
	// gatherEnough segments justify a wakeup. If more segments wait, they leave the CPU
	// cache.
	gatherEnough = 64
	// gatherCount is how long segments are counted before the period changes. The segments
	// of streams that began together arrive in bursts with silences between them, so a
	// shorter count would mislead.
	gatherCount = 100 * time.Millisecond
)

// gathering decides how long segments may wait in the sockets before the thread receives
// them.
type gathering struct {
	period  time.Duration // 0 means do not gather
	since   int64         // start of the count
	served  int           // receives
	quick   int           // receives less than gatherTime after the one before on the same connection
	active  int           // connections with at least one receive
	ended   int           // receives that did not end with whole events, such as the end of a response
	awaited int           // ended receives that something waits for
}

// tailSegments is how many segments may follow the last token of a response immediately:
// the usage, the [DONE] event, and the last chunk.
const tailSegments = 3

// counted is the per-connection state of gathering.
type counted struct {
	in   int64 // gathering.since at the last receive
	last int64 // time of the last receive
}

// count counts a receive at time now.
//
//go:nosplit
//go:norace
func (g *gathering) count(c *counted, now int64) {
	g.served++
	if now-c.last < int64(gatherTime) {
		g.quick++
	}
	if c.in != g.since {
		g.active++
	}
	*c = counted{g.since, now}
}

// update chooses the period and restarts the count after gatherCount.
//
//go:nosplit
//go:norace
func (g *gathering) update(now int64) {
	passed := time.Duration(now - g.since)
	if passed >= 0 && passed < gatherCount { // the wall clock may be set back
		return
	}
	*g = gathering{period: g.bestPeriod(passed), since: now}
}

// bestPeriod returns the period for the counts of the time passed, or 0 if gathering does
// not pay.
//
//go:nosplit
//go:norace
func (g *gathering) bestPeriod(passed time.Duration) time.Duration {
	if g.served == 0 || time.Duration(g.served) < passed/(time.Second/gatherRate) || g.awaited*gatherAwaitedPart > g.served {
		return 0
	}
	tokens := max(1, g.served-min(g.quick, g.ended*tailSegments))
	gap := passed / time.Duration(tokens) * time.Duration(g.active)
	if gap < gatherGap*gatherTime {
		return 0
	}
	enough := passed * gatherEnough / time.Duration(g.served)
	return min(gap/gatherGap, gatherMost, max(gatherTime, enough))
}
