package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"tacho/plan"
	"tacho/search"
)

// engineFlag is what predict calls bench's --sim.
const engineFlag = "engine"

func newPredict(env *Env) *cobra.Command {
	p := plan.Default()
	p.Virtual = true
	engine, find, slo := "", "", ""
	cmd := benchCommand(&p, env, func(ctx context.Context, env *Env, p plan.Plan, o benchOptions) error {
		return predictOrFind(ctx, env, p, o, find, slo)
	})
	cmd.Use = "predict"
	cmd.Short = "Compute what an engine would make of a load, in virtual time"
	cmd.Long = `predict runs a plan on a model of an engine instead of a server, in virtual time:
an hour of load takes seconds, and needs no GPU. Flags are those of bench; it is
"tacho bench --virtual", and --engine is --sim: a profile that tacho carries
(tacho sim --list), or a file of your own.

--replicas and --router put several engines behind a router; a+b are engines of
two kinds, and 4xa is four of one. They may follow the load (--autoscale-max) and
fail (--replica-fails-at, --replica-mtbf).

--find replicas looks for the fewest replicas that hold --slo at the load that the
flags describe, and says what they cost (--gpu-price); --find rate looks for the
highest load that holds it, as tacho find does.

If the file of an engine has standard errors, as that of tacho fit, each level is
computed --draws times more with parameters drawn from them. The ranges that are
printed cover these draws and the error of the runs that were held out of the fit.

--replay of a closed loop runs the loop again: its limit and its requests, not its
send times.

What comes out is marked PREDICTED everywhere. It is as good as the model: hold
it against a run that was measured before you rely on it.`
	cmd.Example = `  tacho predict --engine vllm-8b-h200 --request-rate 5,10,20,40 --num-prompts 500 --random-input-len 512
  tacho predict --engine vllm-8b-h200 --replicas 8 --router prefix --dataset-name prefix_repetition --request-rate 100
  tacho predict --engine vllm-8b-h200 --slo "ttft:p99<1s" --find replicas --request-rate 100 --gpu-price 2.50
  tacho bench --virtual --sim vllm-8b-h200 --max-concurrency 1,8,64 --num-prompts 500`
	cmd.Flags().StringVar(&slo, "slo", "", "what must hold, as ttft:p99<500ms,tpot:p95<50ms,error<0.1%: see --find")
	cmd.Flags().StringVar(&find, "find", "", "what to find: replicas (the fewest that hold --slo), or rate, concurrency, users (the most that hold it, as tacho find)")
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

// predictOrFind computes the load of a plan, or looks for the load or the replicas
// that hold an SLO.
func predictOrFind(ctx context.Context, env *Env, p plan.Plan, o benchOptions, find, slo string) error {
	switch kinds := append([]search.Kind{replicasKind}, search.Kinds...); {
	case find == "" && slo == "":
		return runBench(ctx, env, p, o)
	case find == "" || slo == "":
		return usage(errors.New("--slo and --find go together: --slo says what must hold, --find what to look for (replicas, rate, concurrency or users)"))
	case o.resume != "":
		return usage(errors.New("--resume goes on with levels, and --find looks for one: leave either out"))
	case find == replicasKind:
		return findReplicas(ctx, env, p, slo, o.dry)
	case !slices.Contains(kinds, search.Kind(find)):
		return usage(fmt.Errorf("--find %q: write one of %v", find, kinds))
	}
	return (&findFlags{slo: slo, kind: find, within: "5%", planFlags: o.planFlags}).run(ctx, env, p)
}
