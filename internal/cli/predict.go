package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/plan"
)

// engineFlag is predict's name for --sim.
const engineFlag = "engine"

func newPredict(env *Env) *cobra.Command {
	p := plan.Default()
	p.Virtual = true
	engine, find, slo := "", "", ""
	cmd := benchCommand(&p, env, func(ctx context.Context, env *Env, p plan.Plan, o benchOptions) error {
		return predictOrFind(ctx, env, p, o, find, slo)
	})
	cmd.Use = "predict"
	cmd.Short = "Predict latency and throughput of an engine in virtual time"
	cmd.Long = `predict runs a plan on a model of an engine in virtual time: an hour of load
takes seconds and needs no GPU. It accepts the flags of bench and is equal to
"tacho bench --virtual". --engine is --sim: a built-in profile (tacho sim --list),
or a file.

--replicas and --router set several engines behind a router; a+b are two kinds of
engines, and 4xa is four of one kind. The number of engines can follow the load
(--autoscale-max), and engines can fail (--replica-fails-at, --replica-mtbf).

--find replicas searches for the smallest number of replicas that meets --slo at
the given load, and reports its cost (--gpu-price). --find rate searches for the
maximum load, like tacho find.

If the engine file contains standard errors, like files of tacho fit, each level
is also computed with parameters drawn from them (--draws). The printed ranges
cover these draws and the error of the runs held out of the fit.

--replay of a closed loop runs the loop again with its limit and requests, not
with its send times.

All results are marked PREDICTED. They are as good as the model: compare them with
a measured run before you rely on them.`
	cmd.Example = `  tacho predict --engine vllm-8b-h200 --request-rate 5,10,20,40 --num-prompts 500 --random-input-len 512
  tacho predict --engine vllm-8b-h200 --replicas 8 --router prefix --dataset-name prefix_repetition --request-rate 100
  tacho predict --engine vllm-8b-h200 --slo "ttft:p99<1s" --find replicas --request-rate 100 --gpu-price 2.50
  tacho bench --virtual --sim vllm-8b-h200 --max-concurrency 1,8,64 --num-prompts 500`
	cmd.Flags().StringVar(&slo, "slo", "", "SLO for --find, as ttft:p99<500ms,tpot:p95<50ms,error<0.1%")
	cmd.Flags().StringVar(&find, "find", "", "value to find: replicas (the minimum that meets --slo), or rate, concurrency, users (the maximum, like tacho find)")
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

// predictOrFind computes the load of a plan, or finds the load or the replicas
// that meet an SLO.
func predictOrFind(ctx context.Context, env *Env, p plan.Plan, o benchOptions, find, slo string) error {
	switch kinds := append([]search.Kind{replicasKind}, search.Kinds...); {
	case find == "" && slo == "":
		return runBench(ctx, env, p, o)
	case find == "" || slo == "":
		return usage(errors.New("--slo needs --find (replicas, rate, concurrency or users), and --find needs --slo"))
	case o.resume != "":
		return usage(errors.New("--resume cannot be combined with --find"))
	case find == replicasKind:
		return findReplicas(ctx, env, p, slo, o.dry)
	case !slices.Contains(kinds, search.Kind(find)):
		return usage(fmt.Errorf("--find %q: want one of %v", find, kinds))
	}
	return (&findFlags{slo: slo, kind: find, within: "5%", planFlags: o.planFlags}).run(ctx, env, p)
}
