package bench

import (
	"sync"
	"time"

	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/outcome"
)

// An Observer sees a run as it happens. Embed NopObserver and override the methods
// you need. The methods are called one at a time and should return quickly.
type Observer interface {
	Message(text string)                   // for the user
	Progress(file string, done, all int64) // of creating prompts, or of a download in bytes if file is not empty; all is -1 if unknown
	LevelStarted(l *outcome.Level)
	Tick(now Live) // twice a second during a level
	LevelEnded(l *outcome.Level)
}

// NopObserver ignores everything.
type NopObserver struct{}

// Message implements Observer.
func (NopObserver) Message(string) {}

// Progress implements Observer.
func (NopObserver) Progress(string, int64, int64) {}

// LevelStarted implements Observer.
func (NopObserver) LevelStarted(*outcome.Level) {}

// Tick implements Observer.
func (NopObserver) Tick(Live) {}

// LevelEnded implements Observer.
func (NopObserver) LevelEnded(*outcome.Level) {}

// Live is the state of a running level.
type Live struct {
	Sent, Finished int64 // requests
	Failed         int64 // finished requests that failed
	OutputTokens   int64
}

// An observer passes the events of a run on, and calls Tick during a level.
type observer struct {
	Observer
	mu      sync.Mutex // held during each call
	endTick func()     // nil between levels
}

func (o *observer) Message(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Observer.Message(text)
}

func (o *observer) Progress(file string, done, all int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Observer.Progress(file, done, all)
}

// LevelPrepared implements live.Observer.
func (o *observer) LevelPrepared() error { return nil }

// LevelStarted implements live.Observer.
func (o *observer) LevelStarted(l *outcome.Level, feed *live.Feed) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Observer.LevelStarted(l)
	quit, done := make(chan struct{}), make(chan struct{})
	o.endTick = func() { close(quit); <-done }
	go func() {
		defer close(done)
		for {
			select {
			case <-time.After(live.Period):
				o.tick(feed)
			case <-quit:
				return
			}
		}
	}()
	return nil
}

func (o *observer) tick(feed *live.Feed) {
	o.mu.Lock()
	defer o.mu.Unlock()
	c := &feed.Counts
	now := Live{Finished: c.Finished.Load(), Failed: c.Failed.Load(), OutputTokens: c.Tokens.Load()}
	now.Sent = c.Started.Load() // last, so that Sent is never below Finished
	o.Tick(now)
}

// LevelEnded implements live.Observer.
func (o *observer) LevelEnded(l *outcome.Level) {
	o.endTick()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Observer.LevelEnded(l)
}
