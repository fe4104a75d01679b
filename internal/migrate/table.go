package migrate

import (
	"slices"
	"strings"
	"sync"
)

// Commands maps commands of other tools, and the tools themselves, to commands of tacho.
var Commands = map[string]string{
	"aiperf": "bench", "benchmark": "bench", "evalscope": "bench", "genai-bench": "bench", "genai-perf": "bench", "guidellm": "bench",
	"inference-perf": "bench", "load-test": "bench", "mock-server": "sim", "perf": "bench", "plot": "report", "profile": "bench", "run": "bench",
	"serve-bench": "bench", "sglang": "bench", "sglang-bench": "bench", "visualize": "report", "vllm": "bench", "vllm-bench": "bench",
}

// Modes are words after bench in command lines of vLLM, with tacho's way.
var Modes = map[string]string{
	"latency": "for one request after the other use --max-concurrency 1", "mm-processor": "tacho measures servers only",
	"startup":    "tacho measures servers that run; tacho sweep starts one per setting",
	"sweep":      "for several loads use a list, as in --request-rate 1,2,4; for settings of a server use tacho sweep",
	"throughput": "for the highest throughput use --request-rate inf",
}

// Words returns how many words of a command line after tacho bench are the command of another tool, as in
// guidellm benchmark run --target URL.
func Words(args []string) (n int) {
	if len(args) > 2 && strings.HasPrefix(args[0], "python") && args[1] == "-m" {
		return 3 // python -m sglang.bench_serving
	}
	for n < len(args) && (Commands[args[n]] == "bench" || n > 0 && args[n] == "bench") {
		n++
	}
	return n
}

// A Row translates flags of other tools. The first row with a flag and its value counts. A row with names only is for
// flags that other rows read.
type Row struct {
	Theirs string // names; "x!" has no value, "x*" is a beginning, and a.b is the key b in the value of --a, or in a section of a file
	Values string // the values of the row, all values if empty; a=b replaces the value a by b
	Unless string // flags that must not be given

	// Ours are the flags that replace the flag. $1 is its value, ${a|b} the value of the first given flag of a and b, and
	// ${a=1} has a default. If the default is empty, a flag without a value is left out. := computes A*B or A/B.
	Ours   string
	Rule   func(l *line, value string) error // sets further flags
	Why    string                            // the reason why tacho needs no such flag
	Advice string                            // what to do instead, or if Ours lacks a value
}

const (
	// structured are the flags with several parts in a value.
	structured = "backend constraint data output profile seed tokenizer load.stages load.lora-traffic-split report.request-lifecycle.percentiles"
	arrivals   = "arrival-pattern request-rate-mode"
	profile    = "profile profile.kind rate-type"

	findSLO  = "use tacho find --slo"
	datasets = "set --dataset-name; tacho bench --help-all lists the datasets"
	noRate   = "the rate is missing: set --request-rate"
	oneLimit = "all levels of tacho have the same limit: keep one, or write one command per stage"

	protocols = `/v1/chat/completions=openai-chat chat=openai-chat openai=openai-chat sglang=openai-chat vllm=openai-chat
		text-to-text=openai-chat /v1/completions=openai completion=openai completions=openai /v1/embeddings=openai-embeddings
		embeddings=openai-embeddings text-to-embeddings=openai-embeddings /v1/audio/transcriptions=openai-audio
		text-to-rerank=vllm-rerank rankings=vllm-rerank`

	// sharedPrefix are the flags of SGLang's dataset generated-shared-prefix with its defaults.
	sharedPrefix = "--dataset-name=prefix_repetition --prefix-repetition-num-prefixes=${gsp-num-groups=64}" +
		" --prefix-repetition-prefix-len=${gsp-system-prompt-len=2048} --prefix-repetition-suffix-len=${gsp-question-len=128}" +
		" --prefix-repetition-output-len=${gsp-output-len=256} --num-prompts:=${gsp-num-groups=64}*${gsp-prompts-per-group=16}"
)

// Table has the flags of other tools.
var Table = []Row{
	// The same value.
	{Theirs: "additional-request-params extra-request-body", Ours: "--extra-body=$1"},
	{Theirs: "api-model-name model-name -m model-names server.model-name backend.model", Ours: "--model=$1"},
	{Theirs: "arrival-smoothness vllm-burstiness", Ours: "--burstiness=$1"},
	{Theirs: "artifact-dir experiment-base-dir output-artifact-dir storage.local-storage.path", Ours: "--runs-dir=$1"},
	{Theirs: "batch-size", Ours: "--random-batch-size=$1"},
	{Theirs: "benchmark-duration duration max-duration constraint.seconds", Ours: "--max-seconds=$1"},
	{Theirs: "concurrency -c load.stages.concurrency-level num-concurrency num-concurrent-requests parallel", Ours: "--max-concurrency=$1"},
	{Theirs: `conversation-num max-num-completed-requests max-requests max-requests-per-run num-conversations num-requests
		-n num-sessions number request-count constraint.count`, Ours: "--num-prompts=$1"},
	{Theirs: "custom-endpoint", Ours: "--endpoint=$1"},
	{Theirs: "experiment-folder-name tag", Ours: "--label=$1"},
	{Theirs: "input-file", Unless: "custom-dataset-type", Ours: "--dataset-path=$1 --dataset-name=custom"},
	{Theirs: "input-file data.path", Ours: "--dataset-path=$1"},
	{Theirs: "load.base-seed random-seed seed.value", Ours: "--seed=$1"},
	{Theirs: "load.interval", Ours: "--level-pause=$1"},
	{Theirs: "load.request-retries", Ours: "--retries=$1"},
	{Theirs: "load.request-timeout request-timeout-seconds", Ours: "--request-timeout=$1"},
	{Theirs: "lora-name load.lora-traffic-split.name", Ours: "--lora-modules=$1"},
	{Theirs: "model-api-key server.api-key backend.api-key", Ours: "--api-key=$1"},
	{Theirs: "model-tokenizer processor tokenizer-name tokenizer.model tokenizer.pretrained-model-name-or-path", Ours: "--tokenizer=$1"},
	{Theirs: "num-prefix-prompts prefix-prompt-pool-size prompt-prefix-pool-size data.prefix-count", Ours: "--random-num-prefixes=$1"},
	{Theirs: "num-profile-runs", Ours: "--repeat=$1"},
	{Theirs: "num-warmup-requests num-warmup-sessions warmup-num warmup-request-count warmup-requests", Ours: "--num-warmups=$1"},
	{Theirs: "output-file", Ours: "--append-result --result-filename=$1"},
	{Theirs: "prefix-len prefix-prompt-length prompt-prefix-length data.prefix-tokens", Ours: "--random-prefix-len=$1"},
	{Theirs: "replay-speedup", Ours: "--trace-speedup=$1"},
	{Theirs: "report.request-lifecycle.percentiles", Ours: "--metric-percentiles=$1"},
	{Theirs: "server.cert-path", Ours: "--client-cert=$1"},
	{Theirs: "server.key-path", Ours: "--client-key=$1"},
	{Theirs: "server.ignore-eos", Ours: "--ignore-eos=$1"},
	{Theirs: "server-engine", Ours: "--metadata=server_engine=$1"},
	{Theirs: "server-version", Ours: "--metadata=server_version=$1"},
	{Theirs: "session-turn-delay-mean", Ours: "--think-time-ms=$1"},
	{Theirs: "shared-system-prompt-length", Ours: "--system-prompt-len=$1"},
	{Theirs: "top-logprobs-num", Ours: "--logprobs=$1"},
	{Theirs: "traffic-scenario", Ours: "--scenario=$1"},
	{Theirs: "wait-for-model-timeout", Ours: "--ready-check-timeout-sec=$1"},

	// Switches, and flags that tacho does not need.
	{Theirs: "disable-ignore-eos!", Ours: "--ignore-eos=false"},
	{Theirs: "disable-progress! disable-console! disable-console-interactive!", Ours: "--disable-tqdm"},
	{Theirs: "no-server-metrics!", Ours: "--metrics-url=none"},
	{Theirs: "output-details!", Ours: "--save-detailed"},
	{Theirs: "reset-kv-cache!", Ours: "--flush-cache"},
	{Theirs: "tokenize-prompt!", Ours: "--prompt-token-ids"},
	{Theirs: "tokenizer-trust-remote-code!", Ours: "--trust-remote-code"},
	{Theirs: "plot-dataset-stats!", Why: "the report gives the lengths of prompts and answers"},
	{Theirs: "stream! streaming!", Why: "tacho always streams"},
	{Theirs: "fixed-schedule! use-trace-timestamps! no-fixed-schedule!", Why: "traces keep their times, unless --no-self-timed is given"},
	{Theirs: "no-gpu-telemetry!", Why: "tacho reads a DCGM exporter only with --gpu-metrics-url"},
	{Theirs: `disable-console-outputs! ui ui-type metrics-refresh-interval`, Why: "--progress selects the progress output"},
	{Theirs: `cache-report! display-scheduler-stats! use-server-token-count! log-dir log-level metrics-time-unit
		slice-duration`, Why: "the report has errors, times, tokens and the accuracy of the client"},
	{Theirs: "print-requests! export-level output-sampling profile-export-level", Why: "all requests are stored"},
	{Theirs: "gsp-fast-prepare! num-dataset-entries", Why: "each request has a prompt of its own, which is created during the run"},
	{Theirs: "data-sampler dataset-sampling-strategy", Why: "prompts are shuffled, unless --disable-shuffle is given"},
	{Theirs: `rust-client! max-workers num-workers workers-max load.num-workers rust-worker-threads
		record-processor-service-count record-processors`, Why: "one process sends the load, and --agents spreads it"},
	{Theirs: "spawn-rate load.worker-max-concurrency load.worker-max-tcp-connections", Why: "requests are sent at their times"},
	{Theirs: "pd-separated! server.type", Why: "tacho recognizes the server"},
	{Theirs: "benchmark-grace-period flush-cache-timeout wait-for-model-mode wait-for-model-interval", Why: "tacho waits for the server"},
	{Theirs: "tokenizer-revision", Why: "--tokenizer names a file or a directory"},

	// The server and its protocol.
	{Theirs: "api-base server server-url target url -u backend.target server.base-url", Rule: address},
	{Theirs: "backend.kind backend-type", Values: "openai_http", Ours: "--backend=openai-chat"},
	{Theirs: "backend.kind backend-type", Advice: "tacho measures servers only: start one, and set --base-url"},
	{Theirs: "api-backend api.type backend.request-format endpoint-type", Values: protocols, Ours: "--backend=$1"},
	{Theirs: "task", Values: protocols, Ours: "--backend=$1"}, // more specific than --api-backend
	{Theirs: "api api-backend api.type backend.request-format endpoint-type llm-api task", Advice: "set --backend; tacho bench --help-all lists all protocols"},
	{Theirs: "extra-inputs", Rule: extraInputs},
	{
		Theirs: "load.lora-traffic-split.split", Rule: same,
		Advice: "tacho gives each adapter the same share: set --lora-modules, with an adapter named twice for twice the share",
	},
	{Theirs: "lora-request-distribution", Values: "uniform", Ours: "--lora-assignment=random"},
	{Theirs: "lora-request-distribution lora-zipf-alpha", Advice: "name an adapter twice in --lora-modules for twice the share"},
	{
		Theirs: "server-gpu-count server-gpu-type", Ours: "--gpus=${server-gpu-count=1}x${server-gpu-type}",
		Advice: "the type of GPU is missing: write both as --gpus 8xH100",
	},

	// The load.
	{Theirs: arrivals + " load.type", Values: "constant", Ours: "--burstiness=inf"},
	{Theirs: arrivals, Values: "concurrency_burst", Ours: "--request-rate=inf"},
	{Theirs: arrivals, Values: "gamma poisson"},
	{Theirs: "load.type", Values: "poisson concurrent"},
	{Theirs: profile, Values: "synchronous", Ours: "--max-concurrency=1"},
	{Theirs: profile, Values: "throughput", Ours: "--request-rate=inf"},
	{
		Theirs: profile, Values: "concurrent", Ours: "--max-concurrency=${rate|profile.streams}",
		Advice: "the number of streams is missing: set --max-concurrency",
	},
	{Theirs: profile, Values: "constant async", Ours: "--request-rate=${rate|profile.rate} --burstiness=inf", Advice: noRate},
	{Theirs: profile, Values: "poisson", Ours: "--request-rate=${rate|profile.rate}", Advice: noRate},
	{Theirs: profile, Values: "sweep", Ours: "--request-rate=sweep --sweep-points=${rate|profile.rate|profile.sweep-size=}"},
	{Theirs: profile, Values: "goodput knee", Advice: findSLO},
	{Theirs: profile + " load.type", Values: "replay trace_replay", Advice: "set --dataset-name to the format of the trace, such as mooncake"},
	{Theirs: arrivals + " rate-type profile.kind load.type", Advice: "set --request-rate, --burstiness or --max-concurrency"},
	{Theirs: "rate", Unless: profile, Ours: "--request-rate=$1"},
	{Theirs: "load.stages.rate", Unless: "load.type", Ours: "--request-rate=$1 --burstiness=inf"},
	{Theirs: "load.stages.rate rates", Ours: "--request-rate=$1"},
	{Theirs: "load.stages.duration", Ours: "--max-seconds=$1", Rule: same, Advice: oneLimit},
	{Theirs: "load.stages.num-requests", Ours: "--num-prompts=$1", Rule: same, Advice: oneLimit},
	{Theirs: "load.stages load.lora-traffic-split", Advice: "want a list of JSON objects"},
	{
		Theirs: "load.sweep.num-stages load.sweep.stage-duration load.sweep.type",
		Ours:   "--request-rate=sweep --sweep-points=${load.sweep.num-stages=5} --max-seconds=${load.sweep.stage-duration=180}",
	},
	{Theirs: "constraint.kind", Values: "max_duration max_requests"},
	{Theirs: "constraint constraint.kind", Advice: "set --max-seconds or --num-prompts"},
	{Theirs: "max-time-per-run", Unless: "max-requests-per-run", Ours: "--max-seconds:=$1*60"},
	{Theirs: "max-time-per-run", Advice: "tacho ends a level by one limit: keep the time or the number of requests"},
	{Theirs: "mooncake-slowdown-factor", Ours: "--trace-speedup:=1/$1"},
	{Theirs: "iteration-type", Values: "num_concurrency"},
	{Theirs: "iteration-type", Advice: "give a list, as in --random-batch-size 1,2,4"},

	// Prompts and results.
	{
		Theirs: "custom-dataset-type", Ours: "--dataset-name=$1",
		Values: "mooncake_trace=mooncake bailian_trace=bailian burst_gpt_trace=burstgpt_trace weka_trace=weka single_turn=custom multi_turn=custom",
	},
	{Theirs: "data.type", Values: "random synthetic=random shareGPT=sharegpt", Ours: "--dataset-name=$1"},
	{Theirs: "data.type", Values: "shared_prefix", Ours: "--dataset-name=prefix_repetition" +
		" --prefix-repetition-num-prefixes=${data.shared-prefix.num-groups|data.shared-prefix.num-unique-system-prompts=10}" +
		" --prefix-repetition-prefix-len=${data.shared-prefix.system-prompt-len=100}" +
		" --prefix-repetition-suffix-len=${data.shared-prefix.question-len=50}" +
		" --prefix-repetition-output-len=${data.shared-prefix.output-len=50}"},
	{Theirs: "custom-dataset-type data.type", Advice: datasets},
	{Theirs: "data.kind", Values: "synthetic_text"},
	{Theirs: "data data.kind", Advice: "set --dataset-name and --dataset-path, as in --dataset-name hf --dataset-path OWNER/NAME"},
	{Theirs: `isl isl-stddev synthetic-input-tokens-mean synthetic-input-tokens-stddev prompt-input-tokens-mean
		prompt-input-tokens-stddev mean-input-tokens stddev-input-tokens data.prompt-tokens data.prompt-tokens-stdev
		data.prompt-tokens-min data.prompt-tokens-max osl osl-stddev output-tokens-mean output-tokens-stddev
		prompt-output-tokens-mean prompt-output-tokens-stddev mean-output-tokens stddev-output-tokens data.output-tokens
		data.output-tokens-stdev data.output-tokens-min data.output-tokens-max data.input-distribution.type
		data.input-distribution.mean data.input-distribution.std-dev data.input-distribution.min data.input-distribution.max
		data.output-distribution.type data.output-distribution.mean data.output-distribution.std-dev
		data.output-distribution.min data.output-distribution.max`, Rule: lengths},
	{Theirs: "data.turns gsp-num-turns", Values: "1"},
	{Theirs: "data.turns session-turns-mean", Ours: "--dataset-name=conversation --turns=$1"},
	{Theirs: "gsp-num-turns", Advice: "use --dataset-name conversation --turns $1 --system-prompt-len N"},
	{Theirs: "dataset-name", Values: "generated-shared-prefix", Ours: sharedPrefix},
	{Theirs: "gsp-num-groups gsp-output-len gsp-prompts-per-group gsp-question-len gsp-system-prompt-len", Ours: sharedPrefix},
	{Theirs: "dataset-name", Values: "random-ids=random openai=custom speed-bench=speed_bench", Ours: "--dataset-name=$1"},
	{Theirs: "dataset-name", Values: "image", Advice: "use --dataset-name random_mm"},
	{Theirs: "dataset-name", Values: "mmmu longbench_v2 agentic-trace", Advice: "tacho has no such dataset; tacho bench --help-all lists the datasets"},
	{Theirs: "gsp-group-distribution", Values: "uniform"},
	{
		Theirs: "gsp-group-distribution gsp-zipf-alpha",
		Advice: "use --dataset-name random with --random-num-prefixes, --random-prefix-len and --random-prefix-zipf",
	},
	{Theirs: "gsp-range-ratio", Values: "1 1.0"},
	{Theirs: "gsp-range-ratio isl-* osl-*", Advice: "write the lengths as a distribution, as in --random-input-len 'uniform(64,128)'"},
	{Theirs: "api.streaming", Values: "false False", Advice: "remove it, because tacho always streams"},
	{Theirs: "disable-stream", Advice: "remove it, because tacho always streams"},
	{Theirs: "output output-path output.path", Rule: output},
	{Theirs: `api.streaming data.samples data.shared-prefix.num-groups data.shared-prefix.num-prompts-per-group output.kind rate
		data.shared-prefix.num-unique-system-prompts data.shared-prefix.num-users-per-system-prompt data.shared-prefix.output-len
		data.shared-prefix.question-len data.shared-prefix.system-prompt-len profile.rate profile.streams profile.sweep-size
		seed.kind tokenizer.kind`},

	// No translation.
	{Theirs: "apply-chat-template", Advice: "set --backend openai-chat, so that the server applies the template"},
	{Theirs: "cooldown-ratio cooldown-percent", Advice: "remove it, because tacho detects the steady state"},
	{Theirs: "dataset dataset-config", Advice: "set --dataset-name and --dataset-path"},
	{Theirs: "gsp-ordered", Advice: "remove it, because prefix_repetition shuffles its prompts"},
	{Theirs: "gsp-send-routing-key", Advice: "remove it; --balance prefix sends equal prefixes to one server"},
	{Theirs: "isl-osl-pairs sequence-distribution", Advice: "use --scenario with pairs of lengths and weights"},
	{Theirs: "log-every-n-query", Advice: "set --progress-interval"},
	{Theirs: "override concurrency-* sweep-*", Advice: "give a list, as in --max-concurrency 1,2,4"},
	{Theirs: "plot-throughput", Advice: "remove it; the page of the run has plots"},
	{Theirs: "public-dataset", Advice: "use --dataset-name sharegpt, or --dataset-name hf with --dataset-path OWNER/NAME"},
	{Theirs: "return-logprob", Advice: "set --logprobs"},
	{
		Theirs: "session-turns-stddev session-turn-delay-stddev",
		Advice: "write mean and deviation together, as in --turns 'normal(4,1)' and --think-time-ms 'normal(1000,100)'",
	},
	{Theirs: "search-* optuna-* sla-params ttft-sla* tpot-sla* itl-sla* e2e-sla* slo-attainment-fraction", Advice: findSLO},
	{Theirs: "metrics", Advice: findSLO + ", or --goodput for a limit per request"},
	{
		Theirs: "user-centric-rate num-users conversation-turn-mean data.conversation-replay.num-conversations",
		Advice: "use --dataset-name conversation with --turns, --think-time-ms, and --request-rate or --max-concurrency",
	},
	{Theirs: "session-delay-ratio", Advice: "set --think-time-ms"},
	{Theirs: "warmup warmup-*", Advice: "set --num-warmups"},
	{
		Theirs: "data.trace.file load.trace.file mooncake-workload",
		Advice: "use --dataset-path with --dataset-name mooncake, or another format of traces",
	},
	{Theirs: "server-metrics metrics.prometheus.url", Advice: "remove it; tacho reads the server's metrics page, and --metrics-url names another"},
	{Theirs: "config", Advice: "write the options as flags, and store them with tacho init"},
	{Theirs: "backend-args", Advice: "set --extra-body, --endpoint or --api-key"},
	{Theirs: "connection-reuse-strategy", Advice: "remove it, because connections are kept open"},
	{Theirs: "data-args", Advice: "set --hf-subset and --hf-split"},
	{
		Theirs: "data-column-mapper data-preprocessor dataset-prompt-column prompt-suffix sharegpt-context-len",
		Advice: "use --dataset-name custom with a file of prompts",
	},
	{Theirs: "failed-request-threshold", Advice: "use --fail-if 'failures>1%'"},
	{Theirs: "gpu-telemetry", Advice: "set --gpu-metrics-url"},
	{
		Theirs: "output-extras profile-export-file profile-export-prefix upload-results storage-*",
		Advice: "set --report FORMAT=PATH, as in --report json=results.json",
	},
	{Theirs: "prefix-ratio", Advice: "set --random-prefix-len"},
	{Theirs: "request-cancellation-rate", Advice: "remove it, because tacho has no requests that are cancelled"},
	{Theirs: "request-rate-ramp-duration", Advice: "set --ramp-up-strategy, --ramp-up-start-rps and --ramp-up-end-rps"},
	{Theirs: "url-strategy", Advice: "set --balance"},
	{Theirs: "audio-* image-* random-image-count video-*", Advice: "use --dataset-name random_mm with --random-mm-bucket-config, or custom_audio"},
	{Theirs: "mlflow-* otel-* wandb-*", Advice: "set --otlp-endpoint for metrics, and --report for a file"},
	{Theirs: "profile-*", Advice: "set --profile; the server has the other options of its profiler"},
}

// rowsOf returns the rows of each flag of another tool, and of x! for a flag x without a value.
var rowsOf = sync.OnceValue(func() map[string][]*Row {
	out := map[string][]*Row{}
	for i := range Table {
		for name := range strings.FieldsSeq(Table[i].Theirs) {
			bare := strings.TrimSuffix(name, "!")
			if out[bare] = append(out[bare], &Table[i]); bare != name {
				out[name] = out[bare]
			}
		}
	}
	return out
})

// translates reports whether tacho translates some value of a flag.
func translates(name string) bool {
	rows := rowsOf()[name]
	return slices.Contains(strings.Fields(structured), name) || len(rows) > 1 || len(rows) == 1 && (rows[0].Advice == "" || rows[0].Ours != "")
}
