// Package plan describes a run as data: all its options. A plan can be written
// to a file and read back without loss, records which options were given, and
// separates secrets from other values. Package run executes a plan.
package plan

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/workload"
)

// A Plan contains all options of a run. Each field is an option with its
// default. Flags, help, documentation and the manifest of a run are derived
// from these fields. Names and defaults are the same as in `vllm bench serve`,
// so its command lines mean the same here. The help of an option added by tacho
// starts with a +.
type Plan struct {
	Server           `group:"Server"`
	Prediction       `group:"Prediction"`
	Load             `group:"Load"`
	Body             `group:"Request"`
	Preset           `group:"Workload"`
	workload.Dataset `group:"Dataset"`
	Answers          `group:"Answers"`
	Results          `group:"Results"`
	Machines         `group:"Agents"`

	given []string // names of options set explicitly
	lists []axis   // options with several values
}

// Server selects the server and the connection.
type Server struct {
	Backend         string   `flag:"backend" list:"yes" default:"openai" help:"protocol, see the list below; auto detects it"`
	BaseURL         []string `flag:"base-url" help:"server, as http://host:port, https://..., or unix:///path.sock; overrides --host and --port; several servers share the load"`
	Balance         string   `flag:"balance" alias:"router" default:"round-robin" words:"round-robin random least-loaded power-of-two prefix sticky" help:"+ load balancing between servers: round-robin, random, least-loaded (fewest requests in flight), power-of-two (the less loaded of two random ones), prefix (the server that had the prompt's prefix), or sticky (one server per session)"`
	Host            string   `flag:"host" default:"127.0.0.1" help:"server's host"`
	Port            int      `flag:"port" help:"port of the server; default: the usual port of the backend"`
	Sim             string   `flag:"sim" list:"yes" help:"+ benchmark a simulated engine with this profile (tacho sim --list) instead of a server"`
	SimSpeedup      float64  `flag:"sim-speedup" default:"1" help:"+ speed-up factor of the simulated engine and the load; plan and report use the engine's time"`
	Virtual         bool     `flag:"virtual" help:"+ compute the run in virtual time on the engine of --sim without sending requests; results are marked PREDICTED"`
	Endpoint        string   `flag:"endpoint" list:"yes" help:"path of the request; default: the usual path of the backend" secret:"path"`
	Model           string   `flag:"model" list:"yes" help:"model name; default: the first model the server lists"`
	ServedModelName string   `flag:"served-model-name" list:"yes" help:"model name in requests, if it differs from --model"`
	Tokenizer       string   `flag:"tokenizer" help:"tokenizer: a file, a directory, a model (owner/name, owner/name@revision), or a built-in encoding (cl100k_base, gpt-4o, ...); default: the model's tokenizer, or the server's /tokenize"`
	TokenizerMode   string   `flag:"tokenizer-mode" default:"auto" help:"accepted for compatibility"`
	TrustRemoteCode bool     `flag:"trust-remote-code" help:"accepted for compatibility; tacho never runs model code"`
	SkipTokenizer   bool     `flag:"skip-tokenizer-init" help:"do not use the server's /tokenize; prompt lengths are estimates"`
	Header          []string `flag:"header" help:"extra headers, as KEY=VALUE ..." secret:"header"`
	APIKey          string   `flag:"api-key" help:"+ API key; prefer OPENAI_API_KEY or --api-key-file, because other users can see command lines" secret:"all"`
	APIKeyFile      string   `flag:"api-key-file" help:"+ file with the API key"`
	Insecure        bool     `flag:"insecure" help:"do not verify the server's certificate"`
	CACert          string   `flag:"ca-cert" help:"+ file with CA certificates, instead of the system's"`
	ClientCert      string   `flag:"client-cert" help:"+ file with the client certificate"`
	ClientKey       string   `flag:"client-key" help:"+ file with the key of the client certificate"`
	HTTP2           bool     `flag:"http2" help:"+ use HTTP/2 (arrivals are timestamped when read, not by the kernel)"`
	Clock           string   `flag:"clock" list:"yes" default:"kernel" words:"kernel wire auto read" help:"+ source of arrival timestamps: kernel, wire (at the network device; needs CAP_NET_RAW), auto (wire if available, otherwise kernel) or read (user space)"`
	RequestIDPrefix string   `flag:"request-id-prefix" default:"bench-{random}-" help:"prefix of the x-request-id of each request; {random} becomes a random number"`
	RequestIDFormat string   `flag:"request-id-format" default:"number" words:"number uuid" help:"+ format of x-request-id: number (prefix and request number) or uuid; a value in --header is sent unchanged"`
	MetricsURL      []string `flag:"metrics-url" help:"+ metrics page to read during the run; default: the server's page, if available; none disables it"`
	GPUMetricsURL   []string `flag:"gpu-metrics-url" help:"+ metrics page of a DCGM exporter, for GPU utilization and power"`
	MetricsInterval Seconds  `flag:"metrics-interval" default:"1" help:"+ interval between reads of the metrics pages"`
	Label           string   `flag:"label" help:"name of the run, used in file names"`
}

// Answers selects how the answers are judged.
type Answers struct {
	Score        string `flag:"score" list:"no" help:"+ scorer of the answers (docs/answers.md); default: the dataset's"`
	CheckAnswers bool   `flag:"check-answers" list:"no" help:"+ also send prompts alone, twice, and tell whether load makes the answers worse; levels have the same prompts, temperature 0"`
	AlonePrompts int    `flag:"alone-prompts" list:"no" default:"500" most:"100000" help:"+ with --check-answers: number of prompts to send alone"`
}

// Preset selects a workload with a published definition.
type Preset struct {
	Workload string `flag:"workload" list:"no" words:"chat rag code summarize agent" help:"+ dataset and lengths of a published workload: chat, rag, code, summarize or agent; other flags override its options"`
}

// Values of --progress.
const (
	AutoProgress  = "auto"
	LiveProgress  = "live"
	PlainProgress = "plain"
	JSONProgress  = "json"
	NoProgress    = "none"
)

// Prediction configures a run in virtual time.
type Prediction struct {
	Replicas int `flag:"replicas" default:"1" most:"10000" help:"+ with --virtual: number of engines behind a router (--balance)"`
	Draws    int `flag:"draws" list:"no" default:"10" most:"10000" help:"+ with --virtual: number of extra simulations with engine parameters drawn from their standard errors; predictions become ranges"`
}

// AutoClock selects the best available clock.
const AutoClock = "auto"

// Load sets the amount and the timing of requests.
type Load struct {
	NumPrompts      int      `flag:"num-prompts" default:"1000" help:"number of requests; every number or choice may be a list (1,2,4 or 1,2,...,4096) with one level per value"`
	RequestRate     float64  `flag:"request-rate" default:"inf" list:"sweep" alias:"sweep-request-rate" help:"requests per second, or sweep; inf sends all immediately; sweep finds rates from concurrency 1 to saturation"`
	Burstiness      float64  `flag:"burstiness" default:"1" help:"gamma shape of the gaps: 1 is Poisson, lower is burstier, higher is more even, inf is constant"`
	MaxConcurrency  int      `flag:"max-concurrency" list:"sweep" alias:"sweep-max-concurrency multi-turn-concurrency" most:"1000000" help:"maximum requests in flight, or sweep, which finds values from 1 to saturation"`
	PromptsFactor   int      `flag:"sweep-num-prompts-factor" help:"+ number of requests per level, as a multiple of --max-concurrency"`
	Repeat          int      `flag:"repeat" list:"no" alias:"num-runs" most:"10000" help:"+ number of runs per level; the report shows their spread"`
	RampUpStrategy  string   `flag:"ramp-up-strategy" list:"yes" words:"linear exponential" help:"increase the rate, linear or exponential; replaces --request-rate"`
	RampUpStartRPS  *float64 `flag:"ramp-up-start-rps" help:"requests per second at the start of the ramp"`
	RampUpEndRPS    *float64 `flag:"ramp-up-end-rps" help:"requests per second at the end of the ramp"`
	MaxSeconds      Seconds  `flag:"max-seconds" help:"+ send requests for this long instead of --num-prompts; requests in flight have 10 minutes to finish, or --request-timeout if set"`
	Replay          string   `flag:"replay" list:"yes" help:"+ repeat the requests of a stored run at the same times: its directory, or DIR:INDEX for one of several levels"`
	LevelPause      Seconds  `flag:"level-pause" help:"+ pause between levels"`
	ShuffleLevels   bool     `flag:"shuffle-levels" list:"no" help:"+ run the levels in random order; the report sorts them"`
	KeepGoing       bool     `flag:"keep-going" list:"no" help:"+ run all levels of a list; by default the run stops at a load where all requests fail, or far past the knee"`
	SweepPoints     int      `flag:"sweep-points" list:"no" default:"10" most:"1000" help:"+ number of levels of a sweep"`
	NumWarmups      int      `flag:"num-warmups" help:"warm-up requests before the measurement; their prompts are not reused"`
	ReadyCheck      Seconds  `flag:"ready-check-timeout-sec" help:"wait up to this long until the server answers; 0 does not wait"`
	NoTrial         bool     `flag:"no-trial" help:"+ skip the test request to each server before the measurement; with --num-warmups the first warm-up is the test"`
	RequestTimeout  Seconds  `flag:"request-timeout" default:"21600" help:"+ timeout of a request"`
	ProbeRate       float64  `flag:"probe-request-rate" help:"one-token probes per second during the load, reported separately"`
	Seed            *uint64  `flag:"seed" list:"no" help:"seed of prompts, arrivals and the simulated engine; default: random; each level derives its own seed, so its prompts are not cached"`
	LoraModules     []string `flag:"lora-modules" help:"LoRA adapters to spread the requests over, instead of --model"`
	LoraAssignment  string   `flag:"lora-assignment" default:"random" words:"random round-robin" help:"choice of the adapter: random or round-robin"`
	Retries         int      `flag:"retries" help:"+ retries per request after a transient failure; the report counts them"`
	FlushCache      bool     `flag:"flush-cache" alias:"reset-prefix-cache" help:"+ clear the server's prefix cache before each level (SGLang; vLLM in development mode)"`
	Profile         bool     `flag:"profile" help:"profile the server during the run (/start_profile, /stop_profile)"`
	ProfileAt       int      `flag:"profile-batch-threshold" list:"no" help:"+ with --profile: start the profile at this many running requests"`
	ProfileFor      Seconds  `flag:"profile-duration" list:"no" default:"5" help:"+ with --profile-batch-threshold: duration of the profile"`
	DisableProgress bool     `flag:"disable-tqdm" list:"no" help:"disable progress output"`
}

// Body configures the request body.
type Body struct {
	backend.Sampling
	backend.Extras
	ExtraBody          JSONObject `flag:"extra-body" help:"JSON object merged into each request" secret:"body"`
	Logprobs           *int       `flag:"logprobs" help:"number of log probabilities per token (completions)"`
	IgnoreEOS          *bool      `flag:"ignore-eos" help:"generate the full output length; on by default for random and traces if the server supports it"`
	UseBeamSearch      bool       `flag:"use-beam-search" help:"accepted for compatibility; vLLM ignores it too"`
	ChatTemplateKwargs JSONObject `flag:"chat-template-kwargs" help:"JSON object sent as chat_template_kwargs with chat requests" secret:"body"`
}

// Results selects the reports and their destination.
type Results struct {
	PercentileMetrics string   `flag:"percentile-metrics" help:"latencies to report: ttft, tpot, itl, e2el, with --max-concurrency client_queue_time and e2el_including_client_queue, or any latency of tacho metrics; default: ttft,tpot,itl, or e2el if no tokens are generated"`
	MetricPercentiles string   `flag:"metric-percentiles" default:"99" help:"percentiles to report, such as 50,90,99.9"`
	SteadyThreshold   float64  `flag:"steady-state-threshold" list:"no" default:"0.95" help:"+ the steady state lasts from the first to the last time this fraction of --max-concurrency is in flight"`
	SteadyMinWindow   Seconds  `flag:"steady-state-min-window" list:"no" help:"+ minimum length of a steady state; default: a tenth of the run"`
	NoSteadyState     bool     `flag:"no-steady-state" list:"no" help:"+ do not detect the steady state"`
	SweepPercentiles  string   `flag:"sweep-summary-percentiles" help:"+ additional percentiles of TTFT, TPOT and E2EL in the table of levels, such as 90,95"`
	Goodput           []string `flag:"goodput" help:"SLO per request, as ttft:500ms tpot:50ms e2el:10s, for any metric of tacho metrics (without a unit: milliseconds, or the unit of the metric); itl.p99:50ms limits a percentile of the gaps of a request, itl:50ms each gap"`
	SLO               string   `flag:"slo" list:"no" help:"+ SLO, as ttft:p99<500ms,tpot:p95<50ms,error<0.1%: table, conclusion, page and --fail-if slo judge each level by it"`
	FailIf            string   `flag:"fail-if" help:"+ conditions for exit code 3, as ttft.p99>200ms,failures>1%,unsent>0%,verdict>valid, or slo for a level that misses --slo"`
	AllowUnjudged     bool     `flag:"allow-unjudged" list:"no" help:"+ pass conditions of --fail-if with too little data; otherwise exit with code 5"`
	JUnit             string   `flag:"junit" list:"no" help:"+ JUnit XML file for the results of --fail-if"`
	StallThreshold    float64  `flag:"stall-threshold" default:"1000" help:"+ gap between tokens counted as a stall, in milliseconds"`
	GPUPrice          float64  `flag:"gpu-price" help:"+ price per GPU hour, for the cost per million tokens; needs --gpus or --gpu-metrics-url"`
	ReportStyle       string   `flag:"report-style" default:"current" help:"+ layout of the report: current, 2025-10, 2025-09 or old"`
	Reports           []string `flag:"report" help:"+ report file to write, as FORMAT[:ROWS][=PATH] with a format of tacho report: csv, parquet=all.parquet, csv:token=tokens.csv; default path: the run directory; - is standard output; several separated by commas"`
	MetricsListen     string   `flag:"metrics-listen" help:"+ address of a Prometheus metrics page during the run, as 127.0.0.1:9464"`
	OTLP              string   `flag:"otlp-endpoint" help:"+ OTLP collector for metrics every 10 s, as http://127.0.0.1:4318; default: OTEL_EXPORTER_OTLP_ENDPOINT"`
	OTLPHeaders       []string `flag:"otlp-header" help:"+ header for the OTLP collector, as NAME=VALUE; repeatable" secret:"header"`
	Traceparent       float64  `flag:"traceparent" list:"no" help:"+ fraction of the requests with a traceparent header, from 0 to 1, so that the server traces them"`
	Dialect           string   `flag:"dialect" help:"+ also print the report of another tool for the same requests: vllm, sglang, aiperf or guidellm"`
	SaveResult        bool     `flag:"save-result" help:"write the JSON result file of vllm bench serve"`
	SaveDetailed      bool     `flag:"save-detailed" help:"include metrics and text of every request in the result file"`
	AppendResult      bool     `flag:"append-result" help:"append to the result file, one line per level"`
	ResultDir         string   `flag:"result-dir" help:"directory of the result file"`
	ResultFilename    string   `flag:"result-filename" help:"name of the result file"`
	Metadata          []string `flag:"metadata" help:"extra entries in the result file, as KEY=VALUE ..." secret:"pair"`
	PlotTimeline      bool     `flag:"plot-timeline" help:"write an HTML timeline of every request"`
	TimelineITL       string   `flag:"timeline-itl-thresholds" default:"25,50" help:"ITL limits of the timeline colors, in milliseconds"`
	GPUs              GPUs     `flag:"gpus" help:"+ GPUs of the server, such as 8xMI300X or 4xH100,4xA100; stored with the run"`
	Progress          string   `flag:"progress" list:"no" default:"auto" words:"auto live plain json none" help:"+ progress output: live (full-screen view), plain (text lines), json or none; auto is live on a terminal, otherwise plain"`
	ProgressInterval  Seconds  `flag:"progress-interval" list:"no" default:"10" help:"+ interval between progress lines"`
	Plain             bool     `flag:"plain" list:"no" help:"+ same as --progress plain"`
	Verbose           bool     `flag:"verbose" list:"no" help:"+ print the full report of each level"`
	NoHTML            bool     `flag:"no-html" help:"+ do not write report.html to the run directory"`
	RunsDir           string   `flag:"runs-dir" default:"runs" help:"+ directory of all runs"`
	OnDiskFull        string   `flag:"on-disk-full" default:"memory" words:"memory stop" help:"+ action on a full disk: memory continues and buffers up to 256 MiB; stop ends the run and reports it"`
}

// Machines distributes the load over several machines.
type Machines struct {
	Agents       int      `flag:"agents" list:"no" most:"10000" help:"+ number of agents (tacho agent) that share the load; 0 sends it from this process"`
	Local        bool     `flag:"local" list:"no" help:"+ start the agents on this machine"`
	NATS         string   `flag:"nats" list:"no" help:"+ NATS server, as nats://host:4222, several separated by commas; default: start one"`
	NATSListen   string   `flag:"nats-listen" list:"no" default:"0.0.0.0:4222" help:"+ listen address of the NATS server that tacho starts"`
	NATSCreds    string   `flag:"nats-creds" list:"no" help:"+ file with NATS credentials"`
	NATSNKey     string   `flag:"nats-nkey" list:"no" help:"+ file with an nkey seed for NATS"`
	NATSToken    string   `flag:"nats-token" list:"no" help:"+ token for NATS; prefer TACHO_NATS_TOKEN, because other users can see command lines" secret:"all"`
	NATSCA       string   `flag:"nats-ca-cert" list:"no" help:"+ file with CA certificates for NATS, instead of the system's"`
	NATSCert     string   `flag:"nats-cert" list:"no" help:"+ file with the client certificate for NATS"`
	NATSKey      string   `flag:"nats-key" list:"no" help:"+ file with the key of the NATS client certificate"`
	TrustAgent   []string `flag:"trust-agent" list:"no" help:"+ public key of an agent that may join, as tacho agent prints it, or any; may be repeated; needed with --nats"`
	AgentWait    Seconds  `flag:"agent-wait" list:"no" default:"60" help:"+ timeout for agents to join and to get ready for a level"`
	AgentTimeout Seconds  `flag:"agent-timeout" list:"no" default:"10" help:"+ time without messages after which an agent is lost"`
	OnLoss       string   `flag:"on-loss" list:"no" default:"reassign" words:"reassign keep" help:"+ load of a lost agent: reassign sends the rest from another agent; keep only reports the missing requests"`
}

// AnyAgent is the value of --trust-agent that trusts every agent.
const AnyAgent = "any"

// Reassign is the value of --on-loss that moves the load to another agent.
const Reassign = "reassign"

// validateMachines checks the options for agents.
func (p *Plan) validateMachines() error {
	switch {
	case p.Agents < 0:
		return fmt.Errorf("--agents %d: want 0 or more", p.Agents)
	case p.Agents == 0 && (p.Local || p.NATS != ""):
		return errors.New("--local and --nats need --agents")
	case p.Local && p.NATS != "":
		return errors.New("--local starts its own NATS server and cannot be combined with --nats")
	case p.NATS != "" && len(p.TrustAgent) == 0:
		return errors.New("--nats needs --trust-agent: name the keys that the agents print, or any to trust every agent that the NATS server lets in")
	case p.Agents > 0 && p.Replay != "":
		return errors.New("--replay cannot be combined with --agents: replay the run from one process")
	case p.Agents > 0 && p.Virtual:
		return errors.New("--virtual computes the run locally and cannot be combined with --agents")
	case p.Agents > 0 && p.Sim != "" && !p.Local:
		return errors.New("--sim starts an engine that only this machine can reach: use --local, or start tacho sim and name it with --base-url")
	}
	return nil
}

// Default returns the plan without any option given.
func Default() (p Plan) {
	for _, o := range p.Options() {
		if o.standard == "" {
			continue
		}
		if err := o.set(o.standard); err != nil {
			panic(fmt.Sprintf("default of option %s: %v", o.Name, err))
		}
	}
	return p
}

// Option values with special behavior.
const (
	UUIDs             = "uuid"
	RandomPlaceholder = "{random}" // replaced by a random number in the prefix of request ids
	StopOnFullDisk    = "stop"
)

// AdaptersAtRandom reports whether adapters are chosen randomly instead of
// round-robin.
func (p *Plan) AdaptersAtRandom() bool { return p.LoraAssignment == "random" }

// bareHost matches an address without a scheme, such as 127.0.0.1:8000.
var bareHost = regexp.MustCompile(`^([\w.-]+|\[[0-9a-fA-F:]+\])(:\d+)?(/|$)`)

// BaseURLs returns the URLs of the servers. An address without a scheme has http.
func (p *Plan) BaseURLs() []string {
	if len(p.BaseURL) > 0 {
		out := slices.Clone(p.BaseURL)
		for i, u := range out {
			if bareHost.MatchString(u) {
				out[i] = "http://" + u
			}
		}
		return out
	}
	host, scheme := p.Host, "http"
	if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
		host = "[" + host + "]"
	}
	if p.Port == 443 {
		scheme = "https"
	}
	return []string{fmt.Sprintf("%s://%s:%d", scheme, host, p.Port)}
}

// ShownURLs returns the URLs of the servers without secrets.
func (p *Plan) ShownURLs() []string {
	out := p.BaseURLs()
	for i, u := range out {
		out[i] = redact.URL(u)
	}
	return out
}
