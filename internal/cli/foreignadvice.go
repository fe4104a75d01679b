package cli

import "strings"

// untranslated are flags of other tools that tacho cannot translate, with
// tacho's way.
var untranslated = map[string]string{
	"api":                    "set --backend",
	"apply-chat-template":    "set --backend openai-chat, so that the server applies the template",
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
	"data.conversation-replay.num-conversations": "use --dataset-name conversation --turns",
	"data.trace.file":            "use --dataset-path with --dataset-name mooncake, or another format of traces",
	"load.trace.file":            "use --dataset-path with --dataset-name mooncake, or another format of traces",
	"metrics.prometheus.url":     "remove it; tacho reads the server's metrics page, and --metrics-url names another",
	"config":                     "write the options as flags, and store them with tacho init",
	"backend-args":               "set --extra-body, --endpoint or --api-key",
	"connection-reuse-strategy":  "remove it, because connections are kept open",
	"cooldown-percent":           "remove it, because tacho detects the steady state",
	"data-args":                  "set --hf-subset and --hf-split",
	"data-column-mapper":         "use --dataset-name custom with a file of prompts",
	"data-preprocessor":          "use --dataset-name custom with a file of prompts",
	"dataset-prompt-column":      "use --dataset-name custom with a file of prompts",
	"failed-request-threshold":   "use --fail-if 'failures>1%'",
	"gpu-telemetry":              "set --gpu-metrics-url",
	"lora-zipf-alpha":            "name an adapter twice in --lora-modules for twice the share",
	"metrics":                    "use tacho find --slo, or --goodput",
	"mooncake-workload":          "set --dataset-path to the trace",
	"num-users":                  "use --dataset-name conversation with --max-concurrency",
	"output-extras":              "set --report",
	"prefix-ratio":               "set --random-prefix-len",
	"profile-export-file":        "set --report FORMAT=PATH, as in --report json=results.json",
	"profile-export-prefix":      "set --report FORMAT=PATH, as in --report json=results.json",
	"prompt-suffix":              "use --dataset-name custom with a file of prompts",
	"random-image-count":         "use --dataset-name random_mm",
	"request-cancellation-rate":  "remove it, because tacho has no requests that are cancelled",
	"request-rate-ramp-duration": "set --ramp-up-strategy, --ramp-up-start-rps and --ramp-up-end-rps",
	"server-metrics":             "set --metrics-url",
	"session-turn-delay-stddev":  "write both in --think-time-ms, as in --think-time-ms 'normal(1000,100)'",
	"sharegpt-context-len":       "use --dataset-name custom with a file of prompts",
	"slo":                        "use tacho find --slo, or --goodput for a limit per request",
	"slo-attainment-fraction":    "use tacho find --slo",
	"upload-results":             "set --report, and copy the file",
	"url-strategy":               "set --balance",
	"warmup-percent":             "set --num-warmups",
}

// untranslatedGroups are beginnings of names of flags that tacho cannot
// translate, with tacho's way.
var untranslatedGroups = []struct{ prefix, advice string }{
	{"audio-", "use --dataset-name custom_audio, or random_mm"},
	{"concurrency-", "give a list, as in --max-concurrency 1,2,4"},
	{"image-", "use --dataset-name random_mm with --random-mm-bucket-config"},
	{"isl-", "write the lengths as a distribution, as in --random-input-len 'uniform(100,500)'"},
	{"mlflow-", "remove it; --otlp-endpoint sends metrics, and --report writes a file"},
	{"optuna-", "use tacho find --slo"},
	{"osl-", "write the lengths as a distribution, as in --random-output-len 'uniform(100,500)'"},
	{"otel-", "set --otlp-endpoint"},
	{"profile-", "set --profile; the server has the other options of its profiler"},
	{"search-", "use tacho find --slo"},
	{"storage-", "set --report, and copy the file"},
	{"sweep-", "give a list, as in --max-concurrency 1,2,4"},
	{"ttft-sla", "use tacho find --slo"},
	{"tpot-sla", "use tacho find --slo"},
	{"itl-sla", "use tacho find --slo"},
	{"e2e-sla", "use tacho find --slo"},
	{"video-", "use --dataset-name random_mm"},
	{"wandb-", "remove it; --otlp-endpoint sends metrics, and --report writes a file"},
	{"warmup-", "set --num-warmups"},
}

// adviceFor returns tacho's way for a flag of another tool, or an empty text.
func adviceFor(name string) string {
	if advice := untranslated[name]; advice != "" {
		return advice
	}
	for _, g := range untranslatedGroups {
		if strings.HasPrefix(name, g.prefix) {
			return g.advice
		}
	}
	return ""
}
