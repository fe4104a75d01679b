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
	Results `group:"Results"`
}

// Target says whom to ask.
type Target struct {
	Backend         string   `flag:"backend" help:"protocol to speak: see the list below"`
	BaseURL         string   `flag:"base-url" help:"server, as http://host:port, https://..., or unix:///path.sock; overrides --host and --port"`
	Host            string   `flag:"host" help:"server's host"`
	Port            int      `flag:"port" help:"server's port"`
	Sim             string   `flag:"sim" help:"+ measure a simulated engine of this profile (tacho sim --list) instead of a server"`
	SimSpeedup      float64  `flag:"sim-speedup" help:"+ run the simulated engine so many times faster than the real thing"`
	Endpoint        string   `flag:"endpoint" help:"path to ask; by default the one the backend goes with"`
	Model           string   `flag:"model" help:"model to ask for; by default the first the server lists"`
	ServedModelName string   `flag:"served-model-name" help:"the model's name in requests, where the server calls it something else"`
	Tokenizer       string   `flag:"tokenizer" help:"tokenizer to count with; by default the server's own /tokenize"`
	TokenizerMode   string   `flag:"tokenizer-mode" help:"accepted for compatibility"`
	TrustRemoteCode bool     `flag:"trust-remote-code" help:"accepted for compatibility; tacho runs no code of a model"`
	SkipTokenizer   bool     `flag:"skip-tokenizer-init" help:"do not ask the server to count tokens: prompt lengths are estimates"`
	Header          []string `flag:"header" help:"further headers, as KEY=VALUE ..." secret:"value"`
	Insecure        bool     `flag:"insecure" help:"do not verify the server's certificate"`
	CACert          string   `flag:"ca-cert" help:"+ file of certificates to trust instead of the system's"`
	ClientCert      string   `flag:"client-cert" help:"+ file of the certificate to present to the server"`
	ClientKey       string   `flag:"client-key" help:"+ file of its key"`
	HTTP2           bool     `flag:"http2" help:"+ speak HTTP/2 (times are then of the read, not the kernel's)"`
	Clock           string   `flag:"clock" help:"+ what stamps arrivals: kernel, or read to see the difference"`
	RequestIDPrefix string   `flag:"request-id-prefix" help:"prefix of the x-request-id of each request; by default a random one"`
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
	ReadyCheck      Seconds     `flag:"ready-check-timeout-sec" help:"wait this long for the server to answer a request; 0 only checks that it can be reached"`
	RequestTimeout  Seconds     `flag:"request-timeout" help:"+ give a request up after this long"`
	ProbeRate       float64     `flag:"probe-request-rate" help:"one-token probes per second beside the load, reported apart"`
	Seed            *uint64     `flag:"seed" help:"seed of prompts and arrivals; by default another for each run and level, so that no cache knows them"`
	LoraModules     []string    `flag:"lora-modules" help:"adapters to spread the requests over, in place of the model"`
	LoraAssignment  string      `flag:"lora-assignment" help:"random or round-robin"`
	Profile         bool        `flag:"profile" help:"have the server profile the run (/start_profile, /stop_profile)"`
	DisableProgress bool        `flag:"disable-tqdm" help:"no progress line"`
}

// Body says how to ask.
type Body struct {
	backend.Sampling
	ExtraBody          JSONObject `flag:"extra-body" help:"JSON object merged into each request"`
	Logprobs           *int       `flag:"logprobs" help:"log probabilities to ask for with each token (completions)"`
	IgnoreEOS          bool       `flag:"ignore-eos" help:"have the server go on to the full output length (implied by the random dataset)"`
	UseBeamSearch      bool       `flag:"use-beam-search" help:"accepted for compatibility; vLLM ignores it too"`
	ChatTemplateKwargs JSONObject `flag:"chat-template-kwargs" help:"JSON object sent as chat_template_kwargs with chat requests"`
}

// Dataset says what to ask.
type Dataset struct {
	DatasetName      string `flag:"dataset-name" help:"where prompts come from: see the list below"`
	DatasetPath      string `flag:"dataset-path" help:"file with the data"`
	InputLen         *int   `flag:"input-len" help:"prompt tokens, whatever the dataset"`
	OutputLen        *int   `flag:"output-len" help:"output tokens, whatever the dataset"`
	RandomInputLen   int    `flag:"random-input-len" help:"random: prompt tokens"`
	RandomOutputLen  int    `flag:"random-output-len" help:"random: output tokens"`
	RandomRangeRatio Ratios `flag:"random-range-ratio" help:"random: lengths vary by this share up and down, or {\"input\":R,\"output\":R}"`
	RandomPrefixLen  int    `flag:"random-prefix-len" help:"random: further tokens in front that all prompts share"`
	RandomBatchSize  int    `flag:"random-batch-size" help:"accepted for compatibility: prompts in one request, for embeddings"`
	RandomVocab      int    `flag:"random-vocab-size" help:"+ random: token ids are drawn below this; it must not be above the model's vocabulary"`
	PromptText       bool   `flag:"prompt-text" help:"+ random: send text even where the backend takes token ids"`
	BookInputLen     int    `flag:"book-input-len" help:"+ book: prompt tokens"`
	BookOutputLen    int    `flag:"book-output-len" help:"+ book: output tokens"`
	CustomOutputLen  int    `flag:"custom-output-len" help:"custom: output tokens; -1 takes each line's output_tokens"`
	SkipChatTemplate bool   `flag:"skip-chat-template" help:"send prompts as they are, without the model's chat template"`
	DisableShuffle   bool   `flag:"disable-shuffle" help:"keep the order of the data"`
	NoOversample     bool   `flag:"no-oversample" help:"do not begin again when the data is used up"`
}

// Results says what to report, and where to keep it.
type Results struct {
	PercentileMetrics string   `flag:"percentile-metrics" help:"latencies to report: any of ttft,tpot,itl,e2el"`
	MetricPercentiles string   `flag:"metric-percentiles" help:"percentiles to report, as 50,90,99.9"`
	Goodput           []string `flag:"goodput" help:"what a good request keeps, as ttft:MS tpot:MS e2el:MS"`
	ReportStyle       string   `flag:"report-style" help:"+ layout of the report: current, 2025-10, 2025-09 or old"`
	SaveResult        bool     `flag:"save-result" help:"write a JSON file as vllm bench serve does"`
	SaveDetailed      bool     `flag:"save-detailed" help:"with every request's numbers and text in it"`
	AppendResult      bool     `flag:"append-result" help:"append it to the file as a line"`
	ResultDir         string   `flag:"result-dir" help:"directory of that file"`
	ResultFilename    string   `flag:"result-filename" help:"its name"`
	Metadata          []string `flag:"metadata" help:"further entries of that file, as KEY=VALUE ..."`
	PlotTimeline      bool     `flag:"plot-timeline" help:"draw every request on a time axis, into an HTML file"`
	PlotDatasetStats  bool     `flag:"plot-dataset-stats" help:"accepted for compatibility; the lengths are in tacho report --format json"`
	TimelineITL       string   `flag:"timeline-itl-thresholds" help:"milliseconds at which its colours change"`
	RunsDir           string   `flag:"runs-dir" help:"+ where runs are kept"`
}

// DefaultPlan is the plan of somebody who said nothing.
func DefaultPlan() Plan {
	return Plan{
		Target: Target{Backend: "openai", Host: "127.0.0.1", Port: 8000, TokenizerMode: "auto", Clock: "kernel", SimSpeedup: 1},
		Load: Load{
			NumPrompts: IntLevels{1000}, RequestRate: FloatLevels{math.Inf(1)}, Burstiness: 1,
			RequestTimeout: 6 * 3600, LoraAssignment: "random",
		},
		Dataset: Dataset{
			DatasetName: "random", RandomInputLen: 1024, RandomOutputLen: 128, RandomBatchSize: 1,
			BookInputLen: 1024, BookOutputLen: 150, CustomOutputLen: 256,
		},
		Results: Results{
			PercentileMetrics: "ttft,tpot,itl", MetricPercentiles: "99", ReportStyle: "current",
			TimelineITL: "25,50", RunsDir: "runs",
		},
	}
}
