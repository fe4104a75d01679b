package conclusion

import (
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
)

// Shown returns the index of the level that stands for its run: the level of the conclusion, or the last
// level that is not INVALID. If all levels are INVALID, it is the first.
func (c *Conclusion) Shown(levels []outcome.Level) (place int) {
	for i := range levels {
		if s := &levels[i].Summary; s.Throughput != nil && s.Verdict.Severity != metric.Invalid {
			place = i
		}
	}
	for _, load := range []*Load{c.Headline.Load, c.Missed, c.Held} {
		if load != nil {
			place = load.Level
		}
	}
	return place
}
