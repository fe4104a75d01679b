package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/score"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/pace"
	"github.com/tacho-bench/tacho/workload"
)

// Validate checks the plan before anything is sent.
func (p *Plan) Validate() error {
	if err := cmp.Or(p.validateLists(), p.validateMachines(), p.validateAnswers()); err != nil {
		return err
	}
	levels, err := p.levels()
	if err != nil {
		return err
	}
	for _, l := range levels {
		if err := cmp.Or(l.Plan.validatePrediction(), l.Plan.validateLevel(l)); err != nil {
			return err
		}
	}
	return nil
}

// validateLists checks the lists themselves.
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
		return errors.New("--request-rate sweep cannot be combined with --max-concurrency sweep: sweep one, and give the other as a list")
	case swept > 0 && p.ShuffleLevels:
		return errors.New("--shuffle-levels cannot be combined with sweep, which chooses each level from the results so far")
	case swept > 0 && p.SweepPoints < 3:
		return fmt.Errorf("--sweep-points %d: want at least 3", p.SweepPoints)
	case p.Repeat < 1 && p.Given("repeat"):
		return fmt.Errorf("--repeat %d: want at least 1", p.Repeat)
	}
	return nil
}

func (p *Plan) validatePrediction() error {
	switch {
	case p.Replicas < 0 || p.Replicas == 0 && p.Given("replicas"):
		return fmt.Errorf("--replicas %d: write at least 1", p.Replicas)
	case p.Draws < 0:
		return fmt.Errorf("--draws %d: want 0 or more", p.Draws)
	}
	return nil
}

// JudgesAnswers reports whether the answers are scored or compared.
func (p *Plan) JudgesAnswers() bool { return p.Score != "" || p.CheckAnswers }

// validateAnswers checks the options that judge answers.
func (p *Plan) validateAnswers() error {
	if p.Score != "" {
		if _, err := score.Named(p.Score); err != nil {
			return fmt.Errorf("--score: %w", err)
		}
	}
	switch {
	case p.JudgesAnswers() && p.Agents > 0:
		return errors.New("--score and --check-answers read the answers in one process and cannot be combined with --agents")
	case p.JudgesAnswers() && p.Virtual:
		return errors.New("--score and --check-answers need answers, which --virtual does not compute: use --sim without --virtual")
	case !p.CheckAnswers:
		return nil
	case p.Replay != "":
		return errors.New("--check-answers cannot be combined with --replay")
	case p.Temperature != nil && *p.Temperature > 0:
		return errors.New("--check-answers compares answers one by one and needs --temperature 0")
	case p.AlonePrompts < 1:
		return fmt.Errorf("--alone-prompts %d: want at least 1", p.AlonePrompts)
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
		return errors.New("--ramp-up-strategy cannot be combined with --request-rate")
	}
	if p.RampUpStartRPS == nil || p.RampUpEndRPS == nil {
		return errors.New("--ramp-up-strategy needs --ramp-up-start-rps and --ramp-up-end-rps")
	}
	return nil
}

// validateLevel checks the plan of a level.
func (p *Plan) validateLevel(l Level) error {
	for _, o := range p.Options() {
		if text := o.Text(); len(o.words) > 0 && text != "" && !slices.Contains(o.words, text) {
			return fmt.Errorf("--%s %q%s write %s", strings.Join(append([]string{o.Name}, o.Aliases...), " or --"), text, cmp.Or(spelling.DidYouMean(text, o.words), ":"), strings.Join(o.words, " or "))
		}
	}
	if p.MaxConcurrency < 1 && p.Given("max-concurrency") {
		return fmt.Errorf("--max-concurrency %d: want at least 1", p.MaxConcurrency)
	}
	if p.PromptsFactor != 0 && (p.PromptsFactor < 0 || p.MaxConcurrency == 0) {
		return fmt.Errorf("--sweep-num-prompts-factor %d: want a positive multiple of --max-concurrency", p.PromptsFactor)
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

// validateNumbers rejects negative numbers that no other check rejects.
func (p *Plan) validateNumbers() error {
	for _, o := range p.Options() {
		if n, is := o.Value.(*int); is && *n < 0 && o.Name != "num-prompts" { // negative means all prompts of a file
			return fmt.Errorf("--%s %d: want 0 or more", o.Name, *n)
		}
	}
	return nil
}

// validateReplay rejects options whose values come from the replayed run.
func (p *Plan) validateReplay() error {
	if p.Replay == "" {
		return nil
	}
	for _, o := range p.Options() {
		brought := slices.Contains(datasetGroups, o.Group) || slices.Contains([]string{"num-prompts", "sweep-num-prompts-factor", "request-rate", "burstiness", "ramp-up-strategy", "max-seconds", "seed"}, o.Name)
		if brought && o.Given() {
			return fmt.Errorf("--replay repeats the requests and times of a run and cannot be combined with --%s", o.Name)
		}
	}
	return nil
}

// validateLoad checks the load of a level.
func (p *Plan) validateLoad(l Level) error {
	if l.Prompts <= 0 && p.MaxSeconds == 0 && p.Every(func(k workload.Kind) bool { return k.Endless }) {
		return fmt.Errorf("--num-prompts %d: want at least 1, or --max-seconds", l.Prompts)
	}
	if math.IsInf(l.Rate, 1) && l.Concurrency == 0 && l.Prompts <= 0 && p.MaxSeconds > 0 && !p.OwnTimes() {
		return errors.New("--max-seconds needs --request-rate or --max-concurrency to limit the load")
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
		return errors.New("--profile-duration needs --profile-batch-threshold of at least 1")
	case !p.Profile:
		return errors.New("--profile-batch-threshold needs --profile")
	case p.ProfileFor <= 0:
		return fmt.Errorf("--profile-duration %v: want a value above 0", float64(p.ProfileFor))
	case slices.Contains(p.MetricsURL, "none"):
		return errors.New("--profile-batch-threshold needs the server's metrics page, remove --metrics-url none")
	}
	return nil
}

func (p *Plan) validateDataset() error {
	if err := p.Dataset.Validate(); err != nil {
		return err
	}
	if p.Scenario.Given() && !p.Every(func(k workload.Kind) bool { return k.Scenarios }) {
		return errors.New("--scenario needs --dataset-name random, because other datasets have their own lengths")
	}
	k, err := backend.Find(p.Backend)
	if err != nil && !strings.EqualFold(p.Backend, backend.Auto) {
		return err
	}
	if err == nil && p.ProbeRate > 0 && !k.Takes.Text {
		return fmt.Errorf("--probe-request-rate: probes are text, which %s does not accept; remove the option", p.Backend)
	}
	if err == nil && p.JudgesAnswers() && k.Pools {
		return fmt.Errorf("--score and --check-answers read texts, which %s does not answer with: remove the option", p.Backend)
	}
	if err == nil && p.RandomBatchSize > 1 && !k.Pools {
		return fmt.Errorf("--random-batch-size %d: %s accepts one prompt per request; use an embeddings backend", p.RandomBatchSize, p.Backend)
	}
	if p.PromptIDs {
		switch {
		case p.PromptText:
			return errors.New("--prompt-token-ids cannot be combined with --prompt-text")
		case !p.Every(func(k workload.Kind) bool { return k.Tokens }):
			return fmt.Errorf("--prompt-token-ids needs --dataset-name random, because prompts of %s are text", p.datasets())
		case err == nil && !k.Takes.IDs:
			return fmt.Errorf("--prompt-token-ids: %s does not accept token ids; remove the option or choose a --backend such as openai", p.Backend)
		}
	}
	_, err = p.kinds()
	return err
}
