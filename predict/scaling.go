package predict

import (
	"math"
	"slices"
	"time"

	"tacho/sim/step"
)

// Scaling is how the number of replicas follows the load, as Kubernetes does it:
// as many are wanted as keep what is looked at, for each of them, at Target.
// What is started is of the plan's engines in turn.
type Scaling struct {
	Most      int           // replicas; 0: their number stays
	By        Signal        // what is looked at
	Target    float64       // of that for each replica; 0: the signal's own
	Delay     time.Duration // from the decision until a new one serves
	DownAfter time.Duration // one too many is taken away after so long; it first ends what it has
}

// A Signal is what an autoscaler looks at.
type Signal struct {
	Name   string
	Target float64 // for each replica, where nobody says another
	of     func(f *Fleet) float64
}

// signals are all there are.
var signals = []Signal{byFlying, byQueue, byUse}

var (
	byFlying = Signal{"in-flight", 64, func(f *Fleet) float64 { return float64(len(f.where)) }}
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

// FindSignal is the signal of that name.
func FindSignal(name string) (Signal, bool) {
	i := slices.IndexFunc(signals, func(s Signal) bool { return s.Name == name })
	if i < 0 {
		return Signal{}, false
	}
	return signals[i], true
}

// scaleEvery is the time between two looks at the load.
const scaleEvery = time.Second

// scaling is the state of the autoscaler.
type scaling struct {
	least   int
	above   time.Duration // when as many as there are were wanted for the last time
	wanted  int           // the most that were wanted since
	started int
}

func (f *Fleet) beginScaling() {
	if f.plan.Scaling.Most == 0 {
		return
	}
	f.scale.least = len(f.replicas)
	f.at(scaleEvery, f.lookAtLoad)
}

// lookAtLoad starts and stops replicas.
func (f *Fleet) lookAtLoad(func(*step.Emission)) {
	s, c := &f.scale, &f.plan.Scaling
	f.at(f.now+scaleEvery, f.lookAtLoad)
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

// staying is how many replicas are there, or soon will be.
func (f *Fleet) staying() (n int) {
	for _, r := range f.replicas {
		if r.state == serving || r.state == starting || r.state == failed {
			n++
		}
	}
	return n
}

// start has one more replica.
func (f *Fleet) start() {
	r := f.add(f.scale.started % len(f.plan.Engines))
	f.scale.started++
	f.use.Started++
	f.become(r, starting)
	f.at(f.now+f.plan.Scaling.Delay, func(func(*step.Emission)) {
		if r.state == starting {
			f.serve(r)
		}
	})
}

// stop takes one replica away: the one that came last.
func (f *Fleet) stop() {
	for _, r := range slices.Backward(f.replicas) {
		switch r.state {
		case starting:
			f.become(r, gone)
		case serving:
			f.become(r, draining)
			f.router.Close(r.number)
			if f.router.Flying(r.number) == 0 {
				f.end(r)
			}
		default:
			continue
		}
		f.use.Stopped++
		return
	}
}
