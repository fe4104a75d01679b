package run

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// loads are options whose larger values mean more load.
var loads = []string{"request-rate", "max-concurrency", "num-prompts"}

// end drops the levels made pointless by level l and returns a reason for its
// report: all levels with more load, if all requests of l failed or l is far
// past the knee.
func (c *chooser) end(l plan.Level, now search.Seen) []metric.Reason {
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
	text := fmt.Sprintf("skipped levels with more load (%d) because %s: use --keep-going to run all levels", n, why)
	c.r.say("%s: %s.", l.Name, text)
	return []metric.Reason{{Code: "list-ended", Severity: metric.Note, Text: text}}
}

// leaveOut drops the levels made pointless by earlier levels.
func (c *chooser) leaveOut() {
	for _, p := range c.past {
		if !c.r.Asked.KeepGoing && c.hopeless(p.Coordinates, p.Seen) != "" {
			c.drop(p.Coordinates)
		}
	}
}

// drop removes the levels with more load than at and returns their number.
func (c *chooser) drop(at outcome.Coordinates) int {
	n := len(c.left)
	c.left = slices.DeleteFunc(c.left, func(l plan.Level) bool { return moreLoad(l.Coordinates, at) && !c.has(l.Index) })
	return n - len(c.left)
}

// hopeless explains why more load than at is pointless, or returns an empty
// string.
func (c *chooser) hopeless(at outcome.Coordinates, now search.Seen) string {
	if now.Failed {
		return "all requests failed"
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
				return fmt.Sprintf("throughput has not grown since --%s %s (%s requests/s there, %s here), and requests take %s times as long",
					name, value, metric.Brief(before.Throughput), metric.Brief(now.Throughput), metric.Brief(now.Latency/before.Latency))
			}
		}
	}
	return ""
}

// loadOf returns the value of a load option, or 0 if the option is not a list.
func loadOf(at outcome.Coordinates, name string) float64 {
	value, _ := at.Of(name)
	f, err := strconv.ParseFloat(value, 64)
	if err != nil {
		return 0
	}
	return f
}

// moreLoad reports whether a and b differ only in load, and a has more.
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
