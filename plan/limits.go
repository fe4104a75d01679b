package plan

import (
	"fmt"

	"tacho/workload"
)

// What is asked for is held in memory, or made at once. A number that no
// machine can hold is refused by its name, before it is tried.
const mostOfAny = 100_000_000

// mostOf is the most that some options may ask for.
var mostOf = map[string]int{
	"max-concurrency":                  1_000_000,
	"num-system-prompts":               workload.MostRanks,
	"prefix-repetition-num-prefixes":   workload.MostRanks,
	"prefix-repetition-prefix-len":     workload.MostTokens,
	"random-batch-size":                1 << 16,
	"random-mm-base-items-per-request": mostItems,
	"random-num-prefixes":              workload.MostRanks,
	"random-prefix-len":                workload.MostTokens,
	"sonnet-prefix-len":                workload.MostTokens,
	"system-prompt-len":                workload.MostTokens,
	"timed-trace-chunk-hash-size":      workload.MostTokens,
	"trace-block-size":                 workload.MostTokens,
}

const (
	mostItems  = 1000    // pictures and videos in one request
	mostTokens = 1 << 26 // in one request, all its prompts together
)

// bounded says that a number is too large for the option.
func (o *Option) bounded() error {
	var all []int
	switch v := o.Value.(type) {
	case *int:
		all = []int{*v}
	case **int:
		all = []int{**v}
	case *IntLevels:
		all = *v
	}
	most, ok := mostOf[o.Name]
	if !ok {
		most = mostOfAny
	}
	for _, n := range all {
		if n > most {
			return fmt.Errorf("%d is too many: write %d at most", n, most)
		}
	}
	return nil
}
