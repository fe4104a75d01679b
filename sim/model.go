package sim

import (
	"context"
	"time"
)

// A model decides when the tokens of an answer are generated, and how many.
type model interface {
	// start begins the answer to a request that arrived at the given model time. An
	// error is the client's fault.
	start(a *generation, arrival time.Duration) (run, error)
	// load is the model's current load.
	load() load
	// dropCache empties the prefix cache.
	dropCache()
}

// A run is one answer being generated.
type run interface {
	// next waits for the next tokens.
	next(ctx context.Context) (emission, error)
	// stop cancels the answer if it is not finished.
	stop()
}

// An emission is a set of tokens generated together.
type emission struct {
	tokens int
	last   bool          // no emission follows
	eos    bool          // the last token is the end of sequence, which has no text
	finish string        // finishLength or finishStop, with last
	at     time.Duration // when the tokens were ready to be written
	engineTimes
	cached      int // prompt tokens found in the prefix cache
	preemptions int // so far
}

// engineTimes are times in the engine, in model time. A front end may deliver
// tokens later.
type engineTimes struct {
	queued    time.Duration // the engine received the request
	admitted  time.Duration // the engine admitted the request
	firstMade time.Duration // the engine generated the first token
	made      time.Duration // the engine generated the last of these tokens
	steps     int           // steps with tokens of the request so far
}

// load is the state of a model, for metrics. Counters start with the server.
type load struct {
	running, waiting        int
	kvBlocks, kvUsed        int
	prefixQueries           int64 // tokens looked up in the prefix cache
	prefixHits              int64 // tokens found in the prefix cache
	preemptions             int64
	steps, promptTokens     int64
	busy                    time.Duration
	maxRunning, blockTokens int // of the profile; 0 if there is none
}

func (l load) kvShare() float64 {
	if l.kvBlocks == 0 {
		return 0
	}
	return float64(l.kvUsed) / float64(l.kvBlocks)
}

// sleep waits until the given model time. A pause that begins meanwhile delays the
// return.
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
