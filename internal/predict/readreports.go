package predict

import (
	"math"
	"slices"

	"github.com/tacho-bench/tacho/sim/step"
)

// readOffReports returns p with the costs derived from the means of reports.
func readOffReports(p step.Profile, levels []*MeasuredLevel) step.Profile {
	perToken, pair := promptsAlone(levels)
	if pair > 0 {
		p.Cost.PrefillNsPerTokenAndContext = 1e6 * pair
	}
	full := perToken * float64(p.StepTokens) // ms of a step full of prompts
	if perToken == 0 {
		full = promptToken(levels, &p) * float64(p.StepTokens)
	}
	line := meanKnots(levels)
	rows, y := reportEquations(&p, levels, line)
	if len(rows) == 0 {
		return p
	}
	x := robustly(rows, y)
	k, ms := len(line), 0.0
	for i := range line {
		ms += x[i]
		line[i].Ms = max(ms, 0.1)
	}
	if x[k] > 0 {
		p.Cost.DecodeNsPerContextToken = 1e6 * x[k]
	}
	if x[k+1] > leastJump*line[0].Ms {
		p.Cost.LongContextTokens, p.Cost.LongContextMs = longContext, x[k+1]
	}
	p.Cost.Decode = line
	if full == 0 {
		full = x[k+2] * float64(p.StepTokens)
	}
	if full > 0 {
		p.Cost.Step = []step.Knot{{Tokens: 1, Ms: line[0].Ms}, {Tokens: p.StepTokens, Ms: max(full, line[0].Ms)}}
	}
	return p
}

const (
	longContext = 8192 // from this context length on, vLLM's paged attention splits a context and adds the parts
	leastJump   = 0.05 // minimum relative increase of a decode
)

// reportEquations has one equation per report: the time of a token as a function of
// the knots of the line, context tokens, steps with a long context and prompt
// tokens.
func reportEquations(p *step.Profile, levels []*MeasuredLevel, line []step.Knot) (rows [][]float64, y []float64) {
	k := len(line)
	varied, jumps := contextRange(levels)
	for _, s := range levels {
		for i := range s.windows {
			w := &s.windows[i]
			took := w.took - w.pairs*p.Cost.PrefillNsPerTokenAndContext/1e6
			if took < w.took/4 || w.running < 0.5 {
				continue // dominated by prompts
			}
			row := make([]float64, k+3)
			rises(line, max(w.running, 1), row)
			for i := range k {
				row[i] *= w.tokens
			}
			row[k+2] = w.promptTokens
			if jumps && w.context/w.running > longContext {
				row[k+1] = (1 - w.mixed) * w.tokens
			}
			if known := w.tokens * w.context * p.Cost.DecodeNsPerContextToken / 1e6; !varied && known < took/2 {
				took -= known
			} else {
				row[k] = w.tokens * w.context
			}
			rows, y = append(rows, row), append(y, took)
		}
	}
	return rows, y
}

// contextRange reports whether the answer lengths vary enough to separate costs per
// sequence from costs per context token, and whether there are short and long
// contexts.
func contextRange(levels []*MeasuredLevel) (varied, jumps bool) {
	least, most := math.Inf(1), 0.0
	for _, s := range levels {
		for _, w := range s.windows {
			if w.running >= 1 {
				each := w.context / w.running
				least, most = min(least, each), max(most, each)
			}
		}
	}
	return most > 2*least, least < longContext && most > longContext
}

// meanKnots are at the mean step sizes of the reports.
func meanKnots(levels []*MeasuredLevel) []step.Knot {
	var sizes []int
	for _, s := range levels {
		for _, w := range s.windows {
			sizes = append(sizes, int(math.Round(w.running)))
		}
	}
	slices.Sort(sizes)
	line := []step.Knot{{Tokens: 1}}
	for _, n := range sizes {
		if float64(n) >= 1.5*float64(line[len(line)-1].Tokens) {
			line = append(line, step.Knot{Tokens: n})
		}
	}
	if len(line) > 2 && len(sizes) > 0 && sizes[0] > 1 { // no level shows the first knot: extrapolate from the next two
		line = slices.Delete(line, 1, 2)
	}
	if len(line) == 1 {
		line = append(line, step.Knot{Tokens: 2})
	}
	return line
}

// promptsAlone returns the cost of a prompt token and of a pair of tokens in ms,
// from bursts that hardly did anything but prefill prompts of several lengths. Both
// are 0 if there are none.
func promptsAlone(levels []*MeasuredLevel) (perToken, pair float64) {
	var rows [][]float64
	var y []float64
	least, most := math.Inf(1), 0.0
	for _, s := range levels {
		prompt, n := meanPrompt([]*MeasuredLevel{s}), float64(len(s.sent))
		if !s.burst() || s.Measured[TTFT99] == 0 || prompt*n < fewestPromptTokens || prompt < mostlyPrompt*s.meanOutput() {
			continue
		}
		rows, y = append(rows, []float64{n * prompt, n * prompt * prompt / 2}), append(y, s.Measured[TTFT99])
		least, most = min(least, prompt), max(most, prompt)
	}
	if len(rows) < 3 || most < 2*least {
		return 0, 0
	}
	x := robustly(rows, y)
	return x[0], x[1]
}

// mostlyPrompt is the minimum ratio of prompt to answer length for which prefill
// dominates.
const mostlyPrompt = 16

func (s *MeasuredLevel) meanOutput() float64 {
	var m mean
	for _, q := range s.sent {
		m.add(float64(q.output))
	}
	return m.value()
}

// promptToken returns the cost of a prompt token in ms, from the time in which the
// prompts of a burst were prefilled. The level with the lowest cost had the least
// other work.
func promptToken(levels []*MeasuredLevel, p *step.Profile) float64 {
	least := 0.0
	for _, s := range levels {
		tokens, pairs := 0.0, 0.0
		for _, q := range s.sent {
			n := float64(q.prompt - q.cached)
			tokens += n
			pairs += n * (float64(q.cached) + n/2)
		}
		if s.Limit > 0 || s.distinct > 1 || tokens < fewestPromptTokens {
			continue
		}
		each := (s.Measured[TTFT99] - pairs*p.Cost.PrefillNsPerTokenAndContext/1e6) / tokens
		if each > 0 && (least == 0 || each < least) {
			least = each
		}
	}
	return least
}
