package predict

import (
	"time"

	"tacho/sim/step"
)

// Failures are when replicas fail. What is in flight at one that does is lost,
// and so is its cache.
type Failures struct {
	At      []time.Duration // one fails at each of these times, in turn
	Between time.Duration   // mean time that one serves before it fails, by chance; 0: it never does so
	Repair  time.Duration   // until it serves again
}

// planFailures has replicas fail at the times that were asked for.
func (f *Fleet) planFailures() {
	for i, at := range f.plan.Failures.At {
		f.at(at, func(deliver func(*step.Emission)) {
			for k := range f.replicas { // the next one in turn that is there
				if r := f.replicas[(i+k)%len(f.replicas)]; r.state == serving || r.state == draining {
					f.fail(r, deliver)
					return
				}
			}
		})
	}
}

// nextFailure draws when a replica that began to serve fails.
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

// fail takes a replica down until it is repaired.
func (f *Fleet) fail(r *replica, deliver func(*step.Emission)) {
	f.use.Failed++
	back := r.state == serving
	f.router.Close(r.number)
	f.become(r, failed)
	for _, id := range f.requestsAt(r) {
		of := f.where[id].of
		untold := f.serverOf(r).Cancel(f.now, id)
		f.land(r, id)
		f.use.LostRequests++
		deliver(&step.Emission{ID: id, Of: of, At: f.now, Earlier: untold, Lost: true})
	}
	f.forget(r)
	if !back {
		f.become(r, gone)
		return
	}
	f.at(f.now+f.plan.Failures.Repair, func(func(*step.Emission)) {
		if r.state == failed {
			f.serve(r)
		}
	})
}
