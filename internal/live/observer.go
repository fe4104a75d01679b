package live

import "github.com/tacho-bench/tacho/outcome"

// An Observer sees a run as it happens. Embed NopObserver and override the methods you need.
type Observer interface {
	Message(text string)                      // for the user
	Progress(file string, done, all int64)    // of creating prompts, or of a download in bytes if file is not empty; all is -1 if unknown
	LevelPrepared() error                     // before a level sends requests; an error ends the run
	LevelStarted(*outcome.Level, *Feed) error // an error ends the run
	LevelEnded(*outcome.Level)
}

// NopObserver ignores everything.
type NopObserver struct{}

// Message implements Observer.
func (NopObserver) Message(string) {}

// Progress implements Observer.
func (NopObserver) Progress(string, int64, int64) {}

// LevelPrepared implements Observer.
func (NopObserver) LevelPrepared() error { return nil }

// LevelStarted implements Observer.
func (NopObserver) LevelStarted(*outcome.Level, *Feed) error { return nil }

// LevelEnded implements Observer.
func (NopObserver) LevelEnded(*outcome.Level) {}

// Messages is an Observer that receives messages only.
type Messages struct {
	NopObserver
	To func(text string)
}

// Message implements Observer.
func (m Messages) Message(text string) { m.To(text) }
