package sim

import (
	"context"
	"time"
)

// A model decides when the tokens of an answer exist, and how many there are.
type model interface {
	// start begins an answer to a request that arrived at the given time of
	// the model's clock. An error is the client's fault.
	start(a *ask, arrival time.Duration) (run, error)
	// load is what the model is busy with.
	load() load
	// forget empties the prefix cache.
	forget()
}

// A run is one answer being generated.
type run interface {
	// next waits for the next tokens.
	next(ctx context.Context) (emission, error)
	// stop gives the answer up, if it is not over.
	stop()
}

// An emission is tokens that came into being together.
type emission struct {
	tokens int
	last   bool          // nothing comes after
	eos    bool          // the last token is the end of sequence, which has no text
	finish string        // finishLength or finishStop, with last
	at     time.Duration // when they were ready to be written
	engineTimes
	cached      int // prompt tokens found in the prefix cache
	preemptions int // so far
}

// engineTimes are when things happened in the engine, by the model's clock: a
// front end may be behind.
type engineTimes struct {
	queued    time.Duration // it was told of the request
	admitted  time.Duration // it took it up
	firstMade time.Duration // it had the first token
	made      time.Duration // it had the last of these tokens
	steps     int           // in which it made tokens so far
}

// load is the state of a model, for metrics. Counts are since the start.
type load struct {
	running, waiting        int
	kvBlocks, kvUsed        int
	prefixQueries           int64 // tokens looked up in the prefix cache
	prefixHits              int64 // tokens found there
	preemptions             int64
	steps, promptTokens     int64
	busy                    time.Duration
	maxRunning, blockTokens int // of the profile; 0 if it has none
}

func (l load) kvShare() float64 {
	if l.kvBlocks == 0 {
		return 0
	}
	return float64(l.kvUsed) / float64(l.kvBlocks)
}

// sleep waits for a time of the model's clock. A pause that begins meanwhile
// puts the time off.
func (c *clock) sleep(ctx context.Context, timer **time.Timer, until time.Duration) error {
	for {
		wait := time.Until(c.wall(until))
		if wait <= 0 {
			return ctx.Err()
		}
		if *timer == nil {
			*timer = time.NewTimer(wait)
		} else {
			(*timer).Reset(wait)
		}
		select {
		case <-(*timer).C:
		case <-ctx.Done():
			(*timer).Stop()
			return ctx.Err()
		}
	}
}
