package cli

import (
	"errors"
	"fmt"

	"github.com/tacho-bench/tacho/internal/bench"
	"github.com/tacho-bench/tacho/plan"
)

// readResumed reads the plan and the results of an interrupted run. Flags that
// change the plan are errors.
func readResumed(env *Env, o *benchOptions, p *plan.Plan) error {
	if o.file != "" && o.resume != "" {
		return errors.New("--resume cannot be combined with --plan, because the run has its own")
	}
	if o.resume == lastRun {
		env.again.Store(true)
		o.resume = bench.CutShort(p.RunsDir)
	}
	if dir, ok, err := namedRun(p.RunsDir, o.resume); ok {
		if err != nil {
			return fmt.Errorf("--resume: %w", err)
		}
		o.resume = dir
	}
	if o.resume == "" {
		return nil
	}
	return env.borrow(p, o.resume, func() error {
		before, seed, err := bench.ReadResumed(o.resume, p, env.secrets)
		o.resumed, o.seed = before, &seed
		return err
	})
}

// resume continues the interrupted run, if there is one.
func (b *benchRun) resume(o *benchOptions) error {
	if o.resume == "" {
		return nil
	}
	kept, err := b.bench.Resume(o.resume, o.resumed)
	if err == nil && b.agents != nil && kept.Cluster != "" {
		b.agents.name, b.agents.goOn = kept.Cluster, true
	}
	return err
}
