package predict

import (
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/sim/step"
)

// Scaling configures the autoscaler, which works like the one in Kubernetes: it
// keeps the signal per replica at Target. New replicas use the plan's engines in
// turn.
type Scaling struct {
	Most      int           // maximum number of replicas; no autoscaling if 0
	By        Signal        // signal
	Target    float64       // of the signal for each replica; the signal's default if 0
	Delay     time.Duration // from the decision until a new replica serves
	DownAfter time.Duration // time after which a superfluous replica is stopped; it first finishes its requests
}

// A Signal is the input of an autoscaler.
type Signal struct {
	Name   string
	Target float64 // default for each replica
	of     func(f *Fleet) float64
}

// signals are all signals.
var signals = []Signal{byFlying, byQueue, byUse}

var (
	byFlying = Signal{"in-flight", 64, func(f *Fleet) float64 { return float64(len(f.inFlight)) }}
	byQueue  = Signal{"queue", 4, func(f *Fleet) float64 { all, _ := f.Stats(); return float64(all.Waiting) }}
	byUse    = Signal{"utilization", 0.7, func(f *Fleet) (sum float64) {
		for _, r := range f.replicas {
			if r.state == serving {
				s := f.statsOf(r)
				used := float64(s.Running) / float64(f.plan.Engines[r.engine].Profile.MostRunning())
				if s.KVBlocks > 0 {
					used = max(used, float64(s.KVUsedBlocks)/float64(s.KVBlocks))
				}
				sum += used
			}
		}
		return sum
	}}
)

// FindSignal returns the signal of that name, and false if there is none.
func FindSignal(name string) (Signal, bool) {
	i := slices.IndexFunc(signals, func(s Signal) bool { return s.Name == name })
	if i < 0 {
		return Signal{}, false
	}
	return signals[i], true
}

// scaleEvery is the interval of the autoscaler.
const scaleEvery = time.Second

// scaling is the state of the autoscaler.
type scaling struct {
	least   int
	above   time.Duration // when the current number of replicas was last wanted
	wanted  int           // maximum number wanted since
	started int
}

func (f *Fleet) beginScaling() {
	if f.plan.Scaling.Most == 0 {
		return
	}
	f.scale.least = len(f.replicas)
	f.at(scaleEvery, f.autoscale)
}

// autoscale starts and stops replicas.
func (f *Fleet) autoscale(func(*step.Emission)) {
	s, c := &f.scale, &f.plan.Scaling
	f.at(f.now+scaleEvery, f.autoscale)
	target := c.Target
	if target == 0 {
		target = c.By.Target
	}
	wanted := int(math.Ceil(c.By.of(f)/target - 1e-9))
	wanted = min(max(wanted, s.least), c.Most)
	n := f.staying()
	if wanted >= n {
		s.above, s.wanted = f.now, 0
		for range wanted - n {
			f.start()
		}
		return
	}
	if s.wanted = max(s.wanted, wanted); f.now-s.above >= c.DownAfter {
		for range n - s.wanted {
			f.stop()
		}
		s.above, s.wanted = f.now, 0
	}
}

// staying is the number of serving and starting replicas.
func (f *Fleet) staying() (n int) {
	for _, r := range f.replicas {
		if r.state == serving || r.state == starting || r.state == failed {
			n++
		}
	}
	return n
}

// start adds a replica.
func (f *Fleet) start() {
	r := f.add(f.scale.started % len(f.plan.Engines))
	f.scale.started++
	f.use.Started++
	f.setState(r, starting)
	f.at(f.now+f.plan.Scaling.Delay, func(func(*step.Emission)) {
		if r.state == starting {
			f.serve(r)
		}
	})
}

// stop removes the replica added last.
func (f *Fleet) stop() {
	for _, r := range slices.Backward(f.replicas) {
		switch r.state {
		case starting:
			f.setState(r, gone)
		case serving:
			f.setState(r, draining)
			f.router.Close(r.number)
			if f.router.InFlight(r.number) == 0 {
				f.end(r)
			}
		default:
			continue
		}
		f.use.Stopped++
		return
	}
}
