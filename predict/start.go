package predict

import (
	"fmt"
	"math"
	"slices"

	"tacho/sim/step"
)

// generic is an engine of which nothing is known but that it is like vLLM: a Python
// server with an API process, two steps in flight and CUDA graphs. Its limits are
// vLLM's defaults. Its times are round figures for such processes: a fit takes them
// for the middle of a wide range, and keeps those that the runs say nothing of.
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

// plain is an engine with nothing around it but a fixed time before it.
func plain() step.Profile {
	p := generic()
	p.Host, p.API = step.Host{}, step.API{}
	p.Cost.MixedUsPerSequence = 0
	p.FrontEnd = step.FrontEnd{FixedMs: 3, PerRequestMs: 0.2}
	return p
}

// corners are the batch sizes at which the line of decode steps may bend.
var corners = []int{1, 16, 64, 128, 256, 512, 1024}

// decodeKnots are those that levels tell of.
func decodeKnots(levels []*Seen, width int) []step.Knot {
	most := 1
	for _, s := range levels {
		most = max(most, s.most*width)
	}
	var line []step.Knot
	for _, c := range corners {
		if c == 1 || 7*c <= 5*most && slices.ContainsFunc(levels, func(s *Seen) bool { return s.near(float64(c) / float64(width)) }) {
			line = append(line, step.Knot{Tokens: c})
		}
	}
	return append(line, step.Knot{Tokens: max(most, 2)})
}

// near says whether a level decoded about so many answers at once.
func (s *Seen) near(n float64) bool {
	return slices.ContainsFunc(s.windows, func(w window) bool { return math.Abs(math.Log(w.running/n)) < 0.5 })
}

// behind says whether the client sees tokens later than the engine makes them: a
// process in between is the limit.
func (s *Seen) behind() bool {
	return s.Measured[serverTPOT] > 0 && s.Measured[TPOT] > 1.07*s.Measured[serverTPOT]
}

// enginesOwn are the windows of a level as the engine saw them: those of its client,
// or the server's word where the client saw tokens later.
func (s *Seen) enginesOwn() []window {
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

// rises are how much of each rise of a line, from one knot to the next, there is at
// n; the first is the line's level.
func rises(line []step.Knot, n float64, row []float64) {
	row[0] = 1
	for i := 1; i < len(line); i++ {
		a, b := float64(line[i-1].Tokens), float64(line[i].Tokens)
		row[i] = max(0, min(1, (n-a)/(b-a)))
	}
}

// readOff is p with the costs that token times tell without any model: sums over
// stretches of an answer, by how many others were written meanwhile, how long they
// were, and what prompts were read. It says how sure the surest are.
func readOff(p step.Profile, levels []*Seen) (q step.Profile, sure map[string]float64) {
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
	sure = map[string]float64{}
	perToken := readTrains(&p, levels, sure)
	if perToken == 0 {
		perToken = promptToken(levels, &p)
	}
	if perToken == 0 {
		perToken = x[k+1] + x[k+2]/meanPrompt(levels)
	}
	if perToken > 0 {
		p.Cost.Step = []step.Knot{{Tokens: 1, Ms: line[0].Ms}, {Tokens: p.StepTokens, Ms: line[0].Ms + perToken*float64(p.StepTokens)}}
		if p.Host.StepsInFlight < 2 && p.StepTokens > 2*kneeTokens { // where nothing hides it, small steps show that they cost hardly less
			knee := step.Knot{Tokens: kneeTokens, Ms: line[0].Ms + perToken*kneeTokens}
			p.Cost.Step = slices.Insert(p.Cost.Step, 1, knee)
		}
	}
	readIntakes(&p, levels, sure)
	readLaunches(&p, levels, sure)
	if p.KV.Blocks == 0 {
		p.KV.Blocks = kvBlocks(levels, p.KV.BlockTokens)
	}
	return p, sure
}

// equations are what each stretch of an answer took, and of what: one row for each.
// A decode computes so many tokens, and makes so many on average.
func equations(levels []*Seen, line []step.Knot, width int, made float64) (rows [][]float64, y []float64) {
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

// readTrains reads off what a prompt token costs, in ms, and what a pair of them
// does, from steps that were full of prompts; 0: there are too few.
func readTrains(p *step.Profile, levels []*Seen, sure map[string]float64) (perToken float64) {
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
	least, most := math.Inf(1), 0.0 // pairs of a token
	for _, row := range rows {
		least, most = min(least, row[1]/row[0]), max(most, row[1]/row[0])
	}
	x := robustly(rows, y)
	if x[1] == 0 || most < 2*least { // prompts of one length say nothing of pairs
		for i := range rows {
			y[i] -= rows[i][1] * p.Cost.PrefillNsPerTokenAndContext / 1e6
			rows[i] = rows[i][:1]
		}
		x = robustly(rows, y)
		sure["cost.prefill_ns_per_token_and_context"] = untoldSigma
	} else {
		p.Cost.PrefillNsPerTokenAndContext = 1e6 * x[1]
		sure["cost.prefill_ns_per_token_and_context"] = launchSigma
	}
	sure["cost.step at 1"] = launchSigma // it was taken for that of a decode
	sure[fmt.Sprintf("cost.step at %d", p.StepTokens)] = trainSigma
	return x[0]
}

// kneeTokens is where the line of steps with prompts may bend: below it a GPU waits
// for the weights, above it computes.
const kneeTokens = 256

const (
	fewestSteps = 8    // of trains tell a cost
	trainSigma  = 0.01 // and so well
	launchSigma = 0.05
	untoldSigma = 0.2 // of what the data does not tell, and would otherwise take up what others leave
)

// meanPrompt is how many prompt tokens a request has.
func meanPrompt(levels []*Seen) float64 {
	var m mean
	for _, s := range levels {
		for _, q := range s.sent {
			m.add(float64(q.prompt - q.cached))
		}
	}
	return max(1, m.value())
}

// fewestPromptTokens keep the processor of the engine busy.
const fewestPromptTokens = 4096

// readLaunches reads off what the launch of a step with prompt tokens takes.
func readLaunches(p *step.Profile, levels []*Seen, sure map[string]float64) {
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
			sure[names[i]] = launchSigma
		}
	}
}

// launchesOf is the equation of a wave: how many graph and eager launches and new
// requests it had, and how long they took together. It fits where the processor
// was what they waited for.
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
	manyAtOnce  = 40 // do not reach the engine within one launch
)

// kvBlocks is the room that metrics pages tell of; 0: none does.
func kvBlocks(levels []*Seen, blockTokens int) int {
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
	return int(all[len(all)-1]) / blockTokens // prompts being read are not counted, so the highest is nearest
}
