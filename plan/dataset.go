package plan

import (
	"fmt"
	"slices"
	"strings"

	"tacho/workload"
)

// kinds are the datasets of the plan: one, or those of its mix.
func (p *Plan) kinds() ([]workload.Kind, error) {
	names := []string{p.DatasetName}
	if len(p.Mix) > 0 {
		classes, err := p.Classes()
		if err != nil {
			return nil, err
		}
		names = nil
		for _, c := range classes {
			names = append(names, c.Plan.DatasetName)
		}
	}
	var out []workload.Kind
	for _, name := range names {
		k, err := workload.Find(name)
		if err != nil {
			return nil, fmt.Errorf("--dataset-name: %w", err)
		}
		out = append(out, k)
	}
	return out, nil
}

// Datasets names the datasets of the plan.
func (p *Plan) Datasets() string {
	kinds, _ := p.kinds() // a plan that cannot be read has none
	var names []string
	for _, k := range kinds {
		if !slices.Contains(names, k.Name) {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Every says whether all datasets of the plan have a property; a plan that
// cannot be read has none.
func (p *Plan) Every(has func(workload.Kind) bool) bool {
	kinds, err := p.kinds()
	return err == nil && !slices.ContainsFunc(kinds, func(k workload.Kind) bool { return !has(k) })
}

// Quotes says whether a request of the plan may quote an answer.
func (p *Plan) Quotes() bool { return !p.Every(func(k workload.Kind) bool { return !k.Quotes }) }

// OwnTimes says whether arrivals are the trace's own.
func (p *Plan) OwnTimes() bool {
	rated := p.Given("request-rate") || p.RampUpStrategy != ""
	return p.SelfTimed && !p.NoSelfTimed && len(p.Mix) == 0 && !rated && p.Every(func(k workload.Kind) bool { return k.Timed })
}
