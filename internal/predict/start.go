package predict

import (
	"fmt"
	"math"
	"slices"

	"github.com/tacho-bench/tacho/sim/step"
)

// generic is a prior for an unknown engine like vLLM: a Python server with an API
// process, two steps in flight and CUDA graphs. Its limits are vLLM's defaults. Its
// times are typical for such processes. A fit uses them as the center of a wide
// prior, and keeps those that the runs do not identify.
func generic() step.Profile {
	return step.Profile{
		Name: "fitted", Engine: "vllm", Model: "unknown",
		Policy: "chunked", StepTokens: 8192, MaxSequences: 1024,
		KV:     step.KV{BlockTokens: 16, PrefixCache: true},
		Output: step.Lengths{Kind: "lognormal", Mean: 200, SD: 180, Max: 2048},
		Cost: step.Cost{
			Step:                        []step.Knot{{Tokens: 1, Ms: 5}, {Tokens: 8192, Ms: 200}},
			Decode:                      []step.Knot{{Tokens: 1, Ms: 5}, {Tokens: 256, Ms: 10}},
			DecodeNsPerContextToken:     20,
			MixedUsPerSequence:          10,
			PrefillNsPerTokenAndContext: 1,
		},
		Host: step.Host{
			StepsInFlight: 2, LaunchMs: 1.5, GraphMs: 12, GraphTokens: 512, EagerMs: 20, PerSequenceUs: 5, PerNewMs: 0.5,
			TailMs: 2, UpdateMs: 0.2, PerArrivalMs: 0.2, PerArrivalTokenUs: 0.3,
		},
		API: step.API{
			LatencyMs: 0.5, RequestMs: 0.6, RequestPerTokenUs: 0.2, Turns: 7, SubmitMs: 0.4, HandOverMs: 0.3,
			StepMs: 0.1, TokenUs: 15, PieceTokens: 128, EventUs: 50, EndMs: 0.2, CloseMs: 0.5,
		},
	}
}

// plain is an engine without surrounding processes except for a fixed delay.
func plain() step.Profile {
	p := generic()
	p.Host, p.API = step.Host{}, step.API{}
	p.Cost.MixedUsPerSequence = 0
	p.FrontEnd = step.FrontEnd{FixedMs: 3, PerRequestMs: 0.2}
	return p
}

// corners are the batch sizes of knots in the line of decode steps.
var corners = []int{1, 16, 64, 128, 256, 512, 1024}

// decodeKnots are the knots covered by levels.
func decodeKnots(levels []*MeasuredLevel, width int) []step.Knot {
	most := 1
	for _, s := range levels {
		most = max(most, s.most*width)
	}
	var line []step.Knot
	for _, c := range corners {
		if c == 1 || 7*c <= 5*most && slices.ContainsFunc(levels, func(s *MeasuredLevel) bool { return s.near(float64(c) / float64(width)) }) {
			line = append(line, step.Knot{Tokens: c})
		}
	}
	return append(line, step.Knot{Tokens: max(most, 2)})
}

// near reports whether a level decoded about n answers together.
func (s *MeasuredLevel) near(n float64) bool {
	return slices.ContainsFunc(s.windows, func(w window) bool { return math.Abs(math.Log(w.running/n)) < 0.5 })
}

// behind reports whether the client sees tokens later than the engine generates
// them, because a process in between is the bottleneck.
func (s *MeasuredLevel) behind() bool {
	return s.Measured[serverTPOT] > 0 && s.Measured[TPOT] > 1.07*s.Measured[serverTPOT]
}

// enginesOwn are the windows of a level as seen by the engine: the client's, or the
// server's metrics if the client saw tokens later.
func (s *MeasuredLevel) enginesOwn() []window {
	if !s.behind() {
		return s.windows
	}
	mean := window{tokens: windowEvents, took: windowEvents * s.Measured[serverTPOT]}
	for _, w := range s.windows {
		n := float64(len(s.windows)) * w.tokens / windowEvents
		mean.running += w.running / n
		mean.context += w.context / n
		mean.prompts += w.prompts / n
		mean.promptTokens += w.promptTokens / n
	}
	return slices.Repeat([]window{mean}, len(s.windows))
}

// rises sets row to the coefficients of the line's value at n: first its level,
// then its rise between adjacent knots.
func rises(line []step.Knot, n float64, row []float64) {
	row[0] = 1
	for i := 1; i < len(line); i++ {
		a, b := float64(line[i-1].Tokens), float64(line[i].Tokens)
		row[i] = max(0, min(1, (n-a)/(b-a)))
	}
}

// readOff returns p with the costs that follow from token times without simulation.
// It uses sums over windows of an answer, with the number and length of concurrent
// answers and the prompts prefilled meanwhile. It also returns the standard errors
// of the best-known costs.
func readOff(p step.Profile, levels []*MeasuredLevel) (q step.Profile, sigmas map[string]float64) {
	if summariesOnly(levels) {
		return readOffReports(p, levels), nil
	}
	width := 1 + p.Speculation.DraftTokens // of a decode
	line := decodeKnots(levels, width)
	k := len(line)
	rows, y := equations(levels, line, width, tokensOfStep(&p.Speculation))
	if len(rows) < 3 {
		return p, nil
	}
	x := robustly(rows, y)
	ms := 0.0
	for i := range line {
		ms += x[i]
		line[i].Ms = max(ms, 0.1)
	}
	p.Cost.Decode = line
	if x[k] > 0 {
		p.Cost.DecodeNsPerContextToken = 1e6 * x[k]
	}
	sigmas = map[string]float64{}
	perToken := readTrains(&p, levels, sigmas)
	if perToken == 0 {
		perToken = promptToken(levels, &p)
	}
	if perToken == 0 {
		perToken = x[k+1] + x[k+2]/meanPrompt(levels)
	}
	if perToken > 0 {
		p.Cost.Step = []step.Knot{{Tokens: 1, Ms: line[0].Ms}, {Tokens: p.StepTokens, Ms: line[0].Ms + perToken*float64(p.StepTokens)}}
		if p.Host.StepsInFlight < 2 && p.StepTokens > 2*kneeTokens { // if the host's work is not hidden, small steps cost hardly less
			knee := step.Knot{Tokens: kneeTokens, Ms: line[0].Ms + perToken*kneeTokens}
			p.Cost.Step = slices.Insert(p.Cost.Step, 1, knee)
		}
	}
	readIntakes(&p, levels, sigmas)
	readLaunches(&p, levels, sigmas)
	if p.KV.Blocks == 0 {
		p.KV.Blocks = kvBlocks(levels, p.KV.BlockTokens)
	}
	return p, sigmas
}

// equations has one row for each window of an answer: its duration as a function of
// its contents. A decode computes width tokens and generates made tokens on
// average.
func equations(levels []*MeasuredLevel, line []step.Knot, width int, made float64) (rows [][]float64, y []float64) {
	k := len(line)
	for _, s := range levels {
		for _, w := range s.enginesOwn() {
			if w.took <= 0 || w.running < 0.5 {
				continue
			}
			row := make([]float64, k+3)
			rises(line, max(w.running, 1)*float64(width), row)
			for i := range k {
				row[i] *= w.tokens / made
			}
			row[k+1], row[k+2] = w.promptTokens, w.prompts
			row[k] = w.tokens / made * w.context
			rows, y = append(rows, row), append(y, w.took)
		}
	}
	return rows, y
}

// readTrains estimates the cost of a prompt token in ms and the cost of a pair of
// tokens, from steps full of prompts. It returns 0 if there are too few.
func readTrains(p *step.Profile, levels []*MeasuredLevel, sigmas map[string]float64) (perToken float64) {
	var rows [][]float64
	var y []float64
	steps := 0.0
	for _, s := range levels {
		for _, t := range s.trains {
			t.tokens += t.sequences * float64(p.Speculation.DraftTokens)
			t.fill(float64(p.StepTokens))
			ms := t.ms - t.steps*p.Cost.Decode[0].Ms - t.context*p.Cost.DecodeNsPerContextToken/1e6 - t.sequences*p.Cost.MixedUsPerSequence/1e3
			if ms > 0 {
				rows, y = append(rows, []float64{t.tokens - t.steps, t.pairs}), append(y, ms)
				steps += t.steps
			}
		}
	}
	if steps < fewestSteps {
		return 0
	}
	least, most := math.Inf(1), 0.0 // pairs per token
	for _, row := range rows {
		least, most = min(least, row[1]/row[0]), max(most, row[1]/row[0])
	}
	x := robustly(rows, y)
	if x[1] == 0 || most < 2*least { // prompts of one length do not identify the cost of pairs
		for i := range rows {
			y[i] -= rows[i][1] * p.Cost.PrefillNsPerTokenAndContext / 1e6
			rows[i] = rows[i][:1]
		}
		x = robustly(rows, y)
		sigmas["cost.prefill_ns_per_token_and_context"] = unidentifiedSigma
	} else {
		p.Cost.PrefillNsPerTokenAndContext = 1e6 * x[1]
		sigmas["cost.prefill_ns_per_token_and_context"] = launchSigma
	}
	sigmas["cost.step at 1"] = launchSigma // assumed equal to a decode
	sigmas[fmt.Sprintf("cost.step at %d", p.StepTokens)] = trainSigma
	return x[0]
}

// kneeTokens is the knot in the line of steps with prompts: below it a GPU is
// limited by memory bandwidth, above it by compute.
const kneeTokens = 256

const (
	fewestSteps       = 8    // minimum number of steps in trains
	trainSigma        = 0.01 // standard error of the result
	launchSigma       = 0.05
	unidentifiedSigma = 0.2 // of unidentified numbers, which would otherwise absorb the residuals of others
)

// meanPrompt is the mean number of prompt tokens of a request.
func meanPrompt(levels []*MeasuredLevel) float64 {
	var m mean
	for _, s := range levels {
		for _, q := range s.sent {
			m.add(float64(q.prompt - q.cached))
		}
	}
	return max(1, m.value())
}

// fewestPromptTokens keep the engine's CPU busy.
const fewestPromptTokens = 4096

// readLaunches estimates the launch times of steps with prompt tokens.
func readLaunches(p *step.Profile, levels []*MeasuredLevel, sigmas map[string]float64) {
	h := &p.Host
	if h.StepsInFlight < 2 {
		return
	}
	var rows [][]float64
	var y []float64
	for _, s := range levels {
		for i := range s.waves {
			if row, ms, fits := launchesOf(p, &s.waves[i]); fits {
				rows, y = append(rows, row), append(y, ms)
			}
		}
	}
	if len(rows) < fewestWaves {
		return
	}
	x := robustly(rows, y)
	names := []string{"host.graph_ms", "host.eager_ms", "host.per_new_ms"}
	for i, at := range []*float64{&h.GraphMs, &h.EagerMs, &h.PerNewMs} {
		if x[i] > 0 {
			*at = x[i]
			sigmas[names[i]] = launchSigma
		}
	}
}

// launchesOf is the equation of a wave: its graph launches, eager launches and new
// requests, and their total duration. It fits if the CPU was the bottleneck.
func launchesOf(p *step.Profile, w *wave) (row []float64, ms float64, fits bool) {
	h := &p.Host
	ms = w.ms - 2*p.API.HandOverMs
	row = make([]float64, 3)
	for i := range w.new {
		tokens := w.prompt[i]
		if i == 1 {
			tokens += w.new[0] // they decode by now
		}
		if tokens <= h.GraphTokens {
			row[0]++
		} else {
			row[1]++
		}
		row[2] += float64(w.new[i])
		ms -= h.PerArrivalMs*float64(w.new[i]) + h.PerArrivalTokenUs*float64(w.prompt[i])/1e3
	}
	perToken := (p.Cost.Step[1].Ms - p.Cost.Step[0].Ms) / float64(p.Cost.Step[1].Tokens)
	gpu := p.Cost.Step[0].Ms + perToken*float64(w.prompt[0])
	return row, ms, ms > 0 && gpu < 0.8*ms && w.prompt[0]+w.prompt[1] < p.StepTokens && w.new[1] < manyAtOnce
}

const (
	fewestWaves = 6
	manyAtOnce  = 40 // requests that do not all reach the engine within one launch
)

// kvBlocks is the KV cache size according to metrics pages, or 0 if unknown.
func kvBlocks(levels []*MeasuredLevel, blockTokens int) int {
	var all []float64
	for _, s := range levels {
		if s.kvTokens > 0 {
			all = append(all, s.kvTokens)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return int(all[len(all)-1]) / blockTokens // prompts in prefill are not counted, so the highest value is nearest
}
