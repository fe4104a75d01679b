package cli

import (
	"slices"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/plan"
)

// engineFlag is predict's name for --sim.
const engineFlag = "engine"

func newPredict(env *Env) *cobra.Command {
	p := plan.Default()
	p.Virtual = true
	engine := ""
	cmd := benchCommand(&p, env)
	cmd.Use = "predict"
	cmd.Short = "Predict latency and throughput of an engine in virtual time"
	cmd.Long = `predict runs a plan on a model of an engine in virtual time: an hour of load
takes seconds and needs no GPU. It accepts the flags of bench and is equal to
"tacho bench --virtual". --engine is --sim: a built-in profile (tacho sim --list),
or a file.

--replicas and --router set several engines behind a router. "tacho find --virtual"
searches for the maximum load.

If the engine file contains standard errors, like files of tacho fit, each level
is also computed with parameters drawn from them (--draws). The printed ranges
cover these draws and the error of the runs held out of the fit.

--replay of a closed loop runs the loop again with its limit and requests, not
with its send times.

All results are marked PREDICTED. They are as good as the model: compare them with
a measured run before you rely on them.`
	cmd.Example = `  tacho predict --engine vllm-8b-h200 --request-rate 5,10,20,40 --num-prompts 500 --random-input-len 512
  tacho predict --engine vllm-8b-h200 --replicas 8 --router prefix --dataset-name prefix_repetition --request-rate 100
  tacho predict --engine vllm-8b-h200 --replicas 1,2,4,8 --request-rate 100 --num-prompts 1000
  tacho bench --virtual --sim vllm-8b-h200 --max-concurrency 1,8,64 --num-prompts 500`
	cmd.Flags().StringVar(&engine, engineFlag, "", "engine: a profile (tacho sim --list) or a file")
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
