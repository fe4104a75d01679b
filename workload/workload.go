// Package workload generates the requests of a run. It contains the datasets and traces,
// one per file. Session i depends only on the seed and i.
package workload

import (
	"context"
	"math/rand/v2"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/token"
)

// Options are the inputs of all datasets. Each dataset uses the options it needs.
type Options struct {
	Seed     uint64
	Count    int           // sessions requested; 0 means all
	Counter  token.Counter // counts prompts as the server does
	IDs      bool          // the backend accepts token ids
	Messages bool          // the backend accepts messages
	Media    bool          // the backend accepts messages with images, audio or video
	Audio    bool          // the backend transcribes audio
	Path     string        // path of the data
	Files    []string      // local files of a hub dataset
	Hub      string        // name of the dataset on the hub
	Shuffle  bool
	Repeat   bool // start again at the end of the data

	Input     Length // prompt tokens
	Output    Length // output tokens; negative means the length in the data
	Scenario  Scenario
	InRatio   float64
	OutRatio  float64
	Prefix    int     // tokens of the prefix shared by prompts
	Prefixes  int     // number of different prefixes; 0 means 1
	Zipf      float64 // exponent of prefix popularity; 0 means uniform
	Vocab     int     // upper limit of random token ids
	IgnoreEOS bool
	Batch     int    // prompts per request, or documents to rank; 0 means 1
	NoRank    bool   // embed the query and its documents instead of ranking them
	Category  string // use only lines of this category
	Subset    string // subset of the dataset
	Distance  Range  // use only edits in this range of normalised distance
	Column    string // prompt column; if empty, found by name
	MaxInput  int    // maximum prompt tokens, longer texts are cut; 0 means unlimited
	Templated bool   // count prompts with a chat template although the backend accepts no messages
	SendFiles bool   // send the files named in a line

	maxKept        int64 // overrides the constant maxKept in tests; 0 means default
	templateTokens int   // tokens a chat template adds to a prompt, and the counter to an answer

	Images       ImageOptions
	AudioLimits  AudioLimits
	Trace        TraceOptions
	Conversation ConversationOptions

	// Exact returns prompt i with exactly n tokens without counting. It is nil if the
	// tokenizer does not allow this.
	Exact func(i uint64, n int) string

	Progress func(done, all int) // called while prompts are prepared; may be nil
}

// Workload is a source of sessions with extra sessions for warm-up and notes for the
// report. A workload with its own arrival times also implements tacho.Pacer.
type Workload interface {
	tacho.Source
	// Warmup returns the i-th warm-up session. It is similar to the sessions of the run
	// but never one of them, because sending a prompt of the run would fill the server's
	// cache.
	Warmup(i uint64) (tacho.Session, error)
	// Notes returns remarks for the reader of the report. They are complete after the
	// last session was made.
	Notes() []string
}

// Kind is one dataset.
type Kind struct {
	Name, Doc string
	Timed     bool // has its own arrival times
	Endless   bool // never ends
	Tokens    bool // prompts are only tokens and can be sent as ids
	Quotes    bool // later turns may quote the server's answers
	Scenarios bool // supports --scenario
	Chat      bool // prompts are questions for a chat model: a completions endpoint gets them in the model's chat template, as in the reference
	ByLength  bool // selects prompts by length
	Pairs     bool // a request is a query with documents, not a conversation
	Hub       bool // the path may be a dataset on the hub with several files
	// DefaultHub is the dataset on the hub if no path is given.
	DefaultHub string
	New        func(ctx context.Context, o Options) (Workload, error)

	options  func(d *Dataset, o *Options)          // sets its own options in o; may be nil
	check    func(d *Dataset) error                // validates its options; may be nil
	requests func(d *Dataset, prompts int) (n int) // returns the number of requests for prompts; nil means one each

	// reads lists the columns in the first row of its files, or the extension of the file
	// name. A file matches if it contains all names of one list.
	reads [][]string
}

// Kinds are all datasets in the order of help.
var Kinds = []Kind{
	random, book, custom, customImage, customAudio, sharegpt, sonnet, prefixRepetition, burstgpt, specBench, speedBench, huggingFace, randomMM, randomRerank,
	conversation, mooncake, azure, burstgptTrace, bailian, timedTrace, weka, otel, servegen,
	gsm8k, arithmetic, bfclQuestions,
}

// Find returns the dataset with the given name.
func Find(name string) (Kind, error) {
	var names []string
	for _, k := range Kinds {
		if k.Name == strings.ReplaceAll(name, "-", "_") || k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return Kind{}, spelling.Unknown("dataset", name, names)
}

// warmupBase is the number of the first warm-up session, above all sessions of a run.
const warmupBase = uint64(1) << 62

// rngOf returns the random stream of session i.
func rngOf(seed, i uint64) *rand.Rand { return rand.New(streamOf(seed, i)) }

func streamOf(seed, i uint64) *rand.PCG { return rand.NewPCG(seed, i^0x776f726b6c6f6164) }

// turnKey returns the key of the random stream for a turn of session i, or for a part of
// it. It mixes both numbers because warm-up sessions use all 64 bits.
func turnKey(i uint64, turn int) uint64 {
	x := i*0x9e3779b97f4a7c15 + uint64(turn) + 1
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// setExtra sets a field of the body in a copy of the request's extra fields, which sessions may share.
func setExtra(q *tacho.Request, name string, value any) {
	extra := map[string]any{name: value}
	for k, v := range q.Extra {
		if k != name {
			extra[k] = v
		}
	}
	q.Extra = extra
}

// single returns a session with one request.
func single(i uint64, q tacho.Request) tacho.Session {
	q.Session = i
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: q}}}
}
