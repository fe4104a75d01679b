package run

import (
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// A list of loads ends far past the knee, and the last level's report explains
// why. --keep-going runs all levels. Other lists and lower loads continue.
func TestListEndsFarPastTheKnee(t *testing.T) {
	for keepGoing, want := range map[bool][]int{false: {0, 1, 2, 4, 5, 6}, true: {0, 1, 2, 3, 4, 5, 6, 7}} {
		p := plan.Default()
		for name, values := range map[string]string{"random-output-len": "4,5", "max-concurrency": "1,4,16,64"} {
			must.Do(t, p.Set(name, values))
		}
		p.KeepGoing = keepGoing
		c := &chooser{r: &Runner{setting: &setting{job: &job{Asked: p, env: Env{Observer: live.NopObserver{}}}}}, left: p.Levels()}
		var ran []int
		for len(c.left) > 0 {
			l := c.left[0]
			c.left = c.left[1:]
			ran = append(ran, l.Index)
			// A server with four slots.
			now := search.Seen{Throughput: float64(min(l.Concurrency, 4)), Latency: float64(max(l.Concurrency, 4))}
			said := c.end(l, now)
			c.past = append(c.past, pastLevel{outcome.Setting{Index: l.Index, Coordinates: l.Coordinates}, now})
			if (len(said) == 1) != (l.Concurrency == 16 && !keepGoing) {
				t.Errorf("level %s: %v", l.Name, said)
			}
			if len(said) == 1 && !strings.Contains(said[0].Text, "(1) because throughput has not grown since --max-concurrency 4 (4 requests/s there, 4 here), and requests take 4 times as long") {
				t.Errorf("%s", said[0].Text)
			}
		}
		if !slices.Equal(ran, want) {
			t.Errorf("keep going %v: levels %v, want %v", keepGoing, ran, want)
		}
	}
}
