package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"tacho/backend"
	"tacho/internal/spelling"
	"tacho/pace"
	"tacho/workload"
)

// Validate says what is wrong with the plan before anything is sent.
func (p *Plan) Validate() error {
	if err := cmp.Or(p.validateLists(), p.validateMachines()); err != nil {
		return err
	}
	levels, err := p.levels()
	if err != nil {
		return err
	}
	for _, l := range levels {
		if err := cmp.Or(l.Plan.validateFleet(), l.Plan.validateLevel(l)); err != nil {
			return err
		}
	}
	return nil
}

// validateLists says what is wrong with the lists as such.
func (p *Plan) validateLists() error {
	if _, err := p.Classes(); err != nil {
		return err
	}
	swept := 0
	for _, a := range p.lists {
		if slices.Equal(a.values, []string{Sweep}) {
			swept++
		}
	}
	switch {
	case swept > 1:
		return errors.New("--request-rate sweep goes without --max-concurrency sweep: one of them finds its levels, and the other may be a list")
	case swept > 0 && p.ShuffleLevels:
		return errors.New("--shuffle-levels goes without sweep: a sweep chooses each level by what those before it came to")
	case swept > 0 && p.SweepPoints < 3:
		return fmt.Errorf("--sweep-points %d: at least 3 are needed to see a bend", p.SweepPoints)
	case p.Repeat < 1 && p.Given("repeat"):
		return fmt.Errorf("--repeat %d: each level runs once at least; leave it out for that", p.Repeat)
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
	if !math.IsInf(p.RequestRate, 1) {
		return errors.New("--ramp-up-strategy goes without --request-rate: the ramp is the rate")
	}
	if p.RampUpStartRPS == nil || p.RampUpEndRPS == nil {
		return errors.New("--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps")
	}
	return nil
}

// validateLevel says what is wrong with the plan of a level.
func (p *Plan) validateLevel(l Level) error {
	for _, o := range p.Options() {
		if text := o.Text(); len(o.words) > 0 && text != "" && !slices.Contains(o.words, text) {
			return fmt.Errorf("--%s %q%s write %s", strings.Join(append([]string{o.Name}, o.Aliases...), " or --"), text, cmp.Or(spelling.Meant(text, o.words), ":"), strings.Join(o.words, " or "))
		}
	}
	if p.MaxConcurrency < 1 && p.Given("max-concurrency") {
		return fmt.Errorf("--max-concurrency %d: at least 1 request must be allowed", p.MaxConcurrency)
	}
	if p.PromptsFactor != 0 && (p.PromptsFactor < 0 || p.MaxConcurrency == 0) {
		return fmt.Errorf("--sweep-num-prompts-factor %d: it is a multiple of --max-concurrency", p.PromptsFactor)
	}
	if err := p.validateReplay(); err != nil {
		return err
	}
	if err := cmp.Or(p.validateRamp(), p.validateDataset(), p.validateLoad(l)); err != nil {
		return err
	}
	if err := p.validateNumbers(); err != nil {
		return err
	}
	_, err := p.Config(l)
	return err
}

// validateNumbers says which number cannot be below 0, where nobody else has.
func (p *Plan) validateNumbers() error {
	for _, o := range p.Options() {
		if n, is := o.Value.(*int); is && *n < 0 && o.Name != "num-prompts" { // all of a file
			return fmt.Errorf("--%s %d: write 0 or more", o.Name, *n)
		}
	}
	return nil
}

// validateReplay complains about what a replay brings along itself.
func (p *Plan) validateReplay() error {
	if p.Replay == "" {
		return nil
	}
	for _, o := range p.Options() {
		brought := slices.Contains(datasetGroups, o.Group) || slices.Contains([]string{"num-prompts", "sweep-num-prompts-factor", "request-rate", "burstiness", "ramp-up-strategy", "max-seconds", "seed"}, o.Name)
		if brought && o.Given() {
			return fmt.Errorf("--replay sends what that run sent, when it sent it: leave out --%s", o.Name)
		}
	}
	return nil
}

// validateLoad says what is wrong with the load of a level.
func (p *Plan) validateLoad(l Level) error {
	if l.Prompts <= 0 && p.MaxSeconds == 0 && p.Every(func(k workload.Kind) bool { return k.Endless }) {
		return fmt.Errorf("--num-prompts %d: at least 1 is needed, or --max-seconds", l.Prompts)
	}
	if math.IsInf(l.Rate, 1) && l.Concurrency == 0 && l.Prompts <= 0 && p.MaxSeconds > 0 && !p.OwnTimes() {
		return errors.New("--max-seconds needs --request-rate or --max-concurrency: without either, requests without end are due at once")
	}
	if err := p.validateProfile(); err != nil {
		return err
	}
	_, _, err := pace.New(p.Pacing(l, 0))
	return err
}

func (p *Plan) validateProfile() error {
	switch {
	case p.ProfileAt == 0 && p.ProfileFor == Default().ProfileFor:
		return nil
	case p.ProfileAt <= 0:
		return errors.New("--profile-duration goes with --profile-batch-threshold, from 1 request on")
	case !p.Profile:
		return errors.New("--profile-batch-threshold goes with --profile")
	case p.ProfileFor <= 0:
		return fmt.Errorf("--profile-duration %v: it must be above 0", float64(p.ProfileFor))
	case slices.Contains(p.MetricsURL, "none"):
		return errors.New("--profile-batch-threshold reads the server's metrics page: leave out --metrics-url none")
	}
	return nil
}

func (p *Plan) validateDataset() error {
	if err := p.Dataset.Validate(); err != nil {
		return err
	}
	if p.Scenario.Given() && !p.Every(func(k workload.Kind) bool { return k.Scenarios }) {
		return errors.New("--scenario goes with --dataset-name random: other datasets have lengths of their own")
	}
	k, err := backend.Find(p.Backend)
	if err != nil && !strings.EqualFold(p.Backend, backend.Auto) {
		return err
	}
	if err == nil && p.ProbeRate > 0 && !k.Takes.Text {
		return fmt.Errorf("--probe-request-rate: probes are short texts, and %s sends none: leave it out", p.Backend)
	}
	if err == nil && p.RandomBatchSize > 1 && !k.Pools {
		return fmt.Errorf("--random-batch-size %d: %s takes one prompt in a request; embeddings take several", p.RandomBatchSize, p.Backend)
	}
	if p.PromptIDs {
		switch {
		case p.PromptText:
			return errors.New("--prompt-token-ids and --prompt-text: choose one")
		case !p.Every(func(k workload.Kind) bool { return k.Tokens }):
			return fmt.Errorf("--prompt-token-ids goes with --dataset-name random: prompts of %s are texts", p.Datasets())
		case err == nil && !k.Takes.IDs:
			return fmt.Errorf("--prompt-token-ids: %s takes no token ids; leave it out, or choose a --backend such as openai", p.Backend)
		}
	}
	_, err = p.kinds()
	return err
}
