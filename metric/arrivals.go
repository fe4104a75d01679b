package metric

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// arrivals are the token events of successful streams, used to find the busiest second. Up to the limit
// of a digest, each event keeps its time. Above the limit, events are counted in bins of a millisecond,
// or of a power of two of milliseconds if a long run would need more than maxBins bins.
type arrivals struct {
	exact []arrival
	bins  []arrivalBin
	shift int  // a bin is 2^shift milliseconds wide
	spilt bool // events are in bins
}

type arrival struct {
	at     time.Duration
	tokens int64 // in units of 1/tokenParts, so that sums do not depend on order
}

type arrivalBin struct{ events, tokens int64 }

const (
	tokenParts = 1 << 20
	maxBins    = 1 << 18 // 4 MiB, or 4 minutes of milliseconds
)

// add adds the events of a record.
func (a *arrivals) add(r *tacho.Record, limit int) {
	if !r.OK() || r.Sent == tacho.Never {
		return
	}
	for i := range r.Events {
		one := arrival{r.Events[i].At, tokenParts}
		if r.Events[i].Tokens != 1 {
			one.tokens = int64(math.Round(tokensIn(r, i) * tokenParts))
		}
		if !a.spilt {
			a.exact = stat.Append(a.exact, one)
		} else {
			b := a.bin(one.at)
			b.events, b.tokens = b.events+1, b.tokens+one.tokens
		}
	}
	if len(a.exact) > cmp.Or(limit, stat.ExactLimit) {
		a.spill()
	}
}

func (a *arrivals) count(one arrival) { a.bin(one.at).add(arrivalBin{1, one.tokens}) }

// bin returns the bin of a time. All bins become wider if necessary.
func (a *arrivals) bin(at time.Duration) *arrivalBin {
	millis := int(max(at, 0) / time.Millisecond)
	for millis>>a.shift >= maxBins {
		a.widen()
	}
	i := millis >> a.shift
	if i >= len(a.bins) {
		a.bins = append(a.bins, make([]arrivalBin, i+1-len(a.bins))...)
	}
	return &a.bins[i]
}

// begin returns the start of a bin.
func (a *arrivals) begin(i int) time.Duration { return time.Duration(i) << a.shift * time.Millisecond }

func (a *arrivals) widen() {
	a.shift++
	for i := range a.bins {
		one := a.bins[i]
		a.bins[i] = arrivalBin{}
		a.bins[i/2].add(one)
	}
	a.bins = a.bins[:(len(a.bins)+1)/2]
}

func (b *arrivalBin) add(o arrivalBin) { b.events, b.tokens = b.events+o.events, b.tokens+o.tokens }

func (a *arrivals) spill() {
	a.spilt = true
	for _, one := range a.exact {
		a.count(one)
	}
	a.exact = nil
}

func (a *arrivals) merge(o *arrivals, limit int) {
	if !a.spilt && (o.spilt || len(a.exact)+len(o.exact) > cmp.Or(limit, stat.ExactLimit)) {
		a.spill()
	}
	if !a.spilt {
		a.exact = append(a.exact, o.exact...)
		return
	}
	for _, one := range o.exact {
		a.count(one)
	}
	for a.shift < o.shift {
		a.widen()
	}
	for i, b := range o.bins {
		if b.events > 0 {
			a.bin(o.begin(i)).add(b)
		}
	}
}

// ordered returns the number of arrivals and a function for the i-th arrival in order of time, with its
// number of events. The number is 0 for an empty bin.
func (a *arrivals) ordered() (n int, each func(i int) (arrival, int)) {
	if a.spilt {
		return len(a.bins), func(i int) (arrival, int) { return arrival{a.begin(i), a.bins[i].tokens}, int(a.bins[i].events) }
	}
	slices.SortStableFunc(a.exact, func(x, y arrival) int { return cmp.Compare(max(x.at, 0), max(y.at, 0)) })
	return len(a.exact), func(i int) (arrival, int) { return a.exact[i], 1 }
}

// peaks returns the most events in a second, with seconds counted from origin, and the most tokens per
// second in any period of one second. If the time since origin is shorter than a second, the period is
// that time.
func (a *arrivals) peaks(origin time.Duration) (p Peaks) {
	n, each := a.ordered()
	if n == 0 {
		return p
	}
	last, _ := each(n - 1)
	window := min(last.at-origin, time.Second)
	second, inSecond, first, now, peak := time.Duration(-1), 0, 0, int64(0), int64(0)
	for i := range n {
		one, events := each(i)
		if events == 0 {
			continue
		}
		if s := (one.at - origin) / time.Second; s != second {
			second, inSecond = s, 0
		}
		inSecond += events
		p.EventsPerS = max(p.EventsPerS, inSecond)
		now += one.tokens
		for ; first < i; first++ {
			old, _ := each(first)
			if old.at > one.at-window {
				break
			}
			now -= old.tokens
		}
		peak = max(peak, now)
	}
	if window > 0 {
		p.TokensPerS = float64(peak) / tokenParts / window.Seconds()
	}
	return p
}

// tokens returns the number of tokens that arrived in [from, to).
func (a *arrivals) tokens(from, to time.Duration) float64 {
	sum := int64(0)
	for _, one := range a.exact {
		if one.at >= from && one.at < to {
			sum += one.tokens
		}
	}
	for i, b := range a.bins {
		if at := a.begin(i); at >= from && at < to {
			sum += b.tokens
		}
	}
	return float64(sum) / tokenParts
}
