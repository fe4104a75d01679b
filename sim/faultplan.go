package sim

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tacho-bench/tacho/internal/spelling"
)

// A fault is a fault to inject, with its rate and schedule. Its text is
//
//	NAME[:ARG...][=RATE%][@START[+LENGTH][/PERIOD]]
//
// 503=5% refuses one request in twenty. reset:10@30s+5s resets, after its tenth
// token, every answer requested between the 30th and the 35th second.
// pause:1.3s@60s/120s stops the model after one minute and then every two minutes.
type fault struct {
	name string
	args []string
	rate float64 // fraction of affected requests, 0 to 1

	scheduled bool
	start     time.Duration // from the start of the server
	length    time.Duration // 0: once for a pause, otherwise until the end
	period    time.Duration // 0: once

	kind *FaultKind
}

// parseFault parses the text of a fault.
func parseFault(text string) (fault, error) {
	f := fault{rate: 1}
	what, when, scheduled := strings.Cut(text, "@")
	what, rate, hasRate := strings.Cut(what, "=")
	parts := strings.Split(what, ":")
	f.name, f.args, f.scheduled = parts[0], parts[1:], scheduled
	fail := func(err error) (fault, error) { return fault{}, fmt.Errorf("fault %q: %w", text, err) }
	i := slices.IndexFunc(FaultKinds, func(k FaultKind) bool { return k.Name == f.name })
	if i < 0 {
		return fail(spelling.Unknown("fault", f.name, faultNames()))
	}
	f.kind = &FaultKinds[i]
	fx := noEffects()
	if err := f.kind.apply(&fx, f.args); err != nil {
		return fail(err)
	}
	if hasRate {
		percent, err := strconv.ParseFloat(strings.TrimSuffix(rate, "%"), 64)
		if err != nil || math.IsNaN(percent) || percent < 0 || percent > 100 {
			return fail(fmt.Errorf("%q is not a rate: write it as 5%%", rate))
		}
		f.rate = percent / 100
	}
	if scheduled {
		if err := f.parseSchedule(when); err != nil {
			return fail(err)
		}
	}
	return f, f.check(text)
}

func (f *fault) parseSchedule(when string) error {
	when, period, hasPeriod := strings.Cut(when, "/")
	start, length, hasLength := strings.Cut(when, "+")
	words := args{start, length, period}
	var err error
	if f.start, err = words.duration(0, 0); err != nil {
		return err
	}
	if f.length, err = words.duration(1, 0); err != nil {
		return err
	}
	if f.period, err = words.duration(2, 0); err != nil {
		return err
	}
	if hasLength && f.length == 0 || hasPeriod && f.period == 0 {
		return errors.New("a length or a period must not be 0: omit it")
	}
	return nil
}

func (f *fault) check(text string) error {
	switch {
	case f.kind.scope == perServer && f.rate != 1:
		return fmt.Errorf("fault %q affects the whole server, so it cannot have a rate: give it a time, as in %s@60s", text, f.name)
	case f.name == "refuse" && (!f.scheduled || f.rate != 1 || f.length == 0):
		return fmt.Errorf("fault %q needs a schedule with a length, as in refuse@10s+5s", text)
	case f.period > 0 && f.length == 0 && f.kind.scope != perServer:
		return fmt.Errorf("fault %q with a period needs a length, as in %s@10s+5s/60s", text, f.name)
	case f.period > 0 && f.length >= f.period:
		return fmt.Errorf("fault %q: a length of %v leaves no gap in a period of %v", text, f.length, f.period)
	}
	return nil
}

func faultNames() []string {
	names := make([]string, len(FaultKinds))
	for i, k := range FaultKinds {
		names[i] = k.Name
	}
	return names
}

// active reports whether the fault may occur at a time since the start.
func (f *fault) active(at time.Duration) bool {
	if !f.scheduled {
		return true
	}
	at -= f.start
	if at < 0 {
		return false
	}
	if f.period > 0 {
		at %= f.period
	}
	return f.length == 0 || at < f.length
}

// next returns the first time from at on when the fault begins, and false if there
// is none.
func (f *fault) next(at time.Duration) (time.Duration, bool) {
	switch {
	case at <= f.start:
		return f.start, true
	case f.period == 0:
		return 0, false
	}
	return at + (f.period-(at-f.start)%f.period)%f.period, true
}

// faultPlan draws the faults of requests.
type faultPlan struct {
	faults []fault

	mu  sync.Mutex
	rng *rand.Rand
}

func newFaultPlan(texts []string, seed uint64) (*faultPlan, error) {
	p := &faultPlan{rng: rand.New(rand.NewPCG(seed, 1))}
	for _, t := range texts {
		f, err := parseFault(t)
		if err != nil {
			return nil, err
		}
		if f.kind.scope == perServer && !f.scheduled {
			return nil, fmt.Errorf("fault %q needs a time, as in %s@60s", t, t)
		}
		p.faults = append(p.faults, f)
	}
	return p, nil
}

// pick returns the effects on a request with the given fault header that arrived at
// a time since the start.
func (p *faultPlan) pick(header string, at time.Duration) (effects, error) {
	fx := noEffects()
	var names []string
	add := func(f *fault) error {
		names = append(names, f.name)
		return f.kind.apply(&fx, f.args)
	}
	if header != "" {
		for text := range strings.SplitSeq(header, ",") {
			f, err := parseFault(strings.TrimSpace(text))
			if err != nil {
				return fx, err
			}
			if f.scheduled || f.kind.scope == perAccept {
				return fx, fmt.Errorf("fault %q cannot be applied to a single request", text)
			}
			if err := add(&f); err != nil {
				return fx, err
			}
		}
	}
	for i := range p.faults {
		if f := &p.faults[i]; f.kind.scope == perRequest && f.active(at) && p.hit(f.rate) {
			if err := add(f); err != nil {
				return fx, err
			}
		}
	}
	fx.names = strings.Join(names, ",")
	return fx, nil
}

// accepting returns the effects on a connection that arrives at a time since the
// start.
func (p *faultPlan) accepting(at time.Duration) effects {
	fx := noEffects()
	for i := range p.faults {
		if f := &p.faults[i]; f.kind.scope == perAccept && f.active(at) && p.hit(f.rate) {
			_ = f.kind.apply(&fx, f.args) // no error: it was applied once when it was parsed
		}
	}
	return fx
}

func (p *faultPlan) hit(rate float64) bool {
	if rate >= 1 {
		return true
	}
	return p.draw() < rate
}

// draw draws a number from 0 to 1.
func (p *faultPlan) draw() float64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.rng.Float64()
}
