package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"tacho/plan"
)

// engineFlag is what predict calls bench's --sim.
const engineFlag = "engine"

func newPredict(env *Env) *cobra.Command {
	p := plan.Default()
	p.Virtual = true
	cmd := benchCommand(&p, env)
	cmd.Use = "predict"
	cmd.Short = "Compute what an engine would make of a load, in virtual time"
	cmd.Long = `predict runs a plan on a model of an engine instead of a server, in virtual time:
an hour of load takes seconds, and needs no GPU. Flags are those of bench; it is
"tacho bench --virtual", and --engine is --sim: a profile that tacho carries
(tacho sim --list), or a file of your own.

--replicas and --router put several engines behind a router.

What comes out is marked PREDICTED everywhere. It is as good as the model: hold
it against a run that was measured before you rely on it.`
	cmd.Example = `  tacho predict --engine vllm-8b-h200 --request-rate 5,10,20,40 --num-prompts 500 --random-input-len 512
  tacho predict --engine vllm-8b-h200 --replicas 8 --router prefix --dataset-name prefix_repetition --request-rate 100
  tacho bench --virtual --sim vllm-8b-h200 --max-concurrency 1,8,64 --num-prompts 500`
	engine := ""
	cmd.Flags().StringVar(&engine, engineFlag, "", "the engine to compute with: a profile (tacho sim --list) or a file of your own")
	run := cmd.RunE
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if engine != "" {
			options := p.Options()
			i := slices.IndexFunc(options, func(o plan.Option) bool { return o.Name == "sim" })
			if err := options[i].Set(engine); err != nil {
				return usage(err)
			}
		}
		return run(cmd, args)
	}
	return cmd
}
