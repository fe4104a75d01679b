package predict

import (
	"time"

	"github.com/tacho-bench/tacho/sim/step"
)

// Failures configures when replicas fail. A failing replica loses its requests in
// flight and its cache.
type Failures struct {
	At      []time.Duration // one replica fails at each of these times, in turn
	Between time.Duration   // mean time between failures, random; no random failures if 0
	Repair  time.Duration   // time until the replica serves again
}

// planFailures schedules the failures at fixed times.
func (f *Fleet) planFailures() {
	for i, at := range f.plan.Failures.At {
		f.at(at, func(deliver func(*step.Emission)) {
			for k := range f.replicas { // the next serving replica in turn
				if r := f.replicas[(i+k)%len(f.replicas)]; r.state == serving || r.state == draining {
					f.fail(r, deliver)
					return
				}
			}
		})
	}
}

// nextFailure draws the time of failure of a replica that starts to serve.
func (f *Fleet) nextFailure(r *replica) {
	if f.plan.Failures.Between == 0 {
		return
	}
	life := r.lives
	after := time.Duration(r.rng.ExpFloat64() * float64(f.plan.Failures.Between))
	f.at(f.now+after, func(deliver func(*step.Emission)) {
		if r.lives == life && (r.state == serving || r.state == draining) {
			f.fail(r, deliver)
		}
	})
}

// fail stops a replica until it is repaired.
func (f *Fleet) fail(r *replica, deliver func(*step.Emission)) {
	f.use.Failed++
	back := r.state == serving
	f.router.Close(r.number)
	f.setState(r, failed)
	for _, id := range f.requestsAt(r) {
		of := f.inFlight[id].of
		undelivered := f.serverOf(r).Cancel(f.now, id)
		f.finish(r, id)
		f.use.LostRequests++
		deliver(&step.Emission{ID: id, Owner: of, At: f.now, Earlier: undelivered, Lost: true})
	}
	f.dropServer(r)
	if !back {
		f.setState(r, gone)
		return
	}
	f.at(f.now+f.plan.Failures.Repair, func(func(*step.Emission)) {
		if r.state == failed {
			f.serve(r)
		}
	})
}
