package workload

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
)

var burstgpt = Kind{
	Name: "burstgpt", Doc: "lengths of the BurstGPT trace (rows of GPT-4 with an answer), in random order, without arrival times",
	reads:  [][]string{{"Timestamp", "Request tokens", "Response tokens"}},
	Tokens: true, New: newBurstGPT,
}

// rowCost is the memory of a row: its lengths, which are in memory twice while their list grows, and its place in the order.
const rowCost = 32

// newBurstGPT draws rows without replacement, or with replacement if there are too few
// rows, as vLLM does.
func newBurstGPT(ctx context.Context, o Options) (Workload, error) {
	var lengths [][2]int32 // of prompt and output
	most := int(cmp.Or(o.maxKept, maxKept) / rowCost)
	f := &burstgptFormat
	if err := readTrace(f, o, func(row traceRow) bool {
		if row.Model == "GPT-4" && row.Output > 0 {
			lengths = append(lengths, [2]int32{int32(row.Input), int32(row.Output)}) // both are at most maxTraceTokens
		}
		return len(lengths) <= most
	}); err != nil {
		return nil, err
	}
	if len(lengths) > most {
		return nil, fmt.Errorf("burstgpt: %s: more than %d rows of GPT-4: use a smaller file, or --dataset-name burstgpt_trace, which keeps one row in memory", o.Path, most)
	}
	if len(lengths) == 0 {
		return nil, fmt.Errorf("burstgpt: %s has no row of GPT-4 with response tokens; use another BurstGPT file, or --dataset-name burstgpt_trace for all rows", o.Path)
	}
	w, err := newDrawn(ctx, "burstgpt", o)
	if err != nil {
		return nil, err
	}
	order := rngOf(o.Seed, prefixIndex+1).Perm(len(lengths))
	if !o.Repeat || o.Count == 0 {
		w.end = uint64(len(lengths))
		w.Count = min(w.Count, len(lengths))
	}
	again := o.Count > len(lengths)
	w.lengths = func(i uint64, r *rand.Rand) (in, out int) {
		at := i % uint64(len(lengths))
		if again || i >= uint64(len(lengths)) {
			at = r.Uint64N(uint64(len(lengths)))
		}
		row := lengths[order[at]]
		return max(int(row[0]), 1), int(row[1])
	}
	return w, w.prepare()
}
