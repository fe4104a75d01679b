// Package workload says what is sent: the datasets and traces, one to a file.
// Session i is a function of the seed and i alone.
package workload

import (
	"context"
	"math/rand/v2"
	"strings"

	"tacho"
	"tacho/internal/spelling"
	"tacho/token"
)

// Options are what the datasets are made from. Each dataset takes what it
// needs.
type Options struct {
	Seed     uint64
	Count    int           // sessions asked for; 0 is as many as there are
	Counter  token.Counter // counts prompts as the server will
	IDs      bool          // the backend takes token ids
	Unread   bool          // and nobody reads them
	Messages bool          // the backend takes messages
	Media    bool          // the backend takes messages with images, audio or video
	Audio    bool          // the backend transcribes audio
	Path     string        // of the data
	Files    []string      // of a dataset of the hub, on this machine
	Hub      string        // its name there
	Shuffle  bool
	Repeat   bool // begin again when the data is used up

	Input     Length // prompt tokens
	Output    Length // output tokens; a negative number leaves it to the data
	Scenario  Scenario
	InRatio   float64
	OutRatio  float64
	Prefix    int     // tokens of a prefix that prompts share
	Prefixes  int     // how many such prefixes there are; 0 is 1
	Zipf      float64 // exponent by which some prefixes are more popular; 0 is all alike
	Vocab     int     // token ids are drawn below this
	IgnoreEOS bool
	Batch     int    // of the prompts so many in one request, or documents to rank; 0 is 1
	NoRank    bool   // a query and its documents are not to be ranked, but embedded
	Category  string // keep only lines of this category
	Subset    string // of a dataset with several
	Distance  Range  // keep only edits of this normalised distance
	Column    string // that holds what is asked; empty finds it
	MostInput int    // tokens to which texts are cut; 0 is no end
	Framed    bool   // a prompt is counted with a chat template around it, though the backend takes no messages
	SendFiles bool   // files that a line names are sent along

	mostKept int64 // as the constant; 0 is that
	frame    int   // tokens that a chat template puts around a prompt, and counting around an answer

	Images ImageOptions
	Sounds SoundOptions
	Trace  TraceOptions
	Talk   TalkOptions

	// Exact makes prompt i with n tokens without counting; nil where nobody can.
	Exact func(i uint64, n int) string

	Progress func(done, all int) // told while prompts are made ready; may be nil
}

// A Workload is a source of sessions, with sessions to spare for warming up
// and something to say about itself. One that has arrivals of its own is also
// a tacho.Pacer.
type Workload interface {
	tacho.Source
	// Warmup is the i-th session that is like the others and never one of
	// them: a warm-up that sent a prompt of the run would fill a cache for it.
	Warmup(i uint64) (tacho.Session, error)
	// Notes are what a reader of the report must know. They are complete when
	// the last session was made.
	Notes() []string
}

// A Kind is one dataset.
type Kind struct {
	Name, Doc string
	Timed     bool // it has arrivals of its own
	Endless   bool // it has no end of its own
	Tokens    bool // its prompts are tokens and nothing else: they can be sent as ids
	Quotes    bool // later turns may quote the server's answers
	Scenarios bool // both its lengths can be given at once (--scenario)
	Chat      bool // its prompts are questions to a chat model: to a completions endpoint they go under the model's chat template, as the reference sends them
	ByLength  bool // it chooses prompts by how long they are
	Pairs     bool // a request is a query with documents: no conversation
	Hub       bool // its path may name a dataset of the hub, of which it reads several files
	New       func(ctx context.Context, o Options) (Workload, error)

	options  func(d *Dataset, o *Options)          // puts its own options into o; may be nil
	check    func(d *Dataset) error                // says what is wrong with them; may be nil
	requests func(d *Dataset, prompts int) (n int) // in how many requests so many prompts are sent; nil is as many

	// reads are what a file of its data holds in its first row, by name, or how
	// the file's name ends: all of one list.
	reads [][]string
}

// Kinds are all the datasets, in the order in which help prints them.
var Kinds = []Kind{
	random, book, custom, customImage, customAudio, sharegpt, sonnet, prefixRepetition, burstgpt, specBench, speedBench, huggingFace, randomMM, randomRerank,
	conversation, mooncake, azure, burstgptTrace, bailian, timedTrace, weka, otel, servegen,
}

// Find returns the dataset of that name.
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

// warmupBase numbers the warm-up sessions, far above any session of a run.
const warmupBase = uint64(1) << 62

// rngOf is the random stream of session i.
func rngOf(seed, i uint64) *rand.Rand { return rand.New(streamOf(seed, i)) }

func streamOf(seed, i uint64) *rand.PCG { return rand.NewPCG(seed, i^0x776f726b6c6f6164) }

// turnKey names the random stream of a turn of session i, or of one of its
// parts. It mixes both, for the numbers of warm-ups use all bits there are.
func turnKey(i uint64, turn int) uint64 {
	x := i*0x9e3779b97f4a7c15 + uint64(turn) + 1
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// single is the session of one request.
func single(i uint64, q tacho.Request) tacho.Session {
	q.Session = i
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: q}}}
}
