package predict

import (
	"context"
	"math"
	"time"
)

// A RecommendedRun is a run that would reduce the uncertainty of a fit.
type RecommendedRun struct {
	Flags      string   // of tacho bench
	Identifies []string // parameters it would identify better
}

// A load is a candidate for a recommended run.
type load struct {
	flags          string
	n, limit       int
	rate           float64 // requests/s; all at time zero if 0
	prompt, output int
}

// loads are the candidates. Together they distinguish engines.
var loads = []load{
	{flags: "--random-input-len 128 --random-output-len 128 --num-prompts 64,256", n: 256, prompt: 128, output: 128},
	{flags: "--random-input-len 4096 --random-output-len 32 --num-prompts 32", n: 32, prompt: 4096, output: 32},
	{flags: "--random-input-len 128 --random-output-len 256 --request-rate 10 --num-prompts 150", n: 150, rate: 10, prompt: 128, output: 256},
	{flags: "--random-input-len 1024 --random-output-len 128 --request-rate 10 --num-prompts 150", n: 150, rate: 10, prompt: 1024, output: 128},
	{flags: "--random-input-len 512 --random-output-len 128 --max-concurrency 16 --num-prompts 160", n: 160, limit: 16, prompt: 512, output: 128},
	{flags: "--random-input-len 512 --random-output-len 256 --max-concurrency 256 --num-prompts 768", n: 768, limit: 256, prompt: 512, output: 256},
	{flags: "--random-input-len 64 --random-output-len 2048 --max-concurrency 32 --num-prompts 64", n: 64, limit: 32, prompt: 64, output: 2048},
}

// seen returns the load as a level without measurements.
func (l *load) seen() *MeasuredLevel {
	s := &MeasuredLevel{Name: l.flags, Limit: l.limit}
	for i := range l.n {
		at := time.Duration(0)
		if l.rate > 0 {
			at = time.Duration((float64(i) + 0.5*math.Sin(float64(7*i))) / l.rate * 1e9) // uneven but reproducible
		}
		s.sent = append(s.sent, sent{at: max(at, 0), prompt: l.prompt, output: l.output})
	}
	return s
}

// mostAdvised is the maximum number of recommended runs.
const mostAdvised = 3

// advise returns the loads that would reduce the parameters' uncertainty most. It
// uses the derivatives of the simulated metrics of each load.
func advise(ctx context.Context, f *Fit, o Options) ([]RecommendedRun, error) {
	if o.NoAdvice || len(f.covariance) == 0 {
		return nil, nil
	}
	known := inverted(f.covariance)
	var out []RecommendedRun
	slopes := make([][][]float64, len(loads))
	for i := range loads {
		var err error
		if slopes[i], err = loads[i].slopes(ctx, f); err != nil {
			return nil, err
		}
	}
	used := map[int]bool{}
	for range mostAdvised {
		best, gain := -1, 0.5 // a smaller gain is not worth a run
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
		a := RecommendedRun{Flags: loads[best].flags}
		for k := range before {
			if after[k] < before[k]/2 && math.Sqrt(before[k]) > goodEnough {
				a.Identifies = append(a.Identifies, f.Parameters[k].Name)
			}
		}
		out = append(out, a)
	}
	return out, nil
}

// goodEnough is a relative standard error that needs no improvement.
const goodEnough = 0.03

// slopes are the derivatives of a load's residuals with respect to each parameter.
// It returns nil if the engine cannot hold the load.
func (l *load) slopes(ctx context.Context, f *Fit) ([][]float64, error) {
	s := l.seen()
	var err error
	if s.Measured, err = s.Predict(ctx, f.Profile, 1); err != nil || s.Measured[TTFT] == 0 {
		return nil, ctx.Err()
	}
	s.distinct = float64(s.together())
	x := &fitter{ctx: ctx, levels: []*MeasuredLevel{s}, base: f.Profile, parameters: uncertain(f.Profile)}
	x.start = read(&x.base, x.parameters)
	off, err := x.residuals(x.start)
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

// plus adds the information of slopes to known.
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
