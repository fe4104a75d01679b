package cli

import (
	"errors"

	"tacho/bench"
	"tacho/plan"
)

// lastRun is what --resume takes in place of a directory.
const lastRun = "last"

// readResumed takes the plan of the run that is to go on, and what it came to so
// far. The plan has to be as it was.
func readResumed(env *Env, o *benchOptions, p *plan.Plan) error {
	if o.file != "" && o.resume != "" {
		return errors.New("--resume goes without --plan: the run has its own")
	}
	if o.resume == lastRun {
		env.again.Store(true)
		o.resume = bench.CutShort(p.RunsDir)
	}
	if o.resume == "" {
		return nil
	}
	before, seed, err := bench.ReadResumed(o.resume, p, env.secrets)
	o.resumed, o.seed = before, &seed
	return err
}

// resume takes up the run that is to go on, if there is one.
func (b *benchRun) resume(o *benchOptions) error {
	if o.resume == "" {
		return nil
	}
	kept, err := b.Resume(o.resume, o.resumed)
	if err == nil && b.agents != nil && kept.Cluster != "" {
		b.agents.name, b.agents.goOn = kept.Cluster, true
	}
	return err
}
