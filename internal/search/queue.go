package search

import "math"

// An arrival is a request of a schedule, as it is known before it is sent.
type arrival struct {
	at             float64 // seconds
	prompt, output float64 // lengths, in units of the mean
}

// A queue is a queueing model of an engine with continuous batching: processor sharing
// among a bounded number of slots, and a prefill that pauses all other requests. Four
// parameters give the latency of each request of a schedule.
type queue struct {
	prefill  float64 // seconds of the prefill of a mean prompt
	decode   float64 // seconds of the decode of a mean output if no other request is active
	slowdown float64 // relative increase of the decode time by each other active request
	slots    int     // concurrently active requests; others wait
}

// unlimited is a number of slots that no schedule fills.
const unlimited = math.MaxInt

// An activeRequest is a request in a slot.
type activeRequest struct {
	finish float64 // decode work of a request that was active all the time when this one finishes
	index  int     // in the schedule
}

// A finishHeap is a binary heap of active requests: the first one finishes next.
type finishHeap []activeRequest

func (h *finishHeap) push(r activeRequest) {
	*h = append(*h, r)
	all := *h
	for i := len(all) - 1; i > 0 && all[(i-1)/2].finish > all[i].finish; i = (i - 1) / 2 {
		all[i], all[(i-1)/2] = all[(i-1)/2], all[i]
	}
}

func (h *finishHeap) pop() activeRequest {
	all := *h
	first, last := all[0], len(all)-1
	all[0], all = all[last], all[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next+1 < last && all[next+1].finish < all[next].finish {
			next++
		}
		if next >= last || all[next].finish >= all[i].finish {
			break
		}
		all[i], all[next] = all[next], all[i]
		i = next
	}
	*h = all
	return first
}

// simulate returns the seconds from the arrival of each request to the end of its
// prefill, and from there to the end of its decode.
func (q queue) simulate(schedule []arrival) (wait, rest []float64) {
	n := len(schedule)
	wait, rest = make([]float64, n), make([]float64, n)
	var active finishHeap
	work, now, prefillEnd := 0.0, 0.0, 0.0
	for arrived, admitted := 0, 0; admitted < n || len(active) > 0; {
		for ; admitted < arrived && len(active) < q.slots; admitted++ {
			r := schedule[admitted]
			prefillEnd = max(prefillEnd, now) + q.prefill*r.prompt
			wait[admitted] = prefillEnd - r.at
			active.push(activeRequest{work + r.output, admitted})
		}
		next := math.Inf(1)
		if arrived < n {
			next = schedule[arrived].at
		}
		if len(active) == 0 {
			now = next
			arrived++
			continue
		}
		pace, from := q.decode*(1+q.slowdown*float64(len(active)-1)), max(prefillEnd, now)
		if end := from + (active[0].finish-work)*pace; end <= next {
			r := active.pop()
			now, work = end, r.finish
			rest[r.index] = now - schedule[r.index].at - wait[r.index]
			continue
		}
		work += max(next-from, 0) / pace
		now = next
		arrived++
	}
	return wait, rest
}

// utilization returns the ratio of a load to the capacity.
func (q queue) utilization(load float64) float64 {
	n := float64(q.slots)
	return load * (q.prefill + q.decode*(1+q.slowdown*(n-1))/n)
}

// startingQueue returns a first guess of the parameters, by the load at the limit and the
// latency of a request alone. prefillShare is the prefill share of the work.
func startingQueue(load, alone, prefillShare float64, slots int) queue {
	n := float64(slots)
	free := max(startUtilization-load*alone/n, minStartShare)
	return queue{prefillShare * free / load, alone, (1 - prefillShare) * free / load / alone * n / max(n-1, 1), slots}
}

// queueSteps are the steps of the coordinate ascent. Each changes a parameter by a
// relative step, or exchanges two parameters at about the same utilization.
var queueSteps = []func(q *queue, step float64){
	func(q *queue, step float64) { q.prefill *= 1 + step },
	func(q *queue, step float64) { q.decode *= 1 + step },
	func(q *queue, step float64) { q.slowdown *= 1 + step },
	func(q *queue, step float64) {
		q.slowdown = max(q.slowdown-step*q.prefill/q.decode, 0)
		q.prefill *= 1 + step
	},
	func(q *queue, step float64) {
		q.decode *= 1 + step
		q.slowdown /= 1 + step
	},
	func(q *queue, step float64) {
		if n := float64(q.slots); q.slots != unlimited {
			q.slots = max(1, int(n+math.Copysign(math.Ceil(n*math.Abs(step)/slotStepDivisor), step)))
		}
	},
}
