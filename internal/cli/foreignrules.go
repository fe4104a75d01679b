package cli

// renamedFlags are flags of other tools that have another name in tacho, and
// the same value.
var renamedFlags = map[string]string{
	"additional-request-params":   "extra-body",
	"api-model-name":              "model",
	"arrival-smoothness":          "burstiness",
	"artifact-dir":                "runs-dir",
	"benchmark-duration":          "max-seconds",
	"concurrency":                 "max-concurrency",
	"conversation-num":            "num-prompts",
	"custom-endpoint":             "endpoint",
	"duration":                    "max-seconds",
	"experiment-base-dir":         "runs-dir",
	"experiment-folder-name":      "label",
	"extra-request-body":          "extra-body",
	"max-duration":                "max-seconds",
	"max-num-completed-requests":  "num-prompts",
	"max-requests":                "num-prompts",
	"max-requests-per-run":        "num-prompts",
	"model-api-key":               "api-key",
	"model-name":                  "model",
	"model-names":                 "model",
	"model-tokenizer":             "tokenizer",
	"num-concurrency":             "max-concurrency",
	"num-concurrent-requests":     "max-concurrency",
	"num-conversations":           "num-prompts",
	"num-prefix-prompts":          "random-num-prefixes",
	"num-profile-runs":            "repeat",
	"num-requests":                "num-prompts",
	"num-sessions":                "num-prompts",
	"num-warmup-requests":         "num-warmups",
	"number":                      "num-prompts",
	"output-artifact-dir":         "runs-dir",
	"parallel":                    "max-concurrency",
	"prefix-len":                  "random-prefix-len",
	"prefix-prompt-length":        "random-prefix-len",
	"prefix-prompt-pool-size":     "random-num-prefixes",
	"processor":                   "tokenizer",
	"prompt-prefix-length":        "random-prefix-len",
	"prompt-prefix-pool-size":     "random-num-prefixes",
	"random-seed":                 "seed",
	"rates":                       "request-rate",
	"replay-speedup":              "trace-speedup",
	"request-count":               "num-prompts",
	"request-timeout-seconds":     "request-timeout",
	"session-turn-delay-mean":     "think-time-ms",
	"shared-system-prompt-length": "system-prompt-len",
	"tag":                         "label",
	"tokenizer-name":              "tokenizer",
	"traffic-scenario":            "scenario",
	"warmup-num":                  "num-warmups",
	"warmup-request-count":        "num-warmups",
	"warmup-requests":             "num-warmups",
}

// fixedFlags are switches of other tools, with the flags of tacho that have the
// same effect.
var fixedFlags = map[string]string{
	"disable-ignore-eos": "--ignore-eos=false",
	"disable-progress":   "--disable-tqdm",
	"output-details":     "--save-detailed",
	"reset-kv-cache":     "--flush-cache",
	"tokenize-prompt":    "--prompt-token-ids",
}

// needlessFlags are switches of other tools for what tacho always does.
var needlessFlags = map[string]string{
	"cache-report":         "the report has cached tokens if the server counts them",
	"fixed-schedule":       "traces keep their times",
	"gsp-fast-prepare":     "prompts are created during the run",
	"stream":               "tacho always streams",
	"streaming":            "tacho always streams",
	"use-trace-timestamps": "traces keep their times",
}

// needlessValues are flags of other tools with a value that tacho does not need.
var needlessValues = map[string]string{
	"max-workers": "one process sends the load, and --agents spreads it",
	"num-workers": "one process sends the load, and --agents spreads it",
	"spawn-rate":  "all slots are open from the beginning",
	"ui":          "--progress selects the progress output",
	"ui-type":     "--progress selects the progress output",
	"workers-max": "one process sends the load, and --agents spreads it",
}

// combinedFlags are flags of other tools that need more than a new name.
var combinedFlags = map[string]func(*foreignLine, string) error{
	"api-base":                      (*foreignLine).address,
	"api-backend":                   (*foreignLine).protocol,
	"arrival-pattern":               (*foreignLine).arrivals,
	"constraint":                    (*foreignLine).constraint,
	"custom-dataset-type":           (*foreignLine).datasetType,
	"data":                          (*foreignLine).data,
	"endpoint-type":                 (*foreignLine).protocol,
	"extra-inputs":                  (*foreignLine).extraInputs,
	"gsp-group-distribution":        (*foreignLine).popularity,
	"gsp-num-groups":                (*foreignLine).sharedPrefix,
	"gsp-num-turns":                 (*foreignLine).oneTurn,
	"gsp-output-len":                (*foreignLine).sharedPrefix,
	"gsp-prompts-per-group":         (*foreignLine).sharedPrefix,
	"gsp-question-len":              (*foreignLine).sharedPrefix,
	"gsp-range-ratio":               (*foreignLine).exactLengths,
	"gsp-system-prompt-len":         (*foreignLine).sharedPrefix,
	"input-file":                    (*foreignLine).inputFile,
	"isl":                           (*foreignLine).lengths,
	"isl-stddev":                    (*foreignLine).lengths,
	"lora-name":                     (*foreignLine).adapters,
	"max-time-per-run":              (*foreignLine).minutes,
	"mean-input-tokens":             (*foreignLine).lengths,
	"mean-output-tokens":            (*foreignLine).lengths,
	"mooncake-slowdown-factor":      (*foreignLine).slowdown,
	"osl":                           (*foreignLine).lengths,
	"osl-stddev":                    (*foreignLine).lengths,
	"output":                        (*foreignLine).output,
	"output-file":                   (*foreignLine).appended,
	"output-path":                   (*foreignLine).output,
	"output-tokens-mean":            (*foreignLine).lengths,
	"output-tokens-stddev":          (*foreignLine).lengths,
	"prompt-output-tokens-mean":     (*foreignLine).lengths,
	"prompt-output-tokens-stddev":   (*foreignLine).lengths,
	"rate":                          (*foreignLine).rate,
	"rate-type":                     (*foreignLine).rate,
	"request-rate-mode":             (*foreignLine).arrivals,
	"server":                        (*foreignLine).address,
	"server-engine":                 (*foreignLine).serverFact,
	"server-gpu-count":              (*foreignLine).gpus,
	"server-gpu-type":               (*foreignLine).gpus,
	"server-url":                    (*foreignLine).address,
	"server-version":                (*foreignLine).serverFact,
	"session-turns-mean":            (*foreignLine).turns,
	"stddev-input-tokens":           (*foreignLine).lengths,
	"stddev-output-tokens":          (*foreignLine).lengths,
	"synthetic-input-tokens-mean":   (*foreignLine).lengths,
	"synthetic-input-tokens-stddev": (*foreignLine).lengths,
	"target":                        (*foreignLine).address,
	"task":                          (*foreignLine).protocol,
	"url":                           (*foreignLine).address,
}

// changedValues are flags of tacho whose value may be in the form of another
// tool. Each function reports whether the value is in that form.
var changedValues = map[string]func(*foreignLine, string) (bool, error){
	"backend":      (*foreignLine).backend,
	"dataset-name": (*foreignLine).dataset,
	"profile":      (*foreignLine).profile,
}

// shortFlags are one-letter flags of other tools.
var shortFlags = map[string]string{"c": "concurrency", "m": "model-name", "n": "num-requests", "u": "url"}

// untranslated are flags of other tools that tacho cannot translate, with
// tacho's way.
var untranslated = map[string]string{
	"api":                    "set --backend",
	"apply-chat-template":    "set --backend openai-chat, so that the server applies the template",
	"config-file":            "write the options as flags, and store them with tacho init",
	"cooldown-ratio":         "remove it, because tacho detects the steady state",
	"dataset":                "set --dataset-name and --dataset-path",
	"dataset-config":         "set --dataset-name and --dataset-path",
	"disable-stream":         "remove it, because tacho always streams",
	"gsp-ordered":            "remove it, because prefix_repetition shuffles its prompts",
	"gsp-send-routing-key":   "remove it; --balance prefix sends equal prefixes to one server",
	"gsp-zipf-alpha":         "use --dataset-name random with --random-num-prefixes, --random-prefix-len and --random-prefix-zipf",
	"isl-osl-pairs":          "use --scenario with pairs of lengths",
	"llm-api":                "set --backend",
	"log-every-n-query":      "set --progress-interval",
	"override":               "give the other flag a list, as in --max-concurrency 1,2,4",
	"plot-throughput":        "remove it; the page of the run has plots",
	"public-dataset":         "use --dataset-name sharegpt, or --dataset-name hf with --dataset-path OWNER/NAME",
	"return-logprob":         "set --logprobs",
	"search-recipe":          "use tacho find --slo",
	"sequence-distribution":  "use --scenario with pairs of lengths and weights",
	"session-turns-stddev":   "write both in --turns, as in --turns 'normal(4,1)'",
	"sla-params":             "use tacho find --slo",
	"user-centric-rate":      "use --dataset-name conversation with --request-rate and --think-time-ms",
	"warmup":                 "set --num-warmups",
	"warmup-duration":        "set --num-warmups",
	"warmup-ratio":           "set --num-warmups",
	"session-delay-ratio":    "set --think-time-ms",
	"conversation-turn-mean": "use --dataset-name conversation --turns",
}
