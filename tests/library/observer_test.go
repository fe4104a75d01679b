package library

import (
	"sync"
	"testing"

	"github.com/tacho-bench/tacho/bench"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// A counter counts the calls of an Observer. overlaps counts calls during another call.
type counter struct {
	bench.NopObserver
	calling                            sync.Mutex
	messages, started, ended, overlaps int
	ticks                              []bench.Live
}

// call runs one method.
func (c *counter) call(do func()) {
	if !c.calling.TryLock() {
		c.overlaps++
		return
	}
	defer c.calling.Unlock()
	do()
}

func (c *counter) Message(string)              { c.call(func() { c.messages++ }) }
func (c *counter) LevelStarted(*outcome.Level) { c.call(func() { c.started++ }) }
func (c *counter) Tick(now bench.Live)         { c.call(func() { c.ticks = append(c.ticks, now) }) }
func (c *counter) LevelEnded(*outcome.Level)   { c.call(func() { c.ended++ }) }

// An observer sees each level, and its requests while it runs.
func TestObserver(t *testing.T) {
	p := plan.Default()
	p.Sim, p.NumPrompts, p.RunsDir = "vllm-8b-h100", 20, t.TempDir()
	if err := p.Set("request-rate", "20,40"); err != nil {
		t.Fatal(err)
	}
	c := &counter{}
	result, err := bench.Run(t.Context(), p, bench.Options{Observer: c})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Levels) != 2 || c.started != 2 || c.ended != 2 || c.messages == 0 || len(c.ticks) == 0 || c.overlaps > 0 {
		t.Errorf("%d levels, started %d, ended %d, %d messages, %d ticks, %d overlaps", len(result.Levels), c.started, c.ended, c.messages, len(c.ticks), c.overlaps)
	}
	for _, now := range c.ticks {
		if now.Finished > now.Sent || now.Sent > int64(p.NumPrompts) || now.Failed > 0 {
			t.Errorf("%+v", now)
		}
	}
}
