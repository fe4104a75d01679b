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

	"tacho/route"
	"tacho/sim/step"
)

// An Engine is so many replicas of one kind.
type Engine struct {
	Profile step.Profile
	Count   int
}

// A FleetPlan says what a fleet is made of.
type FleetPlan struct {
	Engines   []Engine // at least one; Count is how many there are at the start
	Policy    route.Policy
	Seed      uint64
	RouteSeed uint64 // of what the router leaves to chance
	Scaling   Scaling
	Failures  Failures
}

// GPUs is how many a replica has, on average where there are several kinds.
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
	present  int          // of them, those that are paid for
	queue    replicaQueue // those with something to do, the first one first
	where    map[uint64]flying
	timers   timers
	noted    int
	now      time.Duration
	scale    scaling
	use      Use
	past     step.Stats // of servers that are gone

	serving *replica // that says something now
	deliver func(*step.Emission)
	handed  func(*step.Emission) // hand
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
	engine int // which of the plan's
	server *step.Server
	state  state
	lives  uint64        // how often it was started
	at     time.Duration // when something happens next
	place  int           // in the queue; below 0 it is not there
	rng    *rand.Rand    // of its failures
}

type state int

const (
	gone     state = iota
	starting       // it is paid for, and does not serve yet
	serving
	draining // it gets no more requests
	failed   // it comes back
)

// Use is what a fleet came to.
type Use struct {
	Least, Most  int // replicas that were there at a time
	Took         time.Duration
	ReplicaTime  time.Duration // of all of them together; what is starting counts, what has failed too
	Started      int           // by the autoscaler
	Stopped      int           // by it
	Failed       int
	LostRequests int // that were in flight at one that failed
	FreeAdapters int // requests for an adapter at an engine whose profile has none
	Unranked     int // requests with a priority at an engine whose profile has none
}

// Mean is how many replicas there were on average.
func (u Use) Mean() float64 { return u.ReplicaTime.Seconds() / max(u.Took.Seconds(), 1e-9) }

// NewFleet returns a fleet of idle servers. Each draws its own random numbers.
func NewFleet(p FleetPlan) (*Fleet, error) {
	f := &Fleet{plan: p, router: route.New(p.Policy, p.RouteSeed), where: map[uint64]flying{}}
	f.handed = f.hand
	for i, e := range p.Engines {
		if _, err := step.NewServer(e.Profile, 0); err != nil {
			return nil, err
		}
		if own, first := e.Profile.KV, p.Engines[0].Profile.KV; own.BlockTokens != first.BlockTokens || own.PrefixCache != first.PrefixCache {
			return nil, errors.New("engines of one fleet must agree on kv.block_tokens and kv.prefix_cache, for a prompt is cut into blocks once")
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

// add makes a replica of that engine, which does nothing yet. One that is gone
// makes room for it.
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

// serve lets a replica take requests, with nothing in its memory.
func (f *Fleet) serve(r *replica) {
	r.lives++
	s, err := step.NewServer(f.plan.Engines[r.engine].Profile, f.plan.Seed+uint64(r.number)+1_000_003*(r.lives-1))
	if err != nil {
		panic(err) // NewFleet has seen that it can be made
	}
	s.TellLate(f.handed)
	r.server = s
	f.become(r, serving)
	f.router.Open(r.number)
	f.nextFailure(r)
}

// A RefusedError is returned by Server.Add for a request that the server answers
// with an HTTP status instead of tokens.
type RefusedError struct {
	Status  int
	Message string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Message }

// errDown says that no replica takes requests.
var errDown = &RefusedError{http.StatusServiceUnavailable, "no replica is there to take it"}

// Add implements Server.
func (f *Fleet) Add(now time.Duration, q *step.Request) error {
	i, ok := f.router.Choose(&route.Ask{Session: q.Session, Turn: q.Turn, Prefix: q.Prefix})
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
	f.where[q.ID] = flying{r, q.Of}
	f.look(r)
	return nil
}

// Cancel implements Server.
func (f *Fleet) Cancel(now time.Duration, id uint64) (untold []time.Duration) {
	at, ok := f.where[id]
	if !ok {
		return nil
	}
	untold = f.serverOf(at.replica).Cancel(now, id)
	f.look(at.replica)
	f.land(at.replica, id)
	return untold
}

// land takes a request out of flight.
func (f *Fleet) land(r *replica, id uint64) {
	f.router.End(r.number)
	delete(f.where, id)
	if r.state == draining && f.router.Flying(r.number) == 0 {
		f.end(r)
	}
}

// end takes a replica away.
func (f *Fleet) end(r *replica) {
	f.forget(r)
	f.become(r, gone)
}

// forget lets the server of a replica go, with all it had.
func (f *Fleet) forget(r *replica) {
	if r.server != nil {
		f.serverOf(r).CatchUp(f.now)
		f.past = f.past.Plus(countersOf(r.server.Stats()))
		r.server = nil
	}
	if r.place >= 0 {
		heap.Remove(&f.queue, r.place)
	}
}

// look sees when something happens next at a replica.
func (f *Fleet) look(r *replica) {
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

// Next implements Server. What happens by the clock alone, as a look at the load,
// matters only while requests are in flight.
func (f *Fleet) Next() (time.Duration, bool) {
	at, ok := time.Duration(0), false
	if len(f.queue) > 0 {
		at, ok = f.queue[0].at, true
	}
	if len(f.where) > 0 && len(f.timers) > 0 && (!ok || f.timers[0].at < at) {
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
			f.pass(t.at)
			t.do(deliver)
			continue
		}
		if !served {
			f.pass(now)
			return
		}
		r := f.queue[0]
		server := f.serverOf(r)
		f.pass(r.at) // before any replica goes
		server.Advance(r.at, f.handed)
		if r.server == server {
			f.look(r)
		}
	}
}

// serverOf is the server of a replica, for what it may have to say.
func (f *Fleet) serverOf(r *replica) *step.Server {
	f.serving = r
	return r.server
}

// hand takes what the replica that is served now wrote.
func (f *Fleet) hand(e *step.Emission) {
	r, id, last := f.serving, e.ID, e.Last
	f.deliver(e)
	if last {
		f.land(r, id)
	}
}

// pass counts the time of the replicas until then.
func (f *Fleet) pass(now time.Duration) {
	n := f.present
	f.use.ReplicaTime += time.Duration(n) * max(now-f.now, 0)
	f.use.Least, f.use.Most = min(f.use.Least, n), max(f.use.Most, n)
	f.now = max(f.now, now)
}

// become has a replica be in another state.
func (f *Fleet) become(r *replica, next state) {
	if r.state == gone {
		f.present++
	}
	if r.state = next; next == gone {
		f.present--
	}
}

// Use is what the fleet came to so far.
func (f *Fleet) Use() Use {
	f.use.Took = f.now
	return f.use
}

// Replica is the name of the server that a request in flight is at.
func (f *Fleet) Replica(id uint64) string {
	if at, ok := f.where[id]; ok && (len(f.replicas) > 1 || f.plan.Scaling.Most > 0) {
		return at.replica.name
	}
	return ""
}

// Stats is the state of all servers together, and the largest share of its memory
// that one has in use.
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

// statsOf is the state of one server now.
func (f *Fleet) statsOf(r *replica) step.Stats {
	f.serverOf(r).CatchUp(f.now)
	f.look(r)
	return r.server.Stats()
}

func countersOf(s step.Stats) step.Stats {
	s.Running, s.Waiting, s.KVBlocks, s.KVUsedBlocks = 0, 0, 0, 0
	return s
}

// at has something happen at a time.
func (f *Fleet) at(t time.Duration, do func(deliver func(*step.Emission))) {
	f.noted++
	heap.Push(&f.timers, timer{t, f.noted, do})
}

// requestsAt are the requests in flight at a replica, in the order in which they
// were sent.
func (f *Fleet) requestsAt(r *replica) []uint64 {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(f.where)), func(id uint64) bool { return f.where[id].replica != r })
}

// A timer is something that happens at a time.
type timer struct {
	at    time.Duration
	order int
	do    func(deliver func(*step.Emission))
}

// timers are in order of time; those of one time in the order in which they were
// noted.
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

// popLast takes the last of a slice.
func popLast[T any](s *[]T) T {
	var none T
	last := len(*s) - 1
	x := (*s)[last]
	(*s)[last] = none
	*s = (*s)[:last]
	return x
}

// A replicaQueue is replicas in order of when something happens at them.
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
