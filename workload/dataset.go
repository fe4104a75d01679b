package workload

// A Dataset is what a plan says about the data: which it is, and the options of
// all kinds. Wherever it asks for a length in tokens, a number or a
// distribution of numbers can be given.
//
// Each field is an option, in the order of help. Its tags are the name of its
// flag, its default, the words it takes, the most that it may ask for, and its
// help, with a + in front where vllm bench serve has no such flag. A kind that has
// options keeps them in a struct in its own file; the struct is named here.
type Dataset struct {
	DatasetName string   `flag:"dataset-name" list:"yes" default:"random" help:"where prompts come from: see the list below"`
	DatasetPath string   `flag:"dataset-path" help:"file or directory with the data; .gz and .zst are unpacked; hf also takes owner/name on the hub, all take hf://datasets/owner/name/file"`
	InputLen    Length   `flag:"input-len" help:"prompt tokens, for any dataset; like all lengths a number, or uniform(A,B), normal(MEAN,SD), lognormal(MEDIAN,SIGMA), gamma(SHAPE,MEAN), zipf(S,MAX), file(HISTOGRAM), with [LOW,HIGH] after it"`
	OutputLen   Length   `flag:"output-len" help:"output tokens, for any dataset"`
	MaxModelLen int      `flag:"max-model-len" most:"tokens" help:"+ leave out requests whose prompt and output together have more tokens than this; of a conversation all turns"`
	Scenario    Scenario `flag:"scenario" help:"+ both lengths at once: D(100,50), N(480,240)/(300,150), or 256|32,128|16:40;1024,64:60"`
	randomFlags
	bookFlags
	customFlags
	shareGPTFlags
	sonnetFlags
	repetitionFlags
	speculativeFlags
	hubFlags
	mediaFlags
	Structured       Structured `flag:"structured-output" help:"+ required form of outputs (vLLM): json:SCHEMA, regex:PATTERN, grammar:EBNF or choice:A|B; @FILE reads it from a file"`
	StructuredRatio  float64    `flag:"structured-output-ratio" default:"1" help:"share of the requests with that requirement"`
	SkipChatTemplate bool       `flag:"skip-chat-template" help:"send prompts as they are, without the model's chat template"`
	DisableShuffle   bool       `flag:"disable-shuffle" help:"keep the order of the data"`
	NoOversample     bool       `flag:"no-oversample" help:"do not start again when the data is used up"`
	BadLines         string     `flag:"bad-lines" default:"stop" words:"stop skip" help:"+ what to do with a line that cannot be read: stop, or skip it and count it in the report"`
	Mix              []string   `flag:"mix" help:"+ several workloads at once, each a list of OPTION=VALUE: weight=3 label=chat model=adapter priority=1 header.x-tier=gold and any dataset option, such as dataset-name=random random-input-len=100" secret:"mix"`
	talkFlags        `group:"Conversations"`
	traceFlags       `group:"Traces"`
}

// Options are what a dataset of this kind takes from the plan. IgnoreEOS says
// that its outputs should be exactly as long as asked for.
func (k *Kind) Options(d *Dataset) Options {
	o := Options{
		Path: d.DatasetPath, Shuffle: !d.DisableShuffle, Scenario: d.Scenario, Trace: d.trace(), Talk: d.talk(),
		Zipf: d.RandomPrefixZipf, SendFiles: d.CustomSendFiles, IgnoreEOS: k.Timed,
	}
	o.Trace.SkipBad = d.BadLines == "skip"
	if k.options != nil {
		k.options(d, &o)
	}
	return o
}

// Requests is in how many requests so many prompts are sent.
func (k *Kind) Requests(d *Dataset, prompts int) int {
	if k.requests == nil || prompts < 1 {
		return prompts
	}
	return k.requests(d, prompts)
}

// Validate says what is wrong with the options, whichever kind they are of.
func (d *Dataset) Validate() error {
	for _, k := range Kinds {
		if k.check == nil {
			continue
		}
		if err := k.check(d); err != nil {
			return err
		}
	}
	return d.traceFlags.check()
}
