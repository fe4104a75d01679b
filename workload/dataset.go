package workload

// Dataset contains the dataset options of a plan: the name, the path and the options of
// all kinds. Every length in tokens may be a number or a distribution.
//
// Each field is an option, in the order of help. Its tags are the flag name, the default,
// the allowed words, the maximum, and the help text, which starts with + if vllm bench
// serve has no such flag. The options of a kind are in a struct in the file of the kind;
// the struct is embedded here.
type Dataset struct {
	DatasetName string   `flag:"dataset-name" list:"yes" default:"random" help:"source of the prompts, see the list below"`
	DatasetPath string   `flag:"dataset-path" help:"file or directory with the data, also .gz and .zst; hf also accepts owner/name on the hub, all accept hf://datasets/owner/name/file"`
	InputLen    Length   `flag:"input-len" help:"prompt tokens for any dataset: a number, or uniform(A,B), normal(MEAN,SD), lognormal(MEDIAN,SIGMA), gamma(SHAPE,MEAN), zipf(S,MAX), file(HISTOGRAM), optionally followed by [LOW,HIGH], like all lengths"`
	OutputLen   Length   `flag:"output-len" help:"output tokens for any dataset"`
	MaxModelLen int      `flag:"max-model-len" most:"tokens" help:"+ leave out requests (or conversations) with more prompt and output tokens than this; generated prompts are replaced"`
	Scenario    Scenario `flag:"scenario" help:"+ prompt and output lengths together: D(100,50), N(480,240)/(300,150), or 256|32,128|16:40;1024,64:60"`
	randomFlags
	bookFlags
	customFlags
	shareGPTFlags
	sonnetFlags
	repetitionFlags
	speculativeFlags
	hubFlags
	questionFlags
	mediaFlags
	Structured        Structured `flag:"structured-output" help:"+ required form of outputs (vLLM): json:SCHEMA, regex:PATTERN, grammar:EBNF or choice:A|B; @FILE reads it from a file"`
	StructuredRatio   float64    `flag:"structured-output-ratio" default:"1" help:"fraction of the requests with --structured-output"`
	SkipChatTemplate  bool       `flag:"skip-chat-template" help:"send prompts without the model's chat template"`
	DisableShuffle    bool       `flag:"disable-shuffle" help:"keep the order of the data"`
	NoOversample      bool       `flag:"no-oversample" help:"stop at the end of the data instead of repeating it"`
	BadLines          string     `flag:"bad-lines" default:"stop" words:"stop skip" help:"+ stop at an invalid line, or skip it and count it in the report"`
	Mix               []string   `flag:"mix" help:"+ mix of workloads, each a list of OPTION=VALUE: weight=3 label=chat model=adapter priority=1 header.x-tier=gold and any dataset option, such as dataset-name=random random-input-len=100" secret:"mix"`
	conversationFlags `group:"Conversations"`
	traceFlags        `group:"Traces"`
}

// Options returns the options of this kind. IgnoreEOS is set if the outputs should have
// exactly the requested length.
func (k *Kind) Options(d *Dataset) Options {
	o := Options{
		Path: d.DatasetPath, Shuffle: !d.DisableShuffle, Scenario: d.Scenario, Trace: d.trace(), Conversation: d.conversation(),
		Zipf: d.RandomPrefixZipf, SendFiles: d.CustomSendFiles, IgnoreEOS: k.Timed,
	}
	o.Trace.SkipBad = d.BadLines == "skip"
	if k.options != nil {
		k.options(d, &o)
	}
	return o
}

// Requests returns the number of requests needed to send prompts.
func (k *Kind) Requests(d *Dataset, prompts int) int {
	if k.requests == nil || prompts < 1 {
		return prompts
	}
	return k.requests(d, prompts)
}

// Validate checks the options of all kinds.
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
