// Package pace computes the arrival times of requests, with one file per arrival process. A schedule depends only
// on its parameters and a seed. Because no pacer reads a clock, schedules can be tested, cut and striped over
// machines.
package pace

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"time"

	"github.com/tacho-bench/tacho"
)

// Options are the parameters of an arrival process.
type Options struct {
	Rate      float64 // arrivals per second; +Inf sends everything at once
	Shape     float64 // gamma shape of the gaps: 1 is Poisson, +Inf is constant
	Count     int     // number of arrivals; 0 is unlimited
	Within    float64 // seconds for all arrivals, each before the end; 0 is Count/Rate, with the last arrival at the end
	Limited   bool    // a concurrency limit delays arrivals
	Ramp      string  // "", linear or exponential
	RampStart float64 // arrivals per second at the first arrival
	RampEnd   float64 // arrivals per second at the last arrival
	Seed      uint64
}

// A Kind is one arrival process.
type Kind struct {
	Name string
	Fits func(Options) bool // reports whether the options select this process
	New  func(Options) tacho.Pacer
}

// Kinds lists all arrival processes. New uses the first one fitting the options.
var Kinds = []Kind{linear, exponential, closed, burst, constant, poisson, gamma}

// New returns the arrival process selected by the options.
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

// Times beyond maxSpan seconds overflow a Duration after a few sums. minRate is one arrival in 11 days.
const (
	minRate = 1e-6
	maxSpan = 1e9
)

func (o Options) check() error {
	if err := o.checkSpan(); err != nil {
		return err
	}
	switch {
	case o.Ramp != "" && o.Ramp != "linear" && o.Ramp != "exponential":
		return fmt.Errorf("unknown ramp-up strategy %q (have linear, exponential)", o.Ramp)
	case o.Ramp != "" && (o.RampStart < 0 || o.RampEnd <= 0):
		return errors.New("a ramp needs a start rate of at least 0 and an end rate above 0")
	case o.Ramp != "" && o.RampStart > o.RampEnd:
		return fmt.Errorf("the start rate %v of a ramp must not be above its end rate %v", o.RampStart, o.RampEnd)
	case o.Ramp == "exponential" && o.RampStart == 0:
		return errors.New("an exponential ramp needs a start rate above 0")
	case o.Ramp != "" && o.Count == 0:
		return errors.New("a ramp needs a number of requests: set --num-prompts")
	case !(o.Rate > 0):
		return fmt.Errorf("request rate %v must be above 0 (inf sends everything at once)", o.Rate)
	case !(o.Shape > 0):
		return fmt.Errorf("burstiness %v must be above 0", o.Shape)
	}
	return nil
}

// checkSpan rejects schedules that are longer than any clock.
func (o Options) checkSpan() error {
	rate, name := o.Rate, "request rate"
	if o.Ramp != "" {
		rate, name = o.RampEnd, "end rate of a ramp"
	}
	span := float64(o.Count) / rate
	switch {
	case !(rate > 0) || math.IsInf(rate, 1):
		return nil
	case rate < minRate:
		return fmt.Errorf("%s %v: want at least %v, which is one request in 11 days", name, rate, minRate)
	case o.Within == 0 && span > maxSpan:
		return fmt.Errorf("%d requests at %s %v take %.3g years: want fewer, or a higher rate", o.Count, name, rate, span/(365*24*3600))
	}
	return nil
}

// seconds converts an offset in seconds to a Duration.
func seconds(s float64) time.Duration { return tacho.Nanos(s * 1e9) }

// Stripe numbers the arrivals of a schedule and returns the arrivals of worker k of n. The stripes of a schedule
// partition it, so n machines only need to agree on the plan and on their own k. On a single machine, use
// Stripe(seq, 0, 1).
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
