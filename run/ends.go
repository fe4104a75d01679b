package run

import (
	"fmt"
	"slices"
	"strconv"

	"tacho/metric"
	"tacho/outcome"
	"tacho/plan"
	"tacho/search"
)

// loads are the options of which a larger value is more load.
var loads = []string{"request-rate", "max-concurrency", "num-prompts"}

// end leaves out the levels that have no use any more now that l is over, and
// tells the reader of l: those with more load than one at which all requests
// failed, or that is far past the knee.
func (c *course) end(l plan.Level, now search.Seen) []metric.Reason {
	if c.r.Asked.KeepGoing {
		return nil
	}
	why := c.hopeless(l.Coordinates, now)
	if why == "" {
		return nil
	}
	n := c.drop(l.Coordinates)
	if n == 0 {
		return nil
	}
	text := fmt.Sprintf("levels with more load are left out (%d): %s; --keep-going runs them all", n, why)
	c.r.say("%s: %s.", l.Name, text)
	return []metric.Reason{{Code: "list-ended", Severity: metric.Note, Text: text}}
}

// leaveOut leaves out the levels that have no use after those before.
func (c *course) leaveOut() {
	for _, p := range c.past {
		if !c.r.Asked.KeepGoing && c.hopeless(p.Coordinates, p.Seen) != "" {
			c.drop(p.Coordinates)
		}
	}
}

// drop leaves out the levels with more load than one, and says how many they are.
func (c *course) drop(at outcome.Coordinates) int {
	n := len(c.left)
	c.left = slices.DeleteFunc(c.left, func(l plan.Level) bool { return moreLoad(l.Coordinates, at) && !c.has(l.Index) })
	return n - len(c.left)
}

// hopeless says why more load than that of a level is of no use; empty if it is.
func (c *course) hopeless(at outcome.Coordinates, now search.Seen) string {
	if now.Failed {
		return "all requests failed here"
	}
	for _, name := range loads[:2] {
		for _, p := range c.past {
			if !slices.Equal(p.Coordinates.Without(name), at.Without(name)) {
				continue
			}
			before := p.Seen
			before.Load, now.Load = loadOf(p.Coordinates, name), loadOf(at, name)
			if before.Load > 0 && search.FarPast(before, now) {
				value, _ := p.Coordinates.Of(name)
				return fmt.Sprintf("since --%s %s throughput has not grown (%.4g requests/s there, %.4g here), and requests take %.1f times as long",
					name, value, before.Throughput, now.Throughput, now.Latency/before.Latency)
			}
		}
	}
	return ""
}

// loadOf is the value of a load; 0 where it is no list.
func loadOf(at outcome.Coordinates, name string) float64 {
	value, _ := at.Of(name)
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0
	}
	return f
}

// moreLoad says whether a has more load than b, and nothing else sets them apart.
func moreLoad(a, b outcome.Coordinates) bool {
	more := false
	for _, name := range loads {
		x, y := loadOf(a, name), loadOf(b, name)
		if x < y {
			return false
		}
		more = more || x > y
		a, b = a.Without(name), b.Without(name)
	}
	return more && slices.Equal(a, b)
}
