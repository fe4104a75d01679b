package predict

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/stat"
)

// A window is a sequence of consecutive tokens of one answer, with their duration
// and the engine's work meanwhile. Sums over windows determine the cost of a step:
// errors of single gaps cancel, whereas whole simulations trade one cost for
// another.
type window struct {
	took         float64 // ms
	tokens       float64
	running      float64 // mean number of answers being decoded
	context      float64 // their tokens, prompts included
	prompts      float64 // prompts prefilled
	promptTokens float64
	pairs        float64 // pairs of a prompt token and an earlier one
	mixed        float64 // fraction of steps with prompts; only for reports
}

const (
	windowEvents = 16
	mostWindows  = 250 // of a level
)

// answerTimes are the times of an answer.
type answerTimes struct {
	sent, head     time.Duration
	first, last    time.Duration
	prompt, cached int
	output         int
}

// running returns the number of answers being decoded at a time, and their tokens.
func running(lives []answerTimes, at time.Duration) (n, context float64) {
	for i := range lives {
		l := &lives[i]
		if l.first > at {
			break // sorted by first token
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

// A watcher is a Sink that collects windows and other evidence from the token times
// of a level.
type watcher struct {
	lives   []answerTimes
	windows []window
	from    []time.Duration // of each window
	to      []time.Duration
}

func (w *watcher) add(r *tacho.Record) {
	l := answerTimes{sent: r.Sent, head: r.Head, first: r.First(), last: r.Last(), prompt: r.Input, output: r.Output}
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

// finish computes the contents of the windows. If there are many, a sample is
// enough.
func (w *watcher) finish() []window {
	slices.SortFunc(w.lives, func(a, b answerTimes) int { return cmp.Compare(a.first, b.first) })
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

// prompts adds the prompts prefilled in a window: those with their first token in
// it.
func (w *watcher) prompts(v *window, from, to time.Duration) {
	i, _ := slices.BinarySearchFunc(w.lives, from, func(l answerTimes, at time.Duration) int { return cmp.Compare(l.first, at) })
	for ; i < len(w.lives) && w.lives[i].first <= to; i++ {
		l := &w.lives[i]
		if l.first == from {
			continue // the request of the window itself
		}
		n := float64(l.prompt - l.cached)
		v.prompts++
		v.promptTokens += n
		v.pairs += n * (float64(l.cached) + n/2)
	}
}

// A wave is a group of requests that arrived at an idle engine. The first of them
// were prefilled in one step and the others in the next. The first token is delayed
// until the second step is launched, so the time from the first answered request to
// the first token is the time of two launches.
type wave struct {
	ms     float64
	prompt [2]int // tokens of each step
	new    [2]int // requests
}

// waves returns the waves of a level.
func (w *watcher) waves() (out []wave) {
	for i := 0; i < len(w.lives); {
		over := time.Duration(-1) // of all earlier requests
		for _, l := range w.lives[:i] {
			over = max(over, l.last)
		}
		v, next, steps, idle := w.wave(i, over)
		i = next
		if idle && v.new[0] > 0 && v.new[1] > 0 {
			out = append(out, v)
		}
		if steps > 1 { // a third step: ignore the rest of the wave
			for i < len(w.lives) && w.lives[i].first <= w.lives[i-1].last {
				i++
			}
		}
	}
	return out
}

// wave returns the wave that begins with request i, its end, its number of further
// steps, and whether the engine was idle at its arrival. over is when all earlier
// requests ended.
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
		idle = idle && l.head > over-leastStall // a last step may still be running
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

// A batch is a group of requests whose first tokens came from one step.
type batch struct {
	at      time.Duration
	prompt  float64 // prompt tokens prefilled for them
	pairs   float64 // pairs of a prompt token and an earlier one
	running float64 // answers being decoded
	context float64 // their tokens
	head    time.Duration
}

// batches returns the batches of a level.
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

// A train is a sequence of consecutive steps full of prompts while more were
// waiting. The time between their answers is pure engine time.
type train struct {
	ms, steps float64
	tokens    float64 // of prompts, and one for each answer decoded in a step
	sequences float64 // these answers, summed over steps
	pairs     float64
	context   float64 // tokens of these answers, summed over steps
	cut       bool    // prompts may have been cut at the end of a step
}

// fill sets the tokens of nearly full steps to full steps, because cut prompts make
// full steps look incomplete.
func (t *train) fill(stepTokens float64) {
	if by := t.steps * stepTokens / t.tokens; t.cut && by > 0.9 && by < 1.1 {
		t.tokens *= by
		t.pairs *= by
	}
}

// trains returns the trains of a level.
func (w *watcher) trains() (out []train) {
	all := w.batches()
	fullest, longest := float64(fewestPromptTokens), 0.0
	for i := range all {
		fullest = max(fullest, all[i].prompt)
	}
	for i := range w.lives {
		longest = max(longest, float64(w.lives[i].prompt-w.lives[i].cached))
	}
	cut := longest < fullStep*fullest // a step contains several prompts, and the last may end in the next step
	full := fullStep * fullest
	if cut {
		full = min(full, fullest-longest)
	}
	var t train
	for i := 1; i <= len(all); i++ {
		waited := i < len(all) && all[i].head < all[i-1].at
		if cut { // the last step of a train need not be full
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

// peaks returns the maximum number of answers decoded together, their tokens, and
// the requests in flight at that time.
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

// readBy is the number of prompt tokens in the step that ended at the given time.
func (w *watcher) readBy(at time.Duration) (tokens int) {
	i, _ := slices.BinarySearchFunc(w.lives, at, func(l answerTimes, at time.Duration) int { return cmp.Compare(l.first, at) })
	for ; i < len(w.lives) && w.lives[i].first <= at+oneStep; i++ {
		tokens += w.lives[i].prompt - w.lives[i].cached
	}
	return tokens
}

// silence returns the longest time without a token although answers were being
// decoded and no prompts prefilled, and the second longest.
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

// kvTokens estimates the size of the KV cache: the tokens of the answers divided by
// the usage on the server's metrics page. It returns 0 if the usage is missing or
// too small.
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

// leastShare is the minimum usage for an estimate.
const leastShare = 0.02

// robustly solves rows x = y for a nonnegative x. Rows with a large relative error
// have less weight.
func robustly(rows [][]float64, y []float64) []float64 {
	n := len(rows[0])
	scale := make([]float64, n) // gives all columns equal weight
	for i := range n {
		for r, row := range rows {
			scale[i] += row[i] * row[i] / (y[r] * y[r])
		}
		scale[i] = math.Sqrt(scale[i])
	}
	weight, ridge := make([]float64, len(y)), make([]float64, n)
	for i := range ridge {
		ridge[i] = 1e-3 // of collinear columns, prefer the first
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

// weighted is the least-squares solution for relative errors.
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
