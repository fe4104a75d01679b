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
	// it. Where a real engine was as fast, 1 gap in 4,000 was shorter than a period.
	gatherGap = 10
	// and nobody waits for more than one in so many: the end of an answer should
	// be heard at once, for the next request follows it.
	gatherAwaited = 8
	// gatherEnough is how many segments are worth a wake-up. Those that wait longer
	// have left the processor's cache.
	gatherEnough = 64
	// gatherCount is how long it counts before it judges. Streams that began
	// together have their segments together, with nothing between.
	gatherCount = 100 * time.Millisecond
)

// A gathering decides how long segments may gather before they are received.
type gathering struct {
	period  time.Duration // of batches; 0 where gathering does not pay
	since   int64         // it counts since then:
	served  int           // receives,
	quick   int           // how many of these came right behind another,
	active  int           // connections that had one,
	ended   int           // answers that ended, or something that is no event,
	awaited int           // and how many of these somebody waits for
}

// lastWords is how many segments may follow the last token of an answer at once:
// how many there were, that it is over, and the end of the body.
const lastWords = 3

// A counted is what is known of a connection for that.
type counted struct {
	in   int64 // when the count began that it was last counted in
	last int64 // when something was last received
}

// count counts a receive at a time.
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

// judge looks at what was counted, once that was for long enough.
//
//go:nosplit
//go:norace
func (g *gathering) judge(now int64) {
	passed := time.Duration(now - g.since)
	if passed >= 0 && passed < gatherCount { // the wall clock may be set back
		return
	}
	*g = gathering{period: g.pays(passed), since: now}
}

// pays is the period of batches that pays, by what was counted in a time.
//
//go:nosplit
//go:norace
func (g *gathering) pays(passed time.Duration) time.Duration {
	if g.served == 0 || time.Duration(g.served) < passed/(time.Second/gatherRate) || g.awaited*gatherAwaited > g.served {
		return 0
	}
	tokens := max(1, g.served-min(g.quick, g.ended*lastWords))
	gap := passed / time.Duration(tokens) * time.Duration(g.active)
	if gap < gatherGap*gatherTime {
		return 0
	}
	enough := passed * gatherEnough / time.Duration(g.served)
	return min(gap/gatherGap, gatherMost, max(gatherTime, enough))
}
