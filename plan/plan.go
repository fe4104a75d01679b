// Package plan is what was asked for, as data. It goes to a file and back
// without loss, knows which options were given, and tells secrets from the rest.
// Nothing is done here: package run carries a plan out.
package plan

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"tacho/backend"
	"tacho/internal/redact"
	"tacho/workload"
)

// A Plan is all that a run is told. Each field is an option, written down
// here and nowhere else, with its default: the flags, the help, the
// documentation and the manifest of a run are derived from it. Names and
// defaults are those of `vllm bench serve`, so that its command lines mean here
// what they mean there; what tacho adds is marked by a + in front of its help.
type Plan struct {
	Server           `group:"Server"`
	Fleet            `group:"Fleet"`
	Load             `group:"Load"`
	Body             `group:"Request"`
	workload.Dataset `group:"Dataset"`
	Results          `group:"Results"`
	Machines         `group:"Agents"`

	given []string // names of the options that were set
	lists []axis   // of the options that have several values
}

// Server says whom to ask.
type Server struct {
	Backend         string   `flag:"backend" list:"yes" default:"openai" help:"protocol to speak: see the list below; auto asks the server"`
	BaseURL         []string `flag:"base-url" help:"server, as http://host:port, https://..., or unix:///path.sock; overrides --host and --port; several servers share the load"`
	Balance         string   `flag:"balance" alias:"router" default:"round-robin" words:"round-robin random least-loaded power-of-two prefix sticky" help:"+ how several servers share the load: round-robin, random, least-loaded (fewest requests in flight), power-of-two (the less loaded of two drawn at random), prefix (where prompts with the same beginning went before), or sticky (all requests of a session to one server)"`
	Host            string   `flag:"host" default:"127.0.0.1" help:"server's host"`
	Port            int      `flag:"port" help:"server's port; by default the one that the backend's servers use"`
	Sim             string   `flag:"sim" list:"yes" help:"+ measure a simulated engine of this profile (tacho sim --list) instead of a server"`
	SimSpeedup      float64  `flag:"sim-speedup" default:"1" help:"+ run the simulated engine and the load this many times faster; plan and report stay in the engine's own time"`
	Virtual         bool     `flag:"virtual" help:"+ compute the run in virtual time on the engine of --sim, faster than it would pass; nothing is sent, and all that comes out is marked PREDICTED"`
	Endpoint        string   `flag:"endpoint" list:"yes" help:"path of the request; by default the backend's own" secret:"path"`
	Model           string   `flag:"model" list:"yes" help:"model to ask for; by default the first that the server lists"`
	ServedModelName string   `flag:"served-model-name" list:"yes" help:"the model's name in requests, if the server uses another name for it"`
	Tokenizer       string   `flag:"tokenizer" help:"tokenizer to count with: a file, a folder, a model (owner/name, owner/name@revision), or a built-in encoding (cl100k_base, o200k_base, gpt-4o, ...); by default the model's own, or the server's /tokenize"`
	TokenizerMode   string   `flag:"tokenizer-mode" default:"auto" help:"accepted for compatibility"`
	TrustRemoteCode bool     `flag:"trust-remote-code" help:"accepted for compatibility; tacho runs no code of a model"`
	SkipTokenizer   bool     `flag:"skip-tokenizer-init" help:"do not ask the server to count tokens: prompt lengths are estimates"`
	Header          []string `flag:"header" help:"extra headers, as KEY=VALUE ..." secret:"header"`
	APIKey          string   `flag:"api-key" help:"+ API key; other users of this machine can read a command line, so prefer OPENAI_API_KEY or a file" secret:"all"`
	APIKeyFile      string   `flag:"api-key-file" help:"+ file that holds the key"`
	Insecure        bool     `flag:"insecure" help:"do not verify the server's certificate"`
	CACert          string   `flag:"ca-cert" help:"+ file with certificates to trust instead of the system's"`
	ClientCert      string   `flag:"client-cert" help:"+ file with the certificate to present to the server"`
	ClientKey       string   `flag:"client-key" help:"+ file with that certificate's key"`
	HTTP2           bool     `flag:"http2" help:"+ use HTTP/2 (arrivals are then stamped when read, not by the kernel)"`
	Clock           string   `flag:"clock" list:"yes" default:"kernel" words:"kernel wire auto read" help:"+ what stamps arrivals: kernel; wire (each segment as it passes the network device: exact even if the client gets no processor; needs CAP_NET_RAW); auto (wire where it is to be had, else kernel); or read (to see the difference)"`
	RequestIDPrefix string   `flag:"request-id-prefix" default:"bench-{random}-" help:"prefix of the x-request-id of each request; {random} in it is a number drawn for the run"`
	RequestIDFormat string   `flag:"request-id-format" default:"number" words:"number uuid" help:"+ what an x-request-id is: number (the prefix and the request's number) or uuid; one given with --header is sent as it is"`
	MetricsURL      []string `flag:"metrics-url" help:"+ metrics page to read during the run; by default the server's own, if it has one; none reads nothing"`
	GPUMetricsURL   []string `flag:"gpu-metrics-url" help:"+ metrics page of a DCGM exporter, for utilization and power of the GPUs"`
	MetricsInterval Seconds  `flag:"metrics-interval" default:"1" help:"+ time between two readings of these pages"`
	Label           string   `flag:"label" help:"name of the run, in the names of its files"`
}

// What --progress says.
const (
	AutoProgress  = "auto"
	LiveProgress  = "live"
	PlainProgress = "plain"
	JSONProgress  = "json"
	NoProgress    = "none"
)

// Fleet says which engines a run in virtual time computes, and what becomes of
// them in its course.
type Fleet struct {
	Replicas           int      `flag:"replicas" default:"1" most:"10000" help:"+ with --virtual: so many engines behind a router (--balance)"`
	AutoscaleMax       int      `flag:"autoscale-max" most:"10000" help:"+ with --virtual: let the number of engines follow the load, from --replicas up to this many"`
	AutoscaleBy        string   `flag:"autoscale-by" default:"in-flight" words:"in-flight queue utilization" help:"+ what it follows: in-flight (requests under way), queue (requests that wait for the batch) or utilization (of batch slots or KV memory, whichever is fuller)"`
	AutoscaleTarget    float64  `flag:"autoscale-target" help:"+ of that, what each engine is to have: by default 64 in flight, 4 in the queue, or 0.7 of its room"`
	AutoscaleDelay     Seconds  `flag:"autoscale-delay" default:"60" help:"+ time from the decision until a new engine serves"`
	AutoscaleDownAfter Seconds  `flag:"autoscale-down-after" default:"300" help:"+ an engine too many is taken away after this time; it first ends what it has"`
	ReplicaFailsAt     []string `flag:"replica-fails-at" help:"+ with --virtual: seconds after the start at which an engine fails, one after the other; what it was serving fails, or is sent again where --retries allows that"`
	ReplicaMTBF        Seconds  `flag:"replica-mtbf" help:"+ with --virtual: mean time that an engine serves before it fails, by chance"`
	Draws              int      `flag:"draws" list:"no" default:"10" most:"10000" help:"+ with --virtual: compute each level this many times more, with the parameters of the engine drawn from their standard errors, where its file has some: what is predicted is then a range"`
	ReplicaRepair      Seconds  `flag:"replica-repair" default:"60" help:"+ time until an engine that failed serves again"`
}

// AutoClock has the best clock chosen that is to be had.
const AutoClock = "auto"

// Load says when to ask, and how much.
type Load struct {
	NumPrompts      int      `flag:"num-prompts" default:"1000" help:"number of requests; like all options that are a number or a choice it may be a list (1,2,4 or 1,2,...,4096), which runs one level after the other"`
	RequestRate     float64  `flag:"request-rate" default:"inf" list:"sweep" alias:"sweep-request-rate" help:"requests per second; inf sends all at once; sweep finds the rates from one request at a time to saturation"`
	Burstiness      float64  `flag:"burstiness" default:"1" help:"gamma shape of the gaps: 1 is Poisson, less is burstier, more is more even, inf is constant"`
	MaxConcurrency  int      `flag:"max-concurrency" list:"sweep" alias:"sweep-max-concurrency multi-turn-concurrency" most:"1000000" help:"most requests in flight; sweep finds the numbers from 1 to saturation"`
	PromptsFactor   int      `flag:"sweep-num-prompts-factor" help:"+ number of requests, as a multiple of --max-concurrency: each level has its own"`
	Repeat          int      `flag:"repeat" list:"no" alias:"num-runs" most:"10000" help:"+ run each level this many times; the report shows how far they differ"`
	RampUpStrategy  string   `flag:"ramp-up-strategy" list:"yes" words:"linear exponential" help:"linear or exponential: let the rate rise, instead of --request-rate"`
	RampUpStartRPS  *float64 `flag:"ramp-up-start-rps" help:"requests per second at the start of the ramp"`
	RampUpEndRPS    *float64 `flag:"ramp-up-end-rps" help:"requests per second at the end of the ramp"`
	MaxSeconds      Seconds  `flag:"max-seconds" help:"+ send requests for this long, instead of a number of them; those in flight at the end may finish"`
	Replay          string   `flag:"replay" list:"yes" help:"+ send what a kept run sent, when it sent it: its directory, with :INDEX behind it where it has several levels; dataset, seed and times are those of that run"`
	LevelPause      Seconds  `flag:"level-pause" help:"+ wait this long before each level but the first"`
	ShuffleLevels   bool     `flag:"shuffle-levels" list:"no" help:"+ run the levels in a random order; the report has them in theirs"`
	KeepGoing       bool     `flag:"keep-going" list:"no" help:"+ run all levels of a list; by default a load at which all requests fail, or far past the knee, is the last"`
	SweepPoints     int      `flag:"sweep-points" list:"no" default:"10" most:"1000" help:"+ levels of a sweep"`
	NumWarmups      int      `flag:"num-warmups" help:"requests to send before measuring; their prompts are never measured"`
	ReadyCheck      Seconds  `flag:"ready-check-timeout-sec" help:"wait this long for the server to answer a request; 0 does not wait: a server that refuses the first ends the run"`
	NoTrial         bool     `flag:"no-trial" help:"+ do not send one request to each server before the measured ones to see whether it answers; with --num-warmups the first warm-up does this"`
	RequestTimeout  Seconds  `flag:"request-timeout" default:"21600" help:"+ give up a request after this time"`
	ProbeRate       float64  `flag:"probe-request-rate" help:"one-token probes per second during the load, reported separately"`
	Seed            *uint64  `flag:"seed" list:"no" help:"seed of prompts, arrivals and the simulated engine; by default a new one for each run; each level derives its own from it, so that no cache knows its prompts"`
	LoraModules     []string `flag:"lora-modules" help:"adapters to spread the requests over, instead of the model"`
	LoraAssignment  string   `flag:"lora-assignment" default:"random" words:"random round-robin" help:"how adapters are chosen: random or round-robin"`
	Retries         int      `flag:"retries" help:"+ retries for a request that fails in a way that may pass; the report counts them"`
	FlushCache      bool     `flag:"flush-cache" alias:"reset-prefix-cache" help:"+ make the server clear its prefix cache before each level (SGLang; vLLM in development mode)"`
	Profile         bool     `flag:"profile" help:"make the server profile the run (/start_profile, /stop_profile)"`
	ProfileAt       int      `flag:"profile-batch-threshold" list:"no" help:"+ with --profile: wait with it until the server's metrics page says that so many requests run"`
	ProfileFor      Seconds  `flag:"profile-duration" list:"no" default:"5" help:"+ with --profile-batch-threshold: profile for this long"`
	DisableProgress bool     `flag:"disable-tqdm" list:"no" help:"show no progress"`
}

// Body says how to ask.
type Body struct {
	backend.Sampling
	backend.Extras
	ExtraBody          JSONObject `flag:"extra-body" help:"JSON object merged into each request" secret:"body"`
	Logprobs           *int       `flag:"logprobs" help:"log probabilities to ask for with each token (completions)"`
	IgnoreEOS          *bool      `flag:"ignore-eos" help:"make the server generate the full output length; random and traces imply it if the server supports it, unless set to false"`
	UseBeamSearch      bool       `flag:"use-beam-search" help:"accepted for compatibility; vLLM ignores it too"`
	ChatTemplateKwargs JSONObject `flag:"chat-template-kwargs" help:"JSON object sent as chat_template_kwargs with chat requests" secret:"body"`
}

// Results says what to report, and where to keep it.
type Results struct {
	PercentileMetrics string   `flag:"percentile-metrics" help:"latencies to report: any of ttft,tpot,itl,e2el, with a limited client client_queue_time,e2el_including_client_queue, and every other latency of tacho metrics; by default ttft,tpot,itl, and e2el if no tokens are generated"`
	MetricPercentiles string   `flag:"metric-percentiles" default:"99" help:"percentiles to report, such as 50,90,99.9"`
	SteadyThreshold   float64  `flag:"steady-state-threshold" list:"no" default:"0.95" help:"+ a closed loop is in balance from when this part of --max-concurrency is first in flight until it is for the last time"`
	SteadyMinWindow   Seconds  `flag:"steady-state-min-window" list:"no" help:"+ a time in balance that is shorter than this is none; by default a tenth of the run"`
	NoSteadyState     bool     `flag:"no-steady-state" list:"no" help:"+ do not look for the time in which the run was in balance"`
	SweepPercentiles  string   `flag:"sweep-summary-percentiles" help:"+ percentiles of TTFT, TPOT and E2EL that the table of all levels has besides, such as 90,95"`
	Goodput           []string `flag:"goodput" help:"limits that a good request meets, as ttft:MS tpot:MS e2el:MS, or any metric of tacho metrics in its unit; itl.p99:MS is a percentile of the gaps of a request, itl:MS is each of them"`
	FailIf            string   `flag:"fail-if" help:"+ conditions that end with exit code 3, as ttft.p99>200ms,failures>1%,unsent>0%,verdict>valid"`
	AllowUnjudged     bool     `flag:"allow-unjudged" list:"no" help:"+ let a condition of --fail-if that could not be judged pass; otherwise the exit code is 5"`
	JUnit             string   `flag:"junit" list:"no" help:"+ file to write the conditions of --fail-if to, as JUnit XML"`
	StallThreshold    float64  `flag:"stall-threshold" default:"1000" help:"+ gaps between tokens that are longer than so many milliseconds are stalls"`
	GPUPrice          float64  `flag:"gpu-price" help:"+ price of one GPU for an hour, for the cost of a million tokens; how many there are is told by --gpus, or by --gpu-metrics-url"`
	ReportStyle       string   `flag:"report-style" default:"current" help:"+ layout of the report: current, 2025-10, 2025-09 or old"`
	Reports           []string `flag:"report" help:"+ a file to write at the end, as FORMAT[:ROWS][=PATH] with the formats of tacho report: csv, parquet=all.parquet, csv:token=tokens.csv; without a path it goes into the directory of the run, and - is the standard output"`
	MetricsListen     string   `flag:"metrics-listen" help:"+ address of a page for Prometheus while the run goes on, as 127.0.0.1:9464"`
	OTLP              string   `flag:"otlp-endpoint" help:"+ collector that gets the figures over OTLP/HTTP every 10 s, as http://127.0.0.1:4318"`
	OTLPHeaders       []string `flag:"otlp-header" help:"+ header for that collector, as NAME=VALUE; may be given several times" secret:"header"`
	Dialect           string   `flag:"dialect" help:"+ print at the end what another tool would say of the same requests: vllm, sglang, aiperf or guidellm; tacho report has it, too"`
	SaveResult        bool     `flag:"save-result" help:"write the JSON file of vllm bench serve"`
	SaveDetailed      bool     `flag:"save-detailed" help:"include every request's numbers and text in that file"`
	AppendResult      bool     `flag:"append-result" help:"append to the file instead of replacing it, one line for each level"`
	ResultDir         string   `flag:"result-dir" help:"directory for that file"`
	ResultFilename    string   `flag:"result-filename" help:"name of that file"`
	Metadata          []string `flag:"metadata" help:"extra entries for that file, as KEY=VALUE ..." secret:"pair"`
	PlotTimeline      bool     `flag:"plot-timeline" help:"draw every request on a time axis, into an HTML file"`
	PlotDatasetStats  bool     `flag:"plot-dataset-stats" help:"accepted for compatibility; the lengths are in tacho report --format json"`
	TimelineITL       string   `flag:"timeline-itl-thresholds" default:"25,50" help:"inter-token latencies at which the timeline's colours change, in milliseconds"`
	GPUs              GPUs     `flag:"gpus" help:"+ what the server runs on, such as 8xMI300X or 4xH100,4xA100: kept with the run"`
	Progress          string   `flag:"progress" list:"no" default:"auto" words:"auto live plain json none" help:"+ what is shown while the run goes on: live (a view that has the whole terminal), plain (a line from time to time), json (the same, as one JSON object in a line), none; auto is live on a terminal and plain elsewhere"`
	ProgressInterval  Seconds  `flag:"progress-interval" list:"no" default:"10" help:"+ time between two lines of progress"`
	Plain             bool     `flag:"plain" list:"no" help:"+ the same as --progress plain"`
	Verbose           bool     `flag:"verbose" list:"no" help:"+ print the whole report of each level, where there are several"`
	NoHTML            bool     `flag:"no-html" help:"+ write no report.html into the directory of the run"`
	RunsDir           string   `flag:"runs-dir" default:"runs" help:"+ where runs are kept"`
	OnDiskFull        string   `flag:"on-disk-full" default:"memory" words:"memory stop" help:"+ what to do when the run can no longer be written: memory continues and keeps up to 256 MiB in memory until there is room; stop ends the run with its report"`
}

// Machines says from where to ask.
type Machines struct {
	Agents       int     `flag:"agents" list:"no" most:"10000" help:"+ send the load from so many agents (tacho agent), each its share of the one schedule; 0 sends it from here"`
	Local        bool    `flag:"local" list:"no" help:"+ with --agents: start them on this machine, as processes of their own"`
	NATS         string  `flag:"nats" list:"no" help:"+ with --agents: the NATS server that agents join, as nats://host:4222 or several with commas between; by default one is started here"`
	NATSListen   string  `flag:"nats-listen" list:"no" default:"0.0.0.0:4222" help:"+ with --agents and without --nats and --local: where the NATS server that is started here listens"`
	NATSCreds    string  `flag:"nats-creds" list:"no" help:"+ file with NATS credentials"`
	NATSNKey     string  `flag:"nats-nkey" list:"no" help:"+ file with the seed of an nkey that NATS knows"`
	NATSToken    string  `flag:"nats-token" list:"no" help:"+ token for NATS; other users of this machine can read a command line, so prefer TACHO_NATS_TOKEN" secret:"all"`
	NATSCA       string  `flag:"nats-ca-cert" list:"no" help:"+ file with certificates to trust for NATS instead of the system's"`
	NATSCert     string  `flag:"nats-cert" list:"no" help:"+ file with the certificate to present to NATS"`
	NATSKey      string  `flag:"nats-key" list:"no" help:"+ file with that certificate's key"`
	AgentWait    Seconds `flag:"agent-wait" list:"no" default:"60" help:"+ wait this long for agents to join, and to be ready for a level"`
	AgentTimeout Seconds `flag:"agent-timeout" list:"no" default:"10" help:"+ an agent that was not heard of for this long is lost"`
	OnLoss       string  `flag:"on-loss" list:"no" default:"reassign" words:"reassign keep" help:"+ share of a lost agent: reassign lets another agent send the rest; keep only reports what is missing"`
}

// Reassign is the word of --on-loss that has another agent take over.
const Reassign = "reassign"

// validateMachines says what is wrong with the agents.
func (p *Plan) validateMachines() error {
	switch {
	case p.Agents < 0:
		return fmt.Errorf("--agents %d: write how many there are", p.Agents)
	case p.Agents == 0 && (p.Local || p.NATS != ""):
		return errors.New("--local and --nats are for agents: say how many with --agents")
	case p.Local && p.NATS != "":
		return errors.New("--local brings a NATS server of its own: it goes without --nats")
	case p.Agents > 0 && p.Virtual:
		return errors.New("--virtual computes the run here: it goes without --agents")
	case p.Agents > 0 && p.Sim != "" && !p.Local:
		return errors.New("--sim starts an engine that only this machine can reach: use --local, or start tacho sim and name it with --base-url")
	}
	return nil
}

// Default is the plan of somebody who said nothing.
func Default() (p Plan) {
	for _, o := range p.Options() {
		if o.standard == "" {
			continue
		}
		if err := o.set(o.standard); err != nil {
			panic(fmt.Sprintf("the default of option %s: %v", o.Name, err))
		}
	}
	return p
}

// Words that options take, and that change what is done.
const (
	UUIDs          = "uuid"
	RandomHole     = "{random}" // in the prefix of request ids, where a random number goes
	StopOnFullDisk = "stop"
)

// AdaptersAtRandom says whether adapters are chosen by chance, and not in turn.
func (p *Plan) AdaptersAtRandom() bool { return p.LoraAssignment == "random" }

// BaseURLs are where the servers are.
func (p *Plan) BaseURLs() []string {
	if len(p.BaseURL) > 0 {
		return slices.Clone(p.BaseURL)
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

// ShownURLs are the same, fit to be shown.
func (p *Plan) ShownURLs() []string {
	out := p.BaseURLs()
	for i, u := range out {
		out[i] = redact.URL(u)
	}
	return out
}
