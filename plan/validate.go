package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tacho/backend"
	"tacho/pace"
	"tacho/workload"
)

// Validate says what is wrong with the plan before anything is sent.
func (p *Plan) Validate() error {
	for _, o := range p.Options() {
		if len(o.words) > 0 && !slices.Contains(o.words, o.Text()) {
			return fmt.Errorf("--%s %q: write %s", o.Name, o.Text(), strings.Join(o.words, " or "))
		}
	}
	for _, n := range p.MaxConcurrency {
		if n < 1 {
			return fmt.Errorf("--max-concurrency %d: at least 1 request must be allowed", n)
		}
	}
	if err := cmp.Or(p.validateRamp(), p.validateDataset()); err != nil {
		return err
	}
	for _, l := range p.Levels() {
		if err := p.validateLevel(l); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plan) validateRamp() error {
	if p.RampUpStrategy == "" {
		if p.RampUpStartRPS != nil || p.RampUpEndRPS != nil {
			return errors.New("--ramp-up-start-rps and --ramp-up-end-rps need --ramp-up-strategy linear or exponential")
		}
		return nil
	}
	if len(p.RequestRate) != 1 || !math.IsInf(p.RequestRate[0], 1) {
		return errors.New("--ramp-up-strategy goes without --request-rate: the ramp is the rate")
	}
	if p.RampUpStartRPS == nil || p.RampUpEndRPS == nil {
		return errors.New("--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps")
	}
	return nil
}

func (p *Plan) validateLevel(l Level) error {
	if l.Prompts <= 0 && p.MaxSeconds == 0 && p.Every(func(k workload.Kind) bool { return k.Endless }) {
		return fmt.Errorf("--num-prompts %d: at least 1 is needed, or --max-seconds", l.Prompts)
	}
	if math.IsInf(l.Rate, 1) && l.Concurrency == 0 && l.Prompts <= 0 && p.MaxSeconds > 0 && !p.OwnTimes() {
		return errors.New("--max-seconds needs --request-rate or --max-concurrency: without either, requests without end are due at once")
	}
	if _, _, err := pace.New(p.Pacing(l, 0)); err != nil {
		return err
	}
	_, err := p.Config(l)
	return err
}

func (p *Plan) validateDataset() error {
	if err := p.Dataset.Validate(); err != nil {
		return err
	}
	if p.Scenario.Given() && !p.Every(func(k workload.Kind) bool { return k.Scenarios }) {
		return errors.New("--scenario goes with --dataset-name random: other datasets have lengths of their own")
	}
	k, err := backend.Find(p.Backend) // auto is none yet
	if err == nil && p.ProbeRate > 0 && !k.Takes.Text {
		return fmt.Errorf("--probe-request-rate: probes are short texts, and %s sends none: leave it out", p.Backend)
	}
	if err == nil && p.RandomBatchSize > 1 && !k.Pools {
		return fmt.Errorf("--random-batch-size %d: %s takes one prompt in a request; embeddings take several", p.RandomBatchSize, p.Backend)
	}
	_, err = p.kinds()
	return err
}
