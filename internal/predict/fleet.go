package predict

import (
	"container/heap"
	"fmt"
	"time"

	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/sim/step"
)

// A FleetPlan describes a fleet.
type FleetPlan struct {
	Profile   step.Profile
	Replicas  int // at least 1
	Policy    route.Policy
	Seed      uint64
	RouteSeed uint64 // of the router's random choices
}

// A Fleet is a fixed number of equal servers behind a router.
type Fleet struct {
	plan     FleetPlan
	router   *route.Router
	replicas []*replica
	queue    replicaQueue // replicas with something to do, the earliest first
	inFlight map[uint64]*replica

	FreeAdapters int // requests for an adapter although the profile has no LoRA
	Unranked     int // requests with a priority although the profile has no priorities

	serving *replica // the replica being advanced
	deliver func(*step.Emission)
	handed  func(*step.Emission) // the method forward
}

// A replica is one of the servers.
type replica struct {
	number int
	server *step.Server
	at     time.Duration // time of the next event
	place  int           // index in the queue; negative if the replica is not queued
}

// NewFleet returns a fleet of idle servers. Each server has its own random numbers.
func NewFleet(p FleetPlan) (*Fleet, error) {
	f := &Fleet{plan: p, router: route.New(p.Policy, p.RouteSeed, p.Replicas), inFlight: map[uint64]*replica{}}
	f.handed = f.forward
	for i := range p.Replicas {
		s, err := step.NewServer(p.Profile, p.Seed+uint64(i))
		if err != nil {
			return nil, err
		}
		s.DeferDelivery()
		f.replicas = append(f.replicas, &replica{number: i, server: s, place: -1})
	}
	return f, nil
}

// Add implements Server.
func (f *Fleet) Add(now time.Duration, q *step.Request) error {
	i := f.router.Choose(&route.Request{Session: q.Session, Turn: q.Turn, Prefix: q.Prefix})
	r := f.replicas[i]
	if err := r.server.Add(now, q); err != nil {
		return err
	}
	if of := &f.plan.Profile; q.Adapter != "" && of.LoRA.Slots == 0 {
		f.FreeAdapters++
	} else if q.Priority != 0 && !of.Priority {
		f.Unranked++
	}
	f.router.Begin(i)
	f.inFlight[q.ID] = r
	f.reschedule(r)
	return nil
}

// Cancel implements Server.
func (f *Fleet) Cancel(now time.Duration, id uint64) (undelivered []time.Duration) {
	r, ok := f.inFlight[id]
	if !ok {
		return nil
	}
	undelivered = r.server.Cancel(now, id)
	f.reschedule(r)
	f.finish(r, id)
	return undelivered
}

// finish removes a request from the requests in flight.
func (f *Fleet) finish(r *replica, id uint64) {
	f.router.End(r.number)
	delete(f.inFlight, id)
}

// reschedule updates the time of the next event at a replica.
func (f *Fleet) reschedule(r *replica) {
	at, busy := r.server.Next()
	r.at = at
	switch {
	case !busy && r.place >= 0:
		heap.Remove(&f.queue, r.place)
	case busy && r.place < 0:
		heap.Push(&f.queue, r)
	case busy:
		heap.Fix(&f.queue, r.place)
	}
}

// Next implements Server.
func (f *Fleet) Next() (time.Duration, bool) {
	if len(f.queue) == 0 {
		return 0, false
	}
	return f.queue[0].at, true
}

// Advance implements Server.
func (f *Fleet) Advance(now time.Duration, deliver func(*step.Emission)) {
	f.deliver = deliver
	for len(f.queue) > 0 && f.queue[0].at <= now {
		r := f.queue[0]
		f.serving = r
		r.server.Advance(r.at, f.handed)
		f.reschedule(r)
	}
}

// forward forwards an emission of the replica being advanced.
func (f *Fleet) forward(e *step.Emission) {
	r, id, last := f.serving, e.ID, e.Last
	f.deliver(e)
	if last {
		f.finish(r, id)
	}
}

// Replica is the name of the server that handles a request in flight.
func (f *Fleet) Replica(id uint64) string {
	if r, ok := f.inFlight[id]; ok && len(f.replicas) > 1 {
		return fmt.Sprint("replica-", r.number)
	}
	return ""
}

// Stats is the sum of the states of all servers, and the highest KV cache usage.
func (f *Fleet) Stats() (all step.Stats, kvShare float64) {
	for _, r := range f.replicas {
		s := r.server.Stats()
		all = all.Plus(s)
		if s.KVBlocks > 0 {
			kvShare = max(kvShare, float64(s.KVUsedBlocks)/float64(s.KVBlocks))
		}
	}
	return all, kvShare
}

// A replicaQueue is a heap of replicas ordered by their next event.
type replicaQueue []*replica

// Len implements heap.Interface.
func (q replicaQueue) Len() int { return len(q) }

// Less implements heap.Interface.
func (q replicaQueue) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}

// Swap implements heap.Interface.
func (q replicaQueue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}

// Push implements heap.Interface.
func (q *replicaQueue) Push(x any) {
	r := x.(*replica)
	r.place = len(*q)
	*q = append(*q, r)
}

// Pop implements heap.Interface.
func (q *replicaQueue) Pop() any {
	last := len(*q) - 1
	r := (*q)[last]
	(*q)[last], *q = nil, (*q)[:last]
	r.place = -1
	return r
}
