package transport

import "time"

const (
	// gatherTime is the shortest period of batches when segments come thick, and
	// gatherMost the longest: one wake-up then serves several connections.
	gatherTime = time.Millisecond
	gatherMost = 4 * time.Millisecond
	// gatherRate is how many segments a second are thick for one thread,
	gatherRate = 1_000
	// if those of one connection are so many periods apart that hardly any merge by
	// it. Of the gaps that a real engine made, 1 in 1,000 was that short.
	gatherGap = 10
	// and nobody waits for more than one in so many: the end of an answer should
	// be heard at once, for the next request follows it.
	gatherAwaited = 8
	// gatherCount is how long it counts before it judges. Streams that began
	// together have their segments together, with nothing between.
	gatherCount = 100 * time.Millisecond
)

// A gathering decides how long segments may gather before they are received.
type gathering struct {
	period time.Duration // of batches; 0 where gathering does not pay
	since  int64         // it counts since then:
	served int           // receives,
	active int           // connections that had one,
	woken  int           // and for how many the reader was woken
}

// count is called with what a connection had before: it keeps that for us.
func (g *gathering) count(counted *int64) {
	g.served++
	if *counted != g.since {
		*counted = g.since
		g.active++
	}
}

// judge looks at what was counted, once that was for long enough.
func (g *gathering) judge(now int64) {
	passed := time.Duration(now - g.since)
	if passed >= 0 && passed < gatherCount { // the wall clock may be set back
		return
	}
	*g = gathering{period: g.pays(passed), since: now}
}

// pays is the period of batches that pays, by what was counted in a time.
func (g *gathering) pays(passed time.Duration) time.Duration {
	if g.served == 0 || float64(g.served) < gatherRate*passed.Seconds() || g.woken*gatherAwaited > g.served {
		return 0
	}
	gap := passed / time.Duration(g.served) * time.Duration(g.active)
	if gap < gatherGap*gatherTime {
		return 0
	}
	return min(gap/gatherGap, gatherMost)
}
