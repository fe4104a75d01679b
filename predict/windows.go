package predict

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tacho"
	"tacho/outcome"
	"tacho/stat"
)

// A window is some consecutive tokens of one answer: how long they took, and what
// the engine did meanwhile. Sums over windows say what a step costs: errors of
// single gaps cancel, those of whole simulations trade one cost for another.
type window struct {
	took         float64 // ms
	tokens       float64
	running      float64 // answers that were being written, on average
	context      float64 // tokens of these, prompts included
	prompts      float64 // that were read
	promptTokens float64
	pairs        float64 // of a prompt token and one before it
	mixed        float64 // share of the steps in which prompts were read; only reports tell
}

const (
	windowEvents = 16
	mostWindows  = 250 // of a level
)

// life is when an answer was written.
type life struct {
	sent, head     time.Duration
	first, last    time.Duration
	prompt, cached int
	output         int
}

// running is how many answers are written at a time, and how many tokens they
// have then.
func running(lives []life, at time.Duration) (n, context float64) {
	for i := range lives {
		l := &lives[i]
		if l.first > at {
			break // they are in order
		}
		if l.last >= at {
			n++
			part := 1.0
			if l.last > l.first {
				part = float64(at-l.first) / float64(l.last-l.first)
			}
			context += float64(l.prompt) + part*float64(l.output)
		}
	}
	return n, context
}

// A watcher is a Sink that gathers windows, and what else the token times of a
// level tell.
type watcher struct {
	lives   []life
	windows []window
	from    []time.Duration // of each window
	to      []time.Duration
}

func (w *watcher) add(r *tacho.Record) {
	l := life{sent: r.Sent, head: r.Head, first: r.First(), last: r.Last(), prompt: r.Input, output: r.Output}
	if r.Usage != nil {
		l.cached = r.Usage.Cached
		l.prompt = cmp.Or(r.Usage.Prompt, l.prompt)
	}
	w.lives = append(w.lives, l)
	for i := windowEvents; i < len(r.Events); i += windowEvents {
		from, to := r.Events[i-windowEvents].At, r.Events[i].At
		tokens := windowEvents * float64(r.Output) / float64(len(r.Events))
		w.windows = append(w.windows, window{took: inMs(to - from), tokens: tokens})
		w.from, w.to = append(w.from, from), append(w.to, to)
	}
}

func inMs(d time.Duration) float64 { return float64(d) / 1e6 }

// finish says what went on in the windows. Where there are many, some are as good
// as all.
func (w *watcher) finish() []window {
	slices.SortFunc(w.lives, func(a, b life) int { return cmp.Compare(a.first, b.first) })
	every := 1 + len(w.windows)/mostWindows
	var out []window
	for i := 0; i < len(w.windows); i += every {
		v := w.windows[i]
		for _, part := range []float64{0.25, 0.75} {
			n, context := running(w.lives, w.from[i]+time.Duration(part*float64(w.to[i]-w.from[i])))
			v.running += n / 2
			v.context += context / 2
		}
		w.prompts(&v, w.from[i], w.to[i])
		out = append(out, v)
	}
	return out
}

// prompts adds what was read in a window: prompts whose first token came in it.
func (w *watcher) prompts(v *window, from, to time.Duration) {
	i, _ := slices.BinarySearchFunc(w.lives, from, func(l life, at time.Duration) int { return cmp.Compare(l.first, at) })
	for ; i < len(w.lives) && w.lives[i].first <= to; i++ {
		l := &w.lives[i]
		if l.first == from {
			continue // the window is its own
		}
		n := float64(l.prompt - l.cached)
		v.prompts++
		v.promptTokens += n
		v.pairs += n * (float64(l.cached) + n/2)
	}
}

// A wave is requests that came to an idle engine: the first of them were read in
// one step and the others in the next. The first token is then held back until the
// second step is launched, so what passes from the first answered request to it is
// the time of two launches.
type wave struct {
	ms     float64
	prompt [2]int // tokens of either step
	new    [2]int // requests
}

// waves are those of a level.
func (w *watcher) waves() (out []wave) {
	for i := 0; i < len(w.lives); {
		over := time.Duration(-1) // of all before
		for _, l := range w.lives[:i] {
			over = max(over, l.last)
		}
		v, next, steps, idle := w.wave(i, over)
		i = next
		if idle && v.new[0] > 0 && v.new[1] > 0 {
			out = append(out, v)
		}
		if steps > 1 { // a third step: the rest of the wave tells nothing
			for i < len(w.lives) && w.lives[i].first <= w.lives[i-1].last {
				i++
			}
		}
	}
	return out
}

// wave is the one that begins with request i: where it ends, how many more steps
// it came to, and whether the engine was idle when it came. Over is when all before
// it were.
func (w *watcher) wave(i int, over time.Duration) (v wave, next, step int, idle bool) {
	head, at := tacho.Never, w.lives[i].first
	idle = true
	for ; i < len(w.lives); i++ {
		l := &w.lives[i]
		if l.first > at+oneStep {
			step++
		}
		if step > 1 || step == 1 && l.sent > w.lives[i-1].first {
			break
		}
		at = l.first
		idle = idle && l.head > over-leastStall // a last step may still be under way
		v.new[step]++
		v.prompt[step] += l.prompt - l.cached
		if head < 0 || l.head < head {
			head = l.head
		}
		if step == 0 {
			v.ms = inMs(l.first)
		}
	}
	v.ms -= inMs(head)
	return v, i, step, idle
}

// A batch is requests whose first tokens came from one step.
type batch struct {
	at      time.Duration
	prompt  float64 // tokens read for them
	pairs   float64 // of a prompt token and one before it
	running float64 // answers that were being written
	context float64 // tokens of these
	head    time.Duration
}

// batches are those of a level.
func (w *watcher) batches() (out []batch) {
	for i := range w.lives {
		l := &w.lives[i]
		if i == 0 || l.first > w.lives[i-1].first+oneStep {
			b := batch{at: l.first}
			b.running, b.context = running(w.lives, l.first-1)
			out = append(out, b)
		}
		b := &out[len(out)-1]
		n := float64(l.prompt - l.cached)
		b.prompt += n
		b.pairs += n * (float64(l.cached) + n/2)
		b.head = max(b.head, l.head)
	}
	return out
}

// A train is steps one after the other that were full of prompts, while more were
// waiting: what passes between their answers is the engine's own time.
type train struct {
	ms, steps float64
	tokens    float64 // of prompts, and one for each answer that grew in a step
	sequences float64 // these answers, summed over steps
	pairs     float64
	context   float64 // tokens of these answers, summed over steps
	cut       bool    // prompts may have ended in another step than they began
}

// fill has its steps be as full as the engine makes them, where they nearly are: prompts
// that end in another step make it look otherwise.
func (t *train) fill(stepTokens float64) {
	if by := t.steps * stepTokens / t.tokens; t.cut && by > 0.9 && by < 1.1 {
		t.tokens *= by
		t.pairs *= by
	}
}

// trains are those of a level.
func (w *watcher) trains() (out []train) {
	all := w.batches()
	fullest, longest := float64(fewestPromptTokens), 0.0
	for i := range all {
		fullest = max(fullest, all[i].prompt)
	}
	for i := range w.lives {
		longest = max(longest, float64(w.lives[i].prompt-w.lives[i].cached))
	}
	cut := longest < fullStep*fullest // several prompts make a step, and the last of them may end in the next
	full := fullStep * fullest
	if cut {
		full = min(full, fullest-longest)
	}
	var t train
	for i := 1; i <= len(all); i++ {
		waited := i < len(all) && all[i].head < all[i-1].at
		if cut { // the last of a train need not be full
			waited = waited && i+1 < len(all) && all[i+1].head < all[i-1].at
		}
		if waited && all[i].prompt+all[i].running >= full {
			b := &all[i]
			t.cut = cut
			t.ms += inMs(b.at - all[i-1].at)
			t.steps++
			t.tokens += b.prompt + b.running
			t.sequences += b.running
			t.pairs += b.pairs
			t.context += b.context
			continue
		}
		if t.steps >= shortestTrain {
			out = append(out, t)
		}
		t = train{}
	}
	return out
}

const (
	shortestTrain = 2
	fullStep      = 0.85 // of the fullest
)

// peaks are how many answers were written at once at most, the tokens they had, and
// how many requests were in flight then.
func (w *watcher) peaks(sent []sent) (most, tokens, flying int) {
	for i := range w.lives {
		at := w.lives[i].first
		n, context := running(w.lives, at)
		if int(n) > most {
			most = int(n)
			flying = 0
			for _, q := range sent {
				if q.at <= at {
					flying++
				}
			}
			for _, l := range w.lives {
				if l.last < at {
					flying--
				}
			}
		}
		tokens = max(tokens, int(context))
	}
	return most, tokens, flying
}

// readBy is how many prompt tokens the step read that ended then.
func (w *watcher) readBy(at time.Duration) (tokens int) {
	i, _ := slices.BinarySearchFunc(w.lives, at, func(l life, at time.Duration) int { return cmp.Compare(l.first, at) })
	for ; i < len(w.lives) && w.lives[i].first <= at+oneStep; i++ {
		tokens += w.lives[i].prompt - w.lives[i].cached
	}
	return tokens
}

// silence is the longest time in which no answer grew although some were being
// written and no prompts were read, and the next longest.
func (w *watcher) silence(ends []time.Duration) (longest, next float64) {
	slices.Sort(ends)
	for i := 1; i < len(ends); i++ {
		gap := inMs(ends[i] - ends[i-1])
		if gap <= next {
			continue
		}
		if n, _ := running(w.lives, (ends[i]+ends[i-1])/2); n == 0 || w.readBy(ends[i]) >= fewestPromptTokens {
			continue
		}
		if gap > longest {
			longest, next = gap, longest
		} else {
			next = gap
		}
	}
	return longest, next
}

// kvTokens is the room for keys and values: what answers held when the server's
// metrics page said what share of it was taken. 0: it did not say, or too little.
func (w *watcher) kvTokens(l *outcome.Level) float64 {
	var all []float64
	for _, s := range l.Samples {
		share := s.Values["kv_share"]
		n, context := running(w.lives, s.At)
		if share >= leastShare && n > 0 {
			all = append(all, context/share)
		}
	}
	if len(all) == 0 {
		return 0
	}
	return stat.New(all).Quantile(0.5)
}

// leastShare is how much of the room must be taken to tell how much there is.
const leastShare = 0.02

// robustly solves rows x = y for an x that has nothing below zero. What is far off,
// as a share of y, counts less.
func robustly(rows [][]float64, y []float64) []float64 {
	n := len(rows[0])
	scale := make([]float64, n) // so that all columns weigh alike
	for i := range n {
		for r, row := range rows {
			scale[i] += row[i] * row[i] / (y[r] * y[r])
		}
		scale[i] = math.Sqrt(scale[i])
	}
	weight, ridge := make([]float64, len(y)), make([]float64, n)
	for i := range ridge {
		ridge[i] = 1e-3 // of columns that say the same, the first has it
	}
	ridge[0] = 1e-9
	for r := range weight {
		weight[r] = 1
	}
	var x []float64
	for range 12 {
		x = weighted(rows, y, scale, weight, ridge)
		for r, row := range rows {
			off := -y[r]
			for i := range row {
				off += row[i] * x[i]
			}
			off /= y[r] * 0.03
			weight[r] = 1 / math.Sqrt(1+off*off)
		}
		for i := range x {
			if x[i] < 0 {
				ridge[i] = 1e12
			}
		}
	}
	for i := range x {
		x[i] = max(x[i], 0)
	}
	return x
}

// weighted are least squares of what is off as a share of y.
func weighted(rows [][]float64, y, scale, weight, ridge []float64) []float64 {
	n := len(scale)
	a, b := make([][]float64, n), make([]float64, n)
	for i := range n {
		a[i] = make([]float64, n)
		a[i][i] = ridge[i]
	}
	for r, row := range rows {
		w := weight[r] / (y[r] * y[r])
		for i := range n {
			if row[i] == 0 {
				continue
			}
			for j := range n {
				if row[j] != 0 {
					a[i][j] += w * row[i] / scale[i] * row[j] / scale[j]
				}
			}
			b[i] += w * row[i] / scale[i] * y[r]
		}
	}
	x := solve(a, b)
	for i := range x {
		if scale[i] > 0 {
			x[i] /= scale[i]
		}
	}
	return x
}
