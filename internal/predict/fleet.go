package predict

import (
	"container/heap"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"time"

	"github.com/tacho-bench/tacho/internal/route"
	"github.com/tacho-bench/tacho/sim/step"
)

// An Engine is a number of replicas of one kind.
type Engine struct {
	Profile step.Profile
	Count   int
}

// A FleetPlan describes a fleet.
type FleetPlan struct {
	Engines   []Engine // at least one; Count is the number at the start
	Policy    route.Policy
	Seed      uint64
	RouteSeed uint64 // of the router's random choices
	Scaling   Scaling
	Failures  Failures
}

// GPUs is the mean number of GPUs per replica.
func (p *FleetPlan) GPUs() float64 {
	all, replicas := 0, 0
	for _, e := range p.Engines {
		all, replicas = all+e.Count*e.Profile.GPUs(), replicas+e.Count
	}
	return float64(all) / float64(max(replicas, 1))
}

// A Fleet is several servers behind a router.
type Fleet struct {
	plan     FleetPlan
	router   *route.Router
	replicas []*replica
	present  int          // replicas paid for
	queue    replicaQueue // replicas with something to do, the earliest first
	inFlight map[uint64]flying
	timers   timers
	noted    int
	now      time.Duration
	scale    scaling
	use      Use
	past     step.Stats // of stopped servers

	serving *replica // the replica being advanced
	deliver func(*step.Emission)
	handed  func(*step.Emission) // the method forward
}

// flying is a request in flight.
type flying struct {
	replica *replica
	of      any
}

// A replica is one of the servers.
type replica struct {
	number int
	name   string
	engine int // index into the plan's engines
	server *step.Server
	state  state
	lives  uint64        // number of starts
	at     time.Duration // time of the next event
	place  int           // index in the queue; negative if the replica is not queued
	rng    *rand.Rand    // of its failures
}

type state int

const (
	gone     state = iota
	starting       // paid for, but not serving yet
	serving
	draining // gets no more requests
	failed   // will be repaired
)

// Use is the resource usage of a fleet.
type Use struct {
	Least, Most  int // minimum and maximum number of replicas
	Took         time.Duration
	ReplicaTime  time.Duration // sum over replicas, including starting and failed ones
	Started      int           // by the autoscaler
	Stopped      int           // by the autoscaler
	Failed       int
	LostRequests int // in flight at a failing replica
	FreeAdapters int // requests for an adapter at an engine without LoRA in its profile
	Unranked     int // requests with a priority at an engine without priorities in its profile
}

// Mean is the mean number of replicas.
func (u Use) Mean() float64 { return u.ReplicaTime.Seconds() / max(u.Took.Seconds(), 1e-9) }

// NewFleet returns a fleet of idle servers. Each server has its own random numbers.
func NewFleet(p FleetPlan) (*Fleet, error) {
	f := &Fleet{plan: p, router: route.New(p.Policy, p.RouteSeed), inFlight: map[uint64]flying{}}
	f.handed = f.forward
	for i, e := range p.Engines {
		if _, err := step.NewServer(e.Profile, 0); err != nil {
			return nil, err
		}
		if own, first := e.Profile.KV, p.Engines[0].Profile.KV; own.BlockTokens != first.BlockTokens || own.PrefixCache != first.PrefixCache {
			return nil, errors.New("all engines of a fleet must have the same kv.block_tokens and kv.prefix_cache")
		}
		for range e.Count {
			f.serve(f.add(i))
		}
	}
	if len(f.replicas) == 0 {
		return nil, errors.New("a fleet needs at least one engine")
	}
	f.use.Least, f.use.Most = len(f.replicas), len(f.replicas)
	f.beginScaling()
	f.planFailures()
	return f, nil
}

// add creates an idle replica of the engine, or reuses a slot if a replica is gone.
func (f *Fleet) add(engine int) *replica {
	for _, r := range f.replicas {
		if r.state == gone && r.engine == engine {
			return r
		}
	}
	name := fmt.Sprint("replica-", len(f.replicas))
	if len(f.plan.Engines) > 1 {
		name += " " + f.plan.Engines[engine].Profile.Name
	}
	r := &replica{number: len(f.replicas), name: name, engine: engine, place: -1, rng: rand.New(rand.NewPCG(f.plan.Seed, 0xfa11+uint64(len(f.replicas))))}
	f.replicas = append(f.replicas, r)
	return r
}

// serve starts a replica with empty caches.
func (f *Fleet) serve(r *replica) {
	r.lives++
	s, err := step.NewServer(f.plan.Engines[r.engine].Profile, f.plan.Seed+uint64(r.number)+1_000_003*(r.lives-1))
	if err != nil {
		panic(err) // NewFleet has validated the profile
	}
	s.DeferDelivery(f.handed)
	r.server = s
	f.setState(r, serving)
	f.router.Open(r.number)
	f.nextFailure(r)
}

// A RefusedError is returned by Server.Add if the server answers a request with an
// HTTP status instead of tokens.
type RefusedError struct {
	Status  int
	Message string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

// errDown is returned if no replica accepts requests.
var errDown = &RefusedError{http.StatusServiceUnavailable, "no replica is available"}

// Add implements Server.
func (f *Fleet) Add(now time.Duration, q *step.Request) error {
	i, ok := f.router.Choose(&route.Request{Session: q.Session, Turn: q.Turn, Prefix: q.Prefix})
	if !ok {
		return errDown
	}
	r := f.replicas[i]
	if err := f.serverOf(r).Add(now, q); err != nil {
		return err
	}
	if of := &f.plan.Engines[r.engine].Profile; q.Adapter != "" && of.LoRA.Slots == 0 {
		f.use.FreeAdapters++
	} else if q.Priority != 0 && !of.Priority {
		f.use.Unranked++
	}
	f.router.Begin(i)
	f.inFlight[q.ID] = flying{r, q.Owner}
	f.reschedule(r)
	return nil
}

// Cancel implements Server.
func (f *Fleet) Cancel(now time.Duration, id uint64) (undelivered []time.Duration) {
	at, ok := f.inFlight[id]
	if !ok {
		return nil
	}
	undelivered = f.serverOf(at.replica).Cancel(now, id)
	f.reschedule(at.replica)
	f.finish(at.replica, id)
	return undelivered
}

// finish removes a request from the requests in flight.
func (f *Fleet) finish(r *replica, id uint64) {
	f.router.End(r.number)
	delete(f.inFlight, id)
	if r.state == draining && f.router.InFlight(r.number) == 0 {
		f.end(r)
	}
}

// end removes a replica.
func (f *Fleet) end(r *replica) {
	f.dropServer(r)
	f.setState(r, gone)
}

// dropServer discards the server of a replica and its state.
func (f *Fleet) dropServer(r *replica) {
	if r.server != nil {
		f.serverOf(r).CatchUp(f.now)
		f.past = f.past.Plus(countersOf(r.server.Stats()))
		r.server = nil
	}
	if r.place >= 0 {
		heap.Remove(&f.queue, r.place)
	}
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

// Next implements Server. Timers alone, such as the autoscaler's, matter only while
// requests are in flight.
func (f *Fleet) Next() (time.Duration, bool) {
	at, ok := time.Duration(0), false
	if len(f.queue) > 0 {
		at, ok = f.queue[0].at, true
	}
	if len(f.inFlight) > 0 && len(f.timers) > 0 && (!ok || f.timers[0].at < at) {
		at, ok = f.timers[0].at, true
	}
	return at, ok
}

// Advance implements Server.
func (f *Fleet) Advance(now time.Duration, deliver func(*step.Emission)) {
	f.deliver = deliver
	for {
		served := len(f.queue) > 0 && f.queue[0].at <= now
		if len(f.timers) > 0 && f.timers[0].at <= now && (!served || f.timers[0].at < f.queue[0].at) {
			t := heap.Pop(&f.timers).(timer)
			f.addReplicaTime(t.at)
			t.do(deliver)
			continue
		}
		if !served {
			f.addReplicaTime(now)
			return
		}
		r := f.queue[0]
		server := f.serverOf(r)
		f.addReplicaTime(r.at) // before a replica stops
		server.Advance(r.at, f.handed)
		if r.server == server {
			f.reschedule(r)
		}
	}
}

// serverOf returns the server of a replica and marks it as the source of emissions.
func (f *Fleet) serverOf(r *replica) *step.Server {
	f.serving = r
	return r.server
}

// forward forwards an emission of the replica being advanced.
func (f *Fleet) forward(e *step.Emission) {
	r, id, last := f.serving, e.ID, e.Last
	f.deliver(e)
	if last {
		f.finish(r, id)
	}
}

// addReplicaTime adds the replica time up to now.
func (f *Fleet) addReplicaTime(now time.Duration) {
	n := f.present
	f.use.ReplicaTime += time.Duration(n) * max(now-f.now, 0)
	f.use.Least, f.use.Most = min(f.use.Least, n), max(f.use.Most, n)
	f.now = max(f.now, now)
}

// setState changes the state of a replica.
func (f *Fleet) setState(r *replica, next state) {
	if r.state == gone {
		f.present++
	}
	if r.state = next; next == gone {
		f.present--
	}
}

// Use returns the resource usage so far.
func (f *Fleet) Use() Use {
	f.use.Took = f.now
	return f.use
}

// Replica is the name of the server that handles a request in flight.
func (f *Fleet) Replica(id uint64) string {
	if at, ok := f.inFlight[id]; ok && (len(f.replicas) > 1 || f.plan.Scaling.Most > 0) {
		return at.replica.name
	}
	return ""
}

// Stats is the sum of the states of all servers, and the highest KV cache usage.
func (f *Fleet) Stats() (all step.Stats, kvShare float64) {
	all = f.past
	for _, r := range f.replicas {
		if r.server != nil {
			s := f.statsOf(r)
			all = all.Plus(s)
			if s.KVBlocks > 0 {
				kvShare = max(kvShare, float64(s.KVUsedBlocks)/float64(s.KVBlocks))
			}
		}
	}
	return all, kvShare
}

// statsOf is the current state of one server.
func (f *Fleet) statsOf(r *replica) step.Stats {
	f.serverOf(r).CatchUp(f.now)
	f.reschedule(r)
	return r.server.Stats()
}

func countersOf(s step.Stats) step.Stats {
	s.Running, s.Waiting, s.KVBlocks, s.KVUsedBlocks = 0, 0, 0, 0
	return s
}

// at schedules an event.
func (f *Fleet) at(t time.Duration, do func(deliver func(*step.Emission))) {
	f.noted++
	heap.Push(&f.timers, timer{t, f.noted, do})
}

// requestsAt are the requests in flight at a replica, in the order they were sent.
func (f *Fleet) requestsAt(r *replica) []uint64 {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.inFlight)), func(id uint64) bool { return f.inFlight[id].replica != r })
}

// A timer is an event at a time.
type timer struct {
	at    time.Duration
	order int
	do    func(deliver func(*step.Emission))
}

// timers are ordered by time, then by order of scheduling.
type timers []timer

// Len implements heap.Interface.
func (t timers) Len() int { return len(t) }

// Less implements heap.Interface.
func (t timers) Less(i, j int) bool {
	return t[i].at < t[j].at || t[i].at == t[j].at && t[i].order < t[j].order
}

// Swap implements heap.Interface.
func (t timers) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *timers) Push(x any) { *t = append(*t, x.(timer)) }

// Pop implements heap.Interface.
func (t *timers) Pop() any { return popLast((*[]timer)(t)) }

// popLast removes and returns the last element of a slice.
func popLast[T any](s *[]T) T {
	var none T
	last := len(*s) - 1
	x := (*s)[last]
	(*s)[last] = none
	*s = (*s)[:last]
	return x
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
	r := popLast((*[]*replica)(q))
	r.place = -1
	return r
}
