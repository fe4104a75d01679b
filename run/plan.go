package run

import (
	"math"

	"tacho/backend"
)

// A Plan is all that a run is told. Each field is an option, written down
// here and nowhere else: the flags, the help, the documentation and the
// manifest of a run are derived from it. Names and defaults are those of
// `vllm bench serve`, so that its command lines mean here what they mean
// there; what tacho adds is marked by a + in front of its help.
type Plan struct {
	Target  `group:"Server"`
	Load    `group:"Load"`
	Body    `group:"Request"`
	Dataset `group:"Dataset"`
	Talk    `group:"Conversations"`
	Trace   `group:"Traces"`
	Results `group:"Results"`

	given []string // names of the options that were set
}

// Target says whom to ask.
type Target struct {
	Backend         string   `flag:"backend" help:"protocol to speak: see the list below; auto asks the server"`
	BaseURL         []string `flag:"base-url" help:"server, as http://host:port, https://..., or unix:///path.sock; overrides --host and --port; several servers share the load"`
	Balance         string   `flag:"balance" help:"+ how several servers share it: round-robin, random, least-in-flight, or sticky (all requests of a session to one)"`
	Host            string   `flag:"host" help:"server's host"`
	Port            int      `flag:"port" help:"server's port; by default the one that the backend's servers use"`
	Sim             string   `flag:"sim" help:"+ measure a simulated engine of this profile (tacho sim --list) instead of a server"`
	SimSpeedup      float64  `flag:"sim-speedup" help:"+ run the simulated engine, and the load, so many times faster than the real thing; plan and report stay in the engine's own time"`
	Endpoint        string   `flag:"endpoint" help:"path to ask; by default the one the backend goes with" secret:"path"`
	Model           string   `flag:"model" help:"model to ask for; by default the first the server lists"`
	ServedModelName string   `flag:"served-model-name" help:"the model's name in requests, where the server calls it something else"`
	Tokenizer       string   `flag:"tokenizer" help:"tokenizer to count with: a file, a folder, a model (owner/name, owner/name@revision), or a built-in encoding (cl100k_base, o200k_base, gpt-4o, ...); by default the model's own, or the server's /tokenize"`
	TokenizerMode   string   `flag:"tokenizer-mode" help:"accepted for compatibility"`
	TrustRemoteCode bool     `flag:"trust-remote-code" help:"accepted for compatibility; tacho runs no code of a model"`
	SkipTokenizer   bool     `flag:"skip-tokenizer-init" help:"do not ask the server to count tokens: prompt lengths are estimates"`
	Header          []string `flag:"header" help:"further headers, as KEY=VALUE ..." secret:"header"`
	APIKey          string   `flag:"api-key" help:"+ key to show to the server; others on this machine can read a command line: better put it into OPENAI_API_KEY or a file" secret:"all"`
	APIKeyFile      string   `flag:"api-key-file" help:"+ file that holds the key"`
	Insecure        bool     `flag:"insecure" help:"do not verify the server's certificate"`
	CACert          string   `flag:"ca-cert" help:"+ file of certificates to trust instead of the system's"`
	ClientCert      string   `flag:"client-cert" help:"+ file of the certificate to present to the server"`
	ClientKey       string   `flag:"client-key" help:"+ file of its key"`
	HTTP2           bool     `flag:"http2" help:"+ speak HTTP/2 (times are then of the read, not the kernel's)"`
	Clock           string   `flag:"clock" help:"+ what stamps arrivals: kernel, or read to see the difference"`
	RequestIDPrefix string   `flag:"request-id-prefix" help:"prefix of the x-request-id of each request; {random} in it is a number drawn for the run"`
	RequestIDFormat string   `flag:"request-id-format" help:"+ what an x-request-id is: number (the prefix and the request's number) or uuid; one given with --header is sent as it is"`
	MetricsURL      []string `flag:"metrics-url" help:"+ metrics page to read during the run; by default the server's own, if it has one; none reads nothing"`
	GPUMetricsURL   []string `flag:"gpu-metrics-url" help:"+ metrics page of a DCGM exporter, for use and power of the GPUs"`
	MetricsInterval Seconds  `flag:"metrics-interval" help:"+ time from one reading of these pages to the next"`
	Label           string   `flag:"label" help:"name of the run, in the names of its files"`
}

// Load says when to ask, and how much.
type Load struct {
	NumPrompts      IntLevels   `flag:"num-prompts" help:"number of requests; a list (1,2,4 or 1,2,...,4096) runs one level after the other"`
	RequestRate     FloatLevels `flag:"request-rate" help:"requests per second; inf sends all at once; a list runs levels"`
	Burstiness      float64     `flag:"burstiness" help:"gamma shape of the gaps: 1 is Poisson, below it burstier, above it more even, inf constant"`
	MaxConcurrency  IntLevels   `flag:"max-concurrency" help:"most requests in flight; a list runs levels"`
	RampUpStrategy  string      `flag:"ramp-up-strategy" help:"linear or exponential: a rising rate instead of --request-rate"`
	RampUpStartRPS  *float64    `flag:"ramp-up-start-rps" help:"requests per second at the beginning of the ramp"`
	RampUpEndRPS    *float64    `flag:"ramp-up-end-rps" help:"requests per second at its end"`
	MaxSeconds      Seconds     `flag:"max-seconds" help:"+ send for this long instead of a number of requests; what is in flight then is let finish"`
	NumWarmups      int         `flag:"num-warmups" help:"requests to send before measuring; their prompts are never measured"`
	ReadyCheck      Seconds     `flag:"ready-check-timeout-sec" help:"wait this long for the server to answer a request; 0 does not wait: a server that refuses the first ends the run"`
	NoTrial         bool        `flag:"no-trial" help:"+ do not send each server one request before the measured ones, to see whether it answers; with --num-warmups it is one of those"`
	RequestTimeout  Seconds     `flag:"request-timeout" help:"+ give a request up after this long"`
	ProbeRate       float64     `flag:"probe-request-rate" help:"one-token probes per second beside the load, reported apart"`
	Seed            *uint64     `flag:"seed" help:"seed of prompts, arrivals and the simulated engine, by default another for each run; each level has its own, made from it, so that no cache knows its prompts"`
	LoraModules     []string    `flag:"lora-modules" help:"adapters to spread the requests over, in place of the model"`
	LoraAssignment  string      `flag:"lora-assignment" help:"random or round-robin"`
	Retries         int         `flag:"retries" help:"+ send a request again, so often, when it fails in a way that may pass; the report says how many were"`
	FlushCache      bool        `flag:"flush-cache" help:"+ have the server forget the prompts it has seen before each level (SGLang; vLLM in development mode)"`
	Profile         bool        `flag:"profile" help:"have the server profile the run (/start_profile, /stop_profile)"`
	DisableProgress bool        `flag:"disable-tqdm" help:"no progress line"`
}

// Body says how to ask.
type Body struct {
	backend.Sampling
	backend.Extras
	ExtraBody          JSONObject `flag:"extra-body" help:"JSON object merged into each request" secret:"body"`
	Logprobs           *int       `flag:"logprobs" help:"log probabilities to ask for with each token (completions)"`
	IgnoreEOS          *bool      `flag:"ignore-eos" help:"have the server go on to the full output length; random and traces imply it where the server can, unless it is false"`
	UseBeamSearch      bool       `flag:"use-beam-search" help:"accepted for compatibility; vLLM ignores it too"`
	ChatTemplateKwargs JSONObject `flag:"chat-template-kwargs" help:"JSON object sent as chat_template_kwargs with chat requests" secret:"body"`
}

// Results says what to report, and where to keep it.
type Results struct {
	PercentileMetrics string   `flag:"percentile-metrics" help:"latencies to report: any of ttft,tpot,itl,e2el, and of a limited client client_queue_time,e2el_including_client_queue; by default ttft,tpot,itl, and e2el where no tokens come out"`
	MetricPercentiles string   `flag:"metric-percentiles" help:"percentiles to report, as 50,90,99.9"`
	Goodput           []string `flag:"goodput" help:"what a good request keeps, as ttft:MS tpot:MS e2el:MS"`
	ReportStyle       string   `flag:"report-style" help:"+ layout of the report: current, 2025-10, 2025-09 or old"`
	SaveResult        bool     `flag:"save-result" help:"write a JSON file as vllm bench serve does"`
	SaveDetailed      bool     `flag:"save-detailed" help:"with every request's numbers and text in it"`
	AppendResult      bool     `flag:"append-result" help:"append it to the file as a line"`
	ResultDir         string   `flag:"result-dir" help:"directory of that file"`
	ResultFilename    string   `flag:"result-filename" help:"its name"`
	Metadata          []string `flag:"metadata" help:"further entries of that file, as KEY=VALUE ..." secret:"pair"`
	PlotTimeline      bool     `flag:"plot-timeline" help:"draw every request on a time axis, into an HTML file"`
	PlotDatasetStats  bool     `flag:"plot-dataset-stats" help:"accepted for compatibility; the lengths are in tacho report --format json"`
	TimelineITL       string   `flag:"timeline-itl-thresholds" help:"milliseconds at which its colours change"`
	GPUs              GPUs     `flag:"gpus" help:"+ what the server runs on, as 8xMI300X or 4xH100,4xA100: kept with the run"`
	RunsDir           string   `flag:"runs-dir" help:"+ where runs are kept"`
	OnDiskFull        string   `flag:"on-disk-full" help:"+ when a run can no longer be written down: memory goes on, and keeps up to 256 MiB in memory until there is room; stop ends it with its report"`
}

// DefaultPlan is the plan of somebody who said nothing.
func DefaultPlan() Plan {
	return Plan{
		Target: Target{
			Backend: "openai", Host: "127.0.0.1", Balance: string(backend.RoundRobin), TokenizerMode: "auto", Clock: "kernel", SimSpeedup: 1, MetricsInterval: 1,
			RequestIDPrefix: "bench-" + randomHole + "-", RequestIDFormat: numberFormat,
		},
		Load: Load{
			NumPrompts: IntLevels{1000}, RequestRate: FloatLevels{math.Inf(1)}, Burstiness: 1,
			RequestTimeout: 6 * 3600, LoraAssignment: "random",
		},
		Dataset: defaultDataset(), Talk: defaultTalk(), Trace: defaultTrace(),
		Results: Results{
			MetricPercentiles: "99", ReportStyle: "current", TimelineITL: "25,50", RunsDir: "runs", OnDiskFull: waitOnFullDisk,
		},
	}
}
