package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"tacho/internal/spelling"
)

// foreignCommands maps the commands of other benchmark tools to ours.
var foreignCommands = map[string]string{
	"benchmark":   "bench",
	"load-test":   "bench",
	"mock-server": "sim",
	"perf":        "bench",
	"plot":        "report",
	"profile":     "bench",
	"run":         "bench",
	"serve-bench": "bench",
	"visualize":   "report",
}

// foreignFlags maps the flags of other benchmark tools to ours, each with its
// value if another word is needed. docs/moving.md has the same pairs.
var foreignFlags = map[string]string{
	"api":                         "--backend",
	"api-base":                    "--base-url",
	"arrival-pattern":             "--burstiness",
	"arrival-smoothness":          "--burstiness",
	"benchmark-duration":          "--max-seconds",
	"concurrency":                 "--max-concurrency",
	"constraint":                  "--max-seconds or --num-prompts",
	"data":                        "--dataset-name and --dataset-path",
	"dataset":                     "--dataset-name and --dataset-path",
	"disable-ignore-eos":          "--ignore-eos=false",
	"duration":                    "--max-seconds",
	"endpoint-type":               "--backend",
	"extra-inputs":                "--extra-body",
	"extra-request-body":          "--extra-body",
	"fixed-schedule":              "--dataset-name mooncake",
	"gsp-num-groups":              "--dataset-name prefix_repetition --prefix-repetition-num-prefixes",
	"gsp-output-len":              "--dataset-name prefix_repetition --prefix-repetition-output-len",
	"gsp-question-len":            "--dataset-name prefix_repetition --prefix-repetition-suffix-len",
	"gsp-system-prompt-len":       "--dataset-name prefix_repetition --prefix-repetition-prefix-len",
	"input-file":                  "--dataset-path",
	"llm-api":                     "--backend",
	"log-every-n-query":           "--progress-interval",
	"max-duration":                "--max-seconds",
	"max-num-completed-requests":  "--num-prompts",
	"max-requests":                "--num-prompts",
	"max-requests-per-run":        "--num-prompts",
	"max-time-per-run":            "--max-seconds",
	"mean-input-tokens":           "--random-input-len",
	"mean-output-tokens":          "--random-output-len",
	"model-name":                  "--model",
	"num-concurrency":             "--max-concurrency",
	"num-concurrent-requests":     "--max-concurrency",
	"num-profile-runs":            "--repeat",
	"num-prompt":                  "--num-prompts",
	"num-requests":                "--num-prompts",
	"number":                      "--num-prompts",
	"output":                      "--report, or --save-result for a file as of vllm bench serve",
	"output-file":                 "--report, or --save-result for a file as of vllm bench serve",
	"output-path":                 "--report, or --save-result for a file as of vllm bench serve",
	"output-tokens-mean":          "--random-output-len",
	"parallel":                    "--max-concurrency",
	"random-input":                "--random-input-len",
	"random-output":               "--random-output-len",
	"random-seed":                 "--seed",
	"rate":                        "--request-rate",
	"rate-type":                   "--request-rate and --max-concurrency",
	"rates":                       "--request-rate",
	"request-count":               "--num-prompts",
	"reset-kv-cache":              "--flush-cache",
	"search-recipe":               "tacho find --slo",
	"server":                      "--base-url",
	"server-url":                  "--base-url",
	"session-turns-mean":          "--dataset-name conversation --turns",
	"streaming":                   "nothing, because answers stream unless --no-stream is given",
	"synthetic-input-tokens-mean": "--random-input-len",
	"target":                      "--base-url",
	"tokenizer-name":              "--tokenizer",
	"url":                         "--base-url",
	"warmup":                      "--num-warmups",
	"warmup-num":                  "--num-warmups",
	"warmup-request-count":        "--num-warmups",
	"warmup-requests":             "--num-warmups",
}

// meantCommand is the end of a sentence about an unknown command: which command
// to use, or empty if none is near.
func meantCommand(word string, names []string) string {
	if ours := foreignCommands[word]; ours != "" {
		return ": use tacho " + ours
	}
	return spelling.Meant(word, names)
}

// meantFlag is the end of a sentence about an unknown flag of cmd: which flag to
// use, or empty if none is near.
func meantFlag(cmd *cobra.Command, name string, all []string) string {
	ours := foreignFlags[name]
	if takesFlag(cmd, ours) {
		return ": use " + ours
	}
	if nearest := spelling.Nearest(name, all); nearest != "" {
		return fmt.Sprintf(", did you mean --%s?", nearest)
	}
	return ""
}

// takesFlag reports whether cmd has the first flag that advice names. Only the
// commands that measure a server have --base-url; advice without a flag is for
// them.
func takesFlag(cmd *cobra.Command, advice string) bool {
	first, _, _ := strings.Cut(strings.TrimPrefix(advice, "--"), " ")
	first, _, _ = strings.Cut(strings.TrimSuffix(first, ","), "=")
	if !strings.HasPrefix(advice, "--") {
		first = "base-url"
	}
	return advice != "" && cmd.Flags().Lookup(first) != nil
}

// unknownCommand names the command to use, if there is one.
func unknownCommand(root *cobra.Command, word string) error {
	var names []string
	for _, c := range root.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("unknown command %q%s (tacho --help lists all)", word, meantCommand(word, names))
}

// badFlag is the error for a flag that cobra does not take. Flags of an unknown
// command are looked up among those of tacho itself, and the command is what is
// wrong.
func badFlag(env *Env, cmd *cobra.Command, err error) error {
	if !cmd.HasParent() && len(env.Args) > 0 && !strings.HasPrefix(env.Args[0], "-") {
		return unknownCommand(cmd, env.Args[0])
	}
	return badValue(env, err)
}
