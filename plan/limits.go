package plan

import (
	"fmt"
	"strconv"

	"tacho/workload"
)

// What is asked for is held in memory, or made at once. A number that no
// machine can hold is refused by its name, before it is tried.
const mostOfAny = 100_000_000

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
	most := mostOfAny
	switch o.most {
	case "":
	case "tokens":
		most = workload.MostTokens
	case "ranks":
		most = workload.MostRanks
	default:
		most, _ = strconv.Atoi(o.most) // what is no number allows none
	}
	for _, n := range all {
		if n > most {
			return fmt.Errorf("%d is too many: write %d at most", n, most)
		}
	}
	return nil
}
