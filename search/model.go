package search

import "math"

// An arrival is a request of a schedule, as it is known before it is sent.
type arrival struct {
	at             float64 // seconds
	prompt, output float64 // how long they are: 1 is usual
}

// A model is a server in small: by four figures it tells how long each request of a
// schedule takes.
type model struct {
	first  float64 // seconds that a usual request takes to begin, while all others stand still
	alone  float64 // seconds that it takes from then on, if no other is there
	slower float64 // by which part of that each other makes it slower
	seats  int     // how many are served at once; the others queue
}

// unseated is as many seats as nobody needs.
const unseated = math.MaxInt

// A guest is a request that is served.
type guest struct {
	leaves float64 // when so much was served of one that was there all the time
	who    int
}

// guests is a heap: the first is the one that leaves next.
type guests []guest

func (h *guests) add(g guest) {
	*h = append(*h, g)
	all := *h
	for i := len(all) - 1; i > 0 && all[(i-1)/2].leaves > all[i].leaves; i = (i - 1) / 2 {
		all[i], all[(i-1)/2] = all[(i-1)/2], all[i]
	}
}

func (h *guests) pop() guest {
	all := *h
	first, last := all[0], len(all)-1
	all[0], all = all[last], all[:last]
	for i := 0; ; {
		next := 2*i + 1
		if next+1 < last && all[next+1].leaves < all[next].leaves {
			next++
		}
		if next >= last || all[next].leaves >= all[i].leaves {
			break
		}
		all[i], all[next] = all[next], all[i]
		i = next
	}
	*h = all
	return first
}

// serve is how long each request of a schedule waits until it has begun, and how long
// it takes from then on, in seconds.
func (m model) serve(schedule []arrival) (wait, rest []float64) {
	n := len(schedule)
	wait, rest = make([]float64, n), make([]float64, n)
	var in guests
	served, now, still := 0.0, 0.0, 0.0
	for come, seated := 0, 0; seated < n || len(in) > 0; {
		for ; seated < come && len(in) < m.seats; seated++ {
			r := schedule[seated]
			still = max(still, now) + m.first*r.prompt
			wait[seated] = still - r.at
			in.add(guest{served + r.output, seated})
		}
		next := math.Inf(1)
		if come < n {
			next = schedule[come].at
		}
		if len(in) == 0 {
			now = next
			come++
			continue
		}
		pace, from := m.alone*(1+m.slower*float64(len(in)-1)), max(still, now)
		if end := from + (in[0].leaves-served)*pace; end <= next {
			g := in.pop()
			now, served = end, g.leaves
			rest[g.who] = now - schedule[g.who].at - wait[g.who]
			continue
		}
		served += max(next-from, 0) / pace
		now = next
		come++
	}
	return wait, rest
}

// busy is which part of what the server can do at all a load is.
func (m model) busy(load float64) float64 {
	n := float64(m.seats)
	return load * (m.first + m.alone*(1+m.slower*(n-1))/n)
}

// about is a model of a server that is as busy at a load as those are that are near
// their limits. A part of its work is to begin.
func about(load, alone, part float64, seats int) model {
	const busy, least = 0.8, 0.1
	n := float64(seats)
	free := max(busy-load*alone/n, least)
	return model{part * free / load, alone, (1 - part) * free / load / alone * n / max(n-1, 1), seats}
}

// turns are the ways to change a model: one of its figures grows by a part, or shrinks;
// or two do, so that it is as busy as before.
var turns = []func(m *model, by float64){
	func(m *model, by float64) { m.first *= 1 + by },
	func(m *model, by float64) { m.alone *= 1 + by },
	func(m *model, by float64) { m.slower *= 1 + by },
	func(m *model, by float64) {
		m.slower = max(m.slower-by*m.first/m.alone, 0)
		m.first *= 1 + by
	},
	func(m *model, by float64) {
		m.alone *= 1 + by
		m.slower /= 1 + by
	},
	func(m *model, by float64) {
		if n := float64(m.seats); m.seats != unseated {
			m.seats = max(1, int(n+math.Copysign(math.Ceil(n*math.Abs(by)/4), by)))
		}
	},
}
