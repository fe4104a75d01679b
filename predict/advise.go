package predict

import (
	"context"
	"math"
	"time"
)

// Advised is a run that would tell more of an engine.
type Advised struct {
	Flags string   // of tacho bench
	Tells []string // knobs it would tell better
}

// A load is one that may be advised.
type load struct {
	flags          string
	n, limit       int
	rate           float64 // requests/s; 0 is all at once
	prompt, output int
}

// loads are those that engines are told apart by.
var loads = []load{
	{flags: "--random-input-len 128 --random-output-len 128 --num-prompts 64,256", n: 256, prompt: 128, output: 128},
	{flags: "--random-input-len 4096 --random-output-len 32 --num-prompts 32", n: 32, prompt: 4096, output: 32},
	{flags: "--random-input-len 128 --random-output-len 256 --request-rate 10 --num-prompts 150", n: 150, rate: 10, prompt: 128, output: 256},
	{flags: "--random-input-len 1024 --random-output-len 128 --request-rate 10 --num-prompts 150", n: 150, rate: 10, prompt: 1024, output: 128},
	{flags: "--random-input-len 512 --random-output-len 128 --max-concurrency 16 --num-prompts 160", n: 160, limit: 16, prompt: 512, output: 128},
	{flags: "--random-input-len 512 --random-output-len 256 --max-concurrency 256 --num-prompts 768", n: 768, limit: 256, prompt: 512, output: 256},
	{flags: "--random-input-len 64 --random-output-len 2048 --max-concurrency 32 --num-prompts 64", n: 64, limit: 32, prompt: 64, output: 2048},
}

// seen is the load as a level of which nothing was measured.
func (l *load) seen() *Seen {
	s := &Seen{Name: l.flags, Limit: l.limit}
	for i := range l.n {
		at := time.Duration(0)
		if l.rate > 0 {
			at = time.Duration((float64(i) + 0.5*math.Sin(float64(7*i))) / l.rate * 1e9) // uneven, and always the same
		}
		s.sent = append(s.sent, sent{at: max(at, 0), prompt: l.prompt, output: l.output})
	}
	return s
}

// mostAdvised is how many runs are advised.
const mostAdvised = 3

// advise says which loads would make the knobs surest: by how much the
// simulated figures of each load depend on them.
func advise(ctx context.Context, f *Fit, o Options) ([]Advised, error) {
	if o.NoAdvice || len(f.covariance) == 0 {
		return nil, nil
	}
	known := inverted(f.covariance)
	var out []Advised
	slopes := make([][][]float64, len(loads))
	for i := range loads {
		var err error
		if slopes[i], err = loads[i].slopes(ctx, f); err != nil {
			return nil, err
		}
	}
	used := map[int]bool{}
	for range mostAdvised {
		best, gain := -1, 0.5 // less is not worth a run
		for i := range loads {
			if g := logDeterminant(plus(known, slopes[i])) - logDeterminant(known); slopes[i] != nil && !used[i] && g > gain {
				best, gain = i, g
			}
		}
		if best < 0 {
			break
		}
		used[best] = true
		before := invertedDiagonal(known)
		known = plus(known, slopes[best])
		after := invertedDiagonal(known)
		a := Advised{Flags: loads[best].flags}
		for k := range before {
			if after[k] < before[k]/2 && math.Sqrt(before[k]) > surely {
				a.Tells = append(a.Tells, f.Knobs[k].Name)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// surely is a standard error, as a share, that needs no better.
const surely = 0.03

// slopes are how the residuals of a load would depend on each knob. nil: the engine
// cannot hold it.
func (l *load) slopes(ctx context.Context, f *Fit) ([][]float64, error) {
	s := l.seen()
	var err error
	if s.Measured, err = s.Predict(ctx, f.Profile, 1); err != nil || s.Measured[TTFT] == 0 {
		return nil, ctx.Err()
	}
	s.distinct = float64(s.together())
	x := &fitter{ctx: ctx, levels: []*Seen{s}, base: f.Profile, knobs: uncertain(f.Profile)}
	x.start = read(&x.base, x.knobs)
	off, err := x.off(x.start)
	if err != nil {
		return nil, err
	}
	out, err := x.slopes(x.start, off)
	for _, row := range out {
		for r := range row {
			row[r] /= math.Sqrt(f.misfit)
		}
	}
	return out, err
}

// plus is what is known once slopes are added.
func plus(known, slopes [][]float64) [][]float64 {
	out := make([][]float64, len(known))
	for i := range known {
		out[i] = append([]float64(nil), known[i]...)
		for j := range out[i] {
			if slopes == nil {
				continue
			}
			for r := range slopes[i] {
				out[i][j] += slopes[i][r] * slopes[j][r]
			}
		}
	}
	return out
}

func logDeterminant(a [][]float64) float64 {
	sum := 0.0
	for i, row := range factor(a) {
		sum += 2 * math.Log(row[i])
	}
	return sum
}
