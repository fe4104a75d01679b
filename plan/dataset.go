package plan

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tacho/workload"
)

// Dataset says what to ask. Wherever it asks for a length in tokens, a number
// or a distribution of numbers can be given: see workload.Length.
type Dataset struct {
	DatasetName      string              `flag:"dataset-name" help:"where prompts come from: see the list below"`
	DatasetPath      string              `flag:"dataset-path" help:"file or directory with the data; .gz and .zst are unpacked; hf also takes owner/name on the hub, all take hf://datasets/owner/name/file"`
	InputLen         workload.Length     `flag:"input-len" help:"prompt tokens, for any dataset; like all lengths a number, or uniform(A,B), normal(MEAN,SD), lognormal(MEDIAN,SIGMA), gamma(SHAPE,MEAN), zipf(S,MAX), file(HISTOGRAM), with [LOW,HIGH] after it"`
	OutputLen        workload.Length     `flag:"output-len" help:"output tokens, for any dataset"`
	Scenario         workload.Scenario   `flag:"scenario" help:"+ both lengths at once: D(100,50), N(480,240)/(300,150), or 256|32,128|16:40;1024,64:60"`
	RandomInputLen   workload.Length     `flag:"random-input-len" help:"random: prompt tokens"`
	RandomOutputLen  workload.Length     `flag:"random-output-len" help:"random: output tokens"`
	RandomRangeRatio Ratios              `flag:"random-range-ratio" help:"random: lengths vary by this share up and down, or {\"input\":R,\"output\":R}"`
	RandomPrefixLen  int                 `flag:"random-prefix-len" help:"random: extra tokens at the start that all prompts share"`
	RandomPrefixes   int                 `flag:"random-num-prefixes" help:"+ random: number of different shared prefixes; each prompt has one of them"`
	RandomPrefixZipf float64             `flag:"random-prefix-zipf" help:"+ random: Zipf exponent that makes some prefixes more popular; 0 makes all equally popular"`
	RandomBatchSize  int                 `flag:"random-batch-size" help:"random: prompts in one request, for embeddings; random_rerank: documents in one request"`
	NoReranker       bool                `flag:"no-reranker" help:"random_rerank: send query and documents together to an embeddings endpoint"`
	RandomVocab      int                 `flag:"random-vocab-size" help:"+ random: draw token ids below this; it must not exceed the model's vocabulary"`
	PromptText       bool                `flag:"prompt-text" help:"+ random: send text even where the backend takes token ids"`
	BookInputLen     workload.Length     `flag:"book-input-len" help:"+ book: prompt tokens"`
	BookOutputLen    workload.Length     `flag:"book-output-len" help:"+ book: output tokens"`
	CustomOutputLen  workload.Length     `flag:"custom-output-len" help:"custom, custom_image, custom_audio: output tokens; -1 takes each line's output_tokens"`
	CustomSendFiles  bool                `flag:"custom-ensure-client-side-data" help:"custom_image: send the contents of files, instead of their names"`
	ShareGPTOutput   workload.Length     `flag:"sharegpt-output-len" help:"sharegpt: output tokens; by default the length of the answer in the data"`
	SonnetInputLen   workload.Length     `flag:"sonnet-input-len" help:"sonnet: most prompt tokens"`
	SonnetOutputLen  workload.Length     `flag:"sonnet-output-len" help:"sonnet: output tokens"`
	SonnetPrefixLen  int                 `flag:"sonnet-prefix-len" help:"sonnet: prompt tokens that all prompts share (part of the input length)"`
	RepetitionPrefix int                 `flag:"prefix-repetition-prefix-len" help:"prefix_repetition: tokens of a prefix"`
	RepetitionSuffix workload.Length     `flag:"prefix-repetition-suffix-len" help:"prefix_repetition: tokens after the prefix"`
	RepetitionCount  int                 `flag:"prefix-repetition-num-prefixes" help:"prefix_repetition: number of different prefixes"`
	RepetitionOutput workload.Length     `flag:"prefix-repetition-output-len" help:"prefix_repetition: output tokens"`
	SpecOutputLen    workload.Length     `flag:"spec-bench-output-len" help:"spec_bench: output tokens"`
	SpecCategory     string              `flag:"spec-bench-category" help:"spec_bench: only questions of this category"`
	SpeedSubset      string              `flag:"speed-bench-dataset-subset" help:"speed_bench: file in its directory, without .jsonl"`
	SpeedOutputLen   workload.Length     `flag:"speed-bench-output-len" help:"speed_bench: output tokens"`
	SpeedCategory    string              `flag:"speed-bench-category" help:"speed_bench: only questions of this category"`
	HFSubset         string              `flag:"hf-subset" help:"hf: subset of a dataset on the hub; of local files, those with this in their names"`
	HFSplit          string              `flag:"hf-split" help:"hf: split, such as train or test; of local files, those with this in their names"`
	HFName           string              `flag:"hf-name" help:"hf: the dataset's name on the hub, if the path is local; prompts are then built as vLLM builds them"`
	HFOutputLen      workload.Length     `flag:"hf-output-len" help:"hf: output tokens; by default what vLLM uses for this dataset, else 256, and 1024 for transcription"`
	ASRMinS          float64             `flag:"asr-min-audio-len-sec" help:"hf: leave out audio shorter than this, in seconds"`
	ASRMaxS          float64             `flag:"asr-max-audio-len-sec" help:"hf: leave out audio longer than this, in seconds"`
	NoStream         bool                `flag:"no-stream" help:"hf: download all files of the split; by default only as many as are needed"`
	EditMin          float64             `flag:"blazedit-min-distance" help:"hf: in datasets of edits, the smallest edit distance to use"`
	EditMax          float64             `flag:"blazedit-max-distance" help:"hf: in datasets of edits, the largest edit distance to use"`
	BFCLCategories   string              `flag:"bfcl-categories" help:"hf: categories of the Berkeley function calling leaderboard, one file each"`
	MMItems          int                 `flag:"random-mm-base-items-per-request" help:"random_mm: images and videos in a request"`
	MMItemsRatio     float64             `flag:"random-mm-num-mm-items-range-ratio" help:"random_mm: their number varies by this share up and down"`
	MMLimit          JSONObject          `flag:"random-mm-limit-mm-per-prompt" help:"random_mm: most images and most videos in a request; a kind not named keeps its default"`
	MMBuckets        workload.Buckets    `flag:"random-mm-bucket-config" help:"random_mm: sizes and their shares, as {(HEIGHT,WIDTH,FRAMES):SHARE,...}; one frame is an image, more are a video of 30 a second"`
	MMAudioMS        workload.Length     `flag:"random-mm-audio-ms" help:"+ random_mm: milliseconds of audio in each request; openai-audio sends only this"`
	MMChat           bool                `flag:"enable-multimodal-chat" help:"accepted for compatibility; images and audio go into messages if the backend supports it"`
	Structured       workload.Structured `flag:"structured-output" help:"+ required form of outputs (vLLM): json:SCHEMA, regex:PATTERN, grammar:EBNF or choice:A|B; @FILE reads it from a file"`
	StructuredRatio  float64             `flag:"structured-output-ratio" help:"share of the requests with that requirement"`
	SkipChatTemplate bool                `flag:"skip-chat-template" help:"send prompts as they are, without the model's chat template"`
	DisableShuffle   bool                `flag:"disable-shuffle" help:"keep the order of the data"`
	NoOversample     bool                `flag:"no-oversample" help:"do not start again when the data is used up"`
	BadLines         string              `flag:"bad-lines" help:"+ what to do with a line that cannot be read: stop, or skip it and count it in the report"`
	Mix              []string            `flag:"mix" help:"+ several workloads at once, each a list of OPTION=VALUE: weight=3 label=chat model=adapter priority=1 header.x-tier=gold and any dataset option, such as dataset-name=random random-input-len=100" secret:"mix"`
}

// Talk says how conversations go.
type Talk struct {
	Turns         workload.Length `flag:"turns" help:"+ conversation: number of turns"`
	TurnInputLen  workload.Length `flag:"turn-input-len" help:"+ conversation: prompt tokens that each turn adds"`
	FirstInputLen workload.Length `flag:"first-turn-input-len" help:"+ conversation: prompt tokens of the first turn, if different"`
	TurnOutputLen workload.Length `flag:"turn-output-len" help:"+ conversation: output tokens of each turn; with a file, -1 takes the length of the answer in it"`
	ThinkMS       workload.Length `flag:"think-time-ms" help:"+ conversation, custom: pause before each turn but the first, in milliseconds"`
	SystemLen     int             `flag:"system-prompt-len" help:"+ conversation: tokens of the system prompt"`
	Systems       int             `flag:"num-system-prompts" help:"+ conversation: number of different system prompts; each conversation has one of them (--random-prefix-zipf sets how popular)"`
	ToolTurns     float64         `flag:"tool-turns" help:"+ conversation: share of the turns after the first that carry the result of a tool call"`
	SessionHeader string          `flag:"session-header" help:"+ header that carries the conversation's number, for routers that keep a conversation on one server"`
	SubAgents     int             `flag:"sub-agents" help:"+ conversation: sub-agents that run side by side after the first turn; the second turn waits for all of them"`
}

// Trace says how a trace is replayed.
type Trace struct {
	SelfTimed      bool            `flag:"self-timed" help:"replay a trace at its own times (the default unless --request-rate or a ramp is given)"`
	NoSelfTimed    bool            `flag:"no-self-timed" help:"ignore the times of a trace: send all requests at once, up to --max-concurrency"`
	TraceSpeedup   float64         `flag:"trace-speedup" help:"+ replay the trace this many times faster"`
	TraceWindow    workload.Window `flag:"trace-window" help:"+ replay only this part, by the time since its first line: 60-120 (seconds), 10m-20m, 1h-"`
	TraceLimit     int             `flag:"trace-limit" help:"+ replay at most this many requests (weka and otel: sessions)"`
	TraceBlock     int             `flag:"trace-block-size" help:"+ tokens per hash id; by default that of the format"`
	TraceSessions  bool            `flag:"trace-sessions" help:"+ make a request wait for the one before it in its conversation (bailian, or a session_id); the whole trace is then read before the start"`
	TimedChunk     int             `flag:"timed-trace-chunk-hash-size" help:"timed_trace: tokens per hash id"`
	TimedUnit      float64         `flag:"timed-trace-sec-multiplier" help:"timed_trace: seconds in one unit of its times"`
	TimedTimestamp string          `flag:"timed-trace-label-timestamp" help:"timed_trace: name of its field for the time"`
	TimedInput     string          `flag:"timed-trace-label-input-length" help:"timed_trace: name of its field for prompt tokens"`
	TimedOutput    string          `flag:"timed-trace-label-output-length" help:"timed_trace: name of its field for output tokens"`
	TimedHashes    string          `flag:"timed-trace-label-hash-ids" help:"timed_trace: name of its field for hash ids"`
}

// MostMedia is how many items of each sort random_mm puts in a request at
// most, as in the reference.
var MostMedia = JSONObject{"image": 255.0, "video": 1.0}

func defaultDataset() Dataset {
	d := Dataset{
		DatasetName: "random", RandomInputLen: workload.Fixed(1024), RandomOutputLen: workload.Fixed(128), RandomBatchSize: 1,
		BookInputLen: workload.Fixed(1024), BookOutputLen: workload.Fixed(150), CustomOutputLen: workload.Fixed(256),
		SonnetInputLen: workload.Fixed(550), SonnetOutputLen: workload.Fixed(150), SonnetPrefixLen: 200,
		RepetitionPrefix: 256, RepetitionSuffix: workload.Fixed(256), RepetitionCount: 10, RepetitionOutput: workload.Fixed(128),
		SpecOutputLen: workload.Fixed(256), SpeedSubset: "qualitative", SpeedOutputLen: workload.Fixed(4096), EditMax: 1, ASRMaxS: math.Inf(1), BFCLCategories: "simple,live_simple,multiple",
		MMItems: 1, MMLimit: maps.Clone(MostMedia), StructuredRatio: 1, BadLines: "stop",
	}
	if err := d.MMBuckets.UnmarshalText([]byte("{(256,256,1):0.5,(720,1280,1):0.5,(720,1280,16):0.0}")); err != nil {
		panic(err) // it is written above
	}
	return d
}

func defaultTalk() Talk {
	return Talk{Turns: workload.Fixed(4), TurnInputLen: workload.Fixed(128), TurnOutputLen: workload.Fixed(128)}
}

func defaultTrace() Trace {
	return Trace{
		SelfTimed: true, TraceSpeedup: 1, TimedChunk: 16, TimedUnit: 1, TimedTimestamp: "timestamp", TimedInput: "input_length",
		TimedOutput: "output_length", TimedHashes: "hash_ids",
	}
}

// kinds are the datasets of the plan: one, or those of its mix.
func (p *Plan) kinds() ([]workload.Kind, error) {
	names := []string{p.DatasetName}
	if len(p.Mix) > 0 {
		classes, err := p.Classes()
		if err != nil {
			return nil, err
		}
		names = nil
		for _, c := range classes {
			names = append(names, c.Plan.DatasetName)
		}
	}
	var out []workload.Kind
	for _, name := range names {
		k, err := workload.Find(name)
		if err != nil {
			return nil, fmt.Errorf("--dataset-name: %w", err)
		}
		out = append(out, k)
	}
	return out, nil
}

// Datasets names the datasets of the plan.
func (p *Plan) Datasets() string {
	kinds, _ := p.kinds() // a plan that cannot be read has none
	var names []string
	for _, k := range kinds {
		if !slices.Contains(names, k.Name) {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}

// Every says whether all datasets of the plan have a property; a plan that
// cannot be read has none.
func (p *Plan) Every(has func(workload.Kind) bool) bool {
	kinds, err := p.kinds()
	return err == nil && !slices.ContainsFunc(kinds, func(k workload.Kind) bool { return !has(k) })
}

// Quotes says whether a request of the plan may quote an answer.
func (p *Plan) Quotes() bool { return !p.Every(func(k workload.Kind) bool { return !k.Quotes }) }

// OwnTimes says whether arrivals are the trace's own.
func (p *Plan) OwnTimes() bool {
	rated := p.Given("request-rate") || p.RampUpStrategy != ""
	return p.SelfTimed && !p.NoSelfTimed && len(p.Mix) == 0 && !rated && p.Every(func(k workload.Kind) bool { return k.Timed })
}
