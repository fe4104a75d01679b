package bench

import (
	"cmp"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/plan"
)

// nameLength bounds the name of a run in bytes. The directory adds the time and a dash, 16 bytes.
const nameLength = 44

// runName returns the name of a run without a label, such as llama-3.1-8b-instruct-8..32conc-vllm: model, load and
// engine. A long model name loses its end.
func runName(model, load, engine string, limit int) string {
	clean := func(s string) string { return strings.Trim(sanitize.FileName(strings.ToLower(s)), "-.") }
	end := clean(load)
	if engine = clean(engine); engine != "" {
		end = strings.Trim(end+"-"+engine, "-")
	}
	model = clean(path.Base(model))
	model = strings.ToValidUTF8(model[:min(len(model), max(limit-len(end)-1, 0))], "")
	return strings.Trim(strings.Trim(model, "-.")+"-"+end, "-.")
}

// loadName describes the load of a plan's levels: 8..32conc for --max-concurrency 8,16,32.
func loadName(p *plan.Plan) string {
	switch {
	case p.OwnTimes():
		return "trace"
	case p.RampUpStrategy != "":
		return "ramp"
	case p.Swept() != "":
		return "sweep"
	}
	levels := p.Levels()
	span := func(of func(plan.Level) float64, unit string) string {
		compare := func(a, b plan.Level) int { return cmp.Compare(of(a), of(b)) }
		from, to := of(slices.MinFunc(levels, compare)), of(slices.MaxFunc(levels, compare))
		if math.IsInf(from, 1) || to == 0 {
			return ""
		}
		format := func(v float64) string {
			verb := byte('f')
			if v > 1e9 {
				verb = 'g'
			}
			return strings.ReplaceAll(strconv.FormatFloat(v, verb, -1, 64), "+", "")
		}
		text := format(from)
		if to > from {
			text += ".." + format(to)
		}
		return text + unit
	}
	if len(levels) == 0 {
		return ""
	}
	rate := span(func(l plan.Level) float64 { return l.Rate }, "rps")
	concurrency := span(func(l plan.Level) float64 { return float64(l.Concurrency) }, "conc")
	prompts := span(func(l plan.Level) float64 { return float64(l.Prompts) }, "prompts")
	return cmp.Or(strings.Trim(rate+"-"+concurrency, "-"), prompts)
}
