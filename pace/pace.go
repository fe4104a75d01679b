// Package pace says when: the arrival processes, one to a file. A schedule is
// computed from its parameters and a seed alone; no pacer reads a clock, so a
// schedule can be tested, cut and striped over machines.
package pace

import (
	"errors"
	"fmt"
	"iter"
	"time"

	"tacho"
)

// Options are the facts an arrival process is made from.
type Options struct {
	Rate      float64 // arrivals per second; +Inf is all at once
	Shape     float64 // gamma shape of the gaps: 1 is Poisson, +Inf is constant
	Count     int     // arrivals in all; 0 is no end
	Within    float64 // seconds in which all arrive, each before the end; 0 is Count/Rate, at whose end the last arrives
	Limited   bool    // a concurrency limit holds arrivals back
	Ramp      string  // "", linear or exponential
	RampStart float64 // arrivals per second at the first arrival
	RampEnd   float64 // arrivals per second at the last arrival
	Seed      uint64
}

// A Kind is one arrival process.
type Kind struct {
	Name, Doc string
	Fits      func(Options) bool // the options ask for this one
	New       func(Options) tacho.Pacer
}

// Kinds are all the arrival processes, in the order in which they are offered
// the options: the first that fits is taken.
var Kinds = []Kind{linear, exponential, closed, burst, constant, poisson, gamma}

// New chooses the arrival process that the options ask for.
func New(o Options) (tacho.Pacer, Kind, error) {
	if err := o.check(); err != nil {
		return nil, Kind{}, err
	}
	for _, k := range Kinds {
		if k.Fits(o) {
			return k.New(o), k, nil
		}
	}
	return nil, Kind{}, fmt.Errorf("no arrival process fits %+v", o)
}

func (o Options) check() error {
	switch {
	case o.Ramp != "" && o.Ramp != "linear" && o.Ramp != "exponential":
		return fmt.Errorf("unknown ramp-up strategy %q (have linear, exponential)", o.Ramp)
	case o.Ramp != "" && (o.RampStart < 0 || o.RampEnd <= 0):
		return errors.New("a ramp needs a start rate of at least 0 and an end rate above 0")
	case o.Ramp != "" && o.RampStart > o.RampEnd:
		return fmt.Errorf("a ramp goes up: its start rate %v is above its end rate %v", o.RampStart, o.RampEnd)
	case o.Ramp == "exponential" && o.RampStart == 0:
		return errors.New("an exponential ramp needs a start rate above 0")
	case o.Ramp != "" && o.Count == 0:
		return errors.New("a ramp needs a number of requests to spread over: give --num-prompts")
	case !(o.Rate > 0):
		return fmt.Errorf("request rate %v must be above 0 (inf sends everything at once)", o.Rate)
	case !(o.Shape > 0):
		return fmt.Errorf("burstiness %v must be above 0", o.Shape)
	}
	return nil
}

// seconds is the offset of a schedule as a Duration.
func seconds(s float64) time.Duration { return tacho.Nanos(s * 1e9) }

// Stripe numbers the arrivals of a schedule and keeps those of worker k of n.
// The stripes of a schedule partition it, so n machines need to agree on
// nothing but the plan and their own k. One machine is Stripe(seq, 0, 1).
func Stripe(seq iter.Seq[time.Duration], k, n uint64) iter.Seq2[uint64, time.Duration] {
	return func(yield func(uint64, time.Duration) bool) {
		i := uint64(0)
		for at := range seq {
			if i%n == k && !yield(i, at) {
				return
			}
			i++
		}
	}
}
