package workload

import (
	"context"
	"fmt"
	"math/rand/v2"
)

var burstgpt = Kind{
	Name: "burstgpt", Doc: "lengths of the BurstGPT trace (rows of GPT-4 with an answer), in random order, without arrival times",
	reads:  [][]string{{"Timestamp", "Request tokens", "Response tokens"}},
	Tokens: true, New: newBurstGPT,
}

// newBurstGPT draws rows without replacement, or with replacement if there are too few
// rows, as vLLM does.
func newBurstGPT(ctx context.Context, o Options) (Workload, error) {
	var rows []traceRow
	f := &burstgptFormat
	if err := readTrace(f, o, func(row traceRow) bool {
		if row.Model == "GPT-4" && row.Output > 0 {
			rows = append(rows, row)
		}
		return true
	}); err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("burstgpt: %s has no row of GPT-4 with response tokens; use another BurstGPT file, or --dataset-name burstgpt_trace for all rows", o.Path)
	}
	w, err := newDrawn(ctx, "burstgpt", o)
	if err != nil {
		return nil, err
	}
	order := rngOf(o.Seed, prefixIndex+1).Perm(len(rows))
	if !o.Repeat || o.Count == 0 {
		w.end = uint64(len(rows))
	}
	again := o.Count > len(rows)
	w.lengths = func(i uint64, r *rand.Rand) (in, out int) {
		at := i % uint64(len(rows))
		if again || i >= uint64(len(rows)) {
			at = r.Uint64N(uint64(len(rows)))
		}
		row := rows[order[at]]
		return max(row.Input, 1), row.Output
	}
	return w, w.prepare()
}
