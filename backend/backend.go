// Package backend holds the clients of the protocols, one to a file. A client
// encodes a request before it is due, sends it, and marks in the record what
// came back and when; it computes nothing from that.
//
// What all of them share, the exchange of one request for a stream of events,
// is in stream.go and reader.go. What sets a protocol apart is a Kind: how a
// request is encoded and how one event is read.
package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tacho"
	"tacho/internal/redact"
	"tacho/internal/spelling"
	"tacho/transport"
)

// Kinds are the protocols, in the order in which help shows them.
var Kinds = []Kind{
	vllm, openAI, openAIChat, openAIResponses, openAIAudio, sglangNative, textGeneration, trtllm, tritonTRT, tritonVLLM, llamaCPP,
	ollamaGenerate, ollamaChat, lmdeployCompletions, lmdeployGenerate, deepspeedMII, deepspeedMIIGenerate, transformersServe, anthropicMessages, geminiStream,
	openAIEmbeddings, openAIEmbeddingsChat, openAIEmbeddingsCLIP, openAIEmbeddingsVLM2Vec, infinityEmbeddings, infinityEmbeddingsCLIP, vllmPooling, vllmRerank,
}

// A Kind is one protocol a server can be spoken to in.
type Kind struct {
	Name        string
	Aliases     []string // other names people know it by
	Doc         string   // one line for help
	Endpoint    string   // path of its requests; {model} stands for the model's name
	Port        int      // where its server listens if it is not told
	MetricsPath string   // where its server shows its metrics; empty if it has none
	Takes       Forms
	ExactLength bool // it has a field that makes the server generate as many tokens as asked
	Pools       bool // an answer is one document, and no tokens come out

	others   []string // further paths that it goes with
	framing  framing
	unmarked bool        // streams just end, unless an event says that there will be an end mark
	keyName  string      // header of the API key; empty is Authorization, as a bearer token
	header   http.Header // that the protocol itself asks for
	signs    []sign      // by which Detect knows the server
	about    string      // page on which the server tells its version and settings; empty if it has none
	owner    string      // whom its models belong to, where that is not Name
	// rather names another Kind that the server, known by its signs, speaks
	// better, and says by what; nil if it does not.
	rather func(ctx context.Context, c *client) (*Kind, string)

	encode  func(o *Options, r *tacho.Request) ([]byte, error)
	decoder func(o *Options) decoder
	// inputs is how many texts or documents a request has; nil is always one.
	inputs func(r *tacho.Request) int
	// contentType is the type of an encoded body; nil is JSON.
	contentType func(body []byte) string
	// live are the byte strings of which an event with a token holds one,
	// followed by anything but a closing quote.
	live    []string
	carries []string // options it has a place for, by the names of Options.given
	// What the server can be asked. All but models may be nil: it cannot.
	models func(ctx context.Context, c *client) ([]Model, error)
	count  func(ctx context.Context, c *client, in *tacho.Input) (int, error)
	flush  func(ctx context.Context, c *client) error
}

// Forms are the forms of tacho.Input. Media is a message with images, audio
// or video, which a protocol may support although it has no conversations.
type Forms struct{ Text, IDs, Messages, Media, Audio bool }

// Options are what the requests of one backend have in common.
type Options struct {
	Client   *transport.Client
	Endpoint string      // path; empty is the Kind's
	Model    string      // as the server knows it; empty is the server's own
	APIKey   string      // sent where the protocol wants it
	Header   http.Header // sent with every request
	Sampling Sampling
	Extras   Extras
	Logprobs *int            // log probabilities of so many alternatives for each token
	Extra    map[string]any  // merged over the body; Request.Extra wins over it
	KeepText bool            // put what was generated into Record.Text
	OnToken  OnToken         // may be nil
	Secrets  *redact.Secrets // removed from error texts of the server; those of Header are added

	atOpenAI bool // the server is OpenAI's own
}

// Sampling is how the server is to choose tokens. A nil is not sent.
type Sampling struct {
	Temperature       *float64 `flag:"temperature" help:"sampling temperature; unset leaves it to the server"`
	TopP              *float64 `flag:"top-p" help:"nucleus sampling"`
	TopK              *int     `flag:"top-k" help:"sample from this many most likely tokens"`
	MinP              *float64 `flag:"min-p" help:"lowest probability of a token, relative to the most likely one"`
	FrequencyPenalty  *float64 `flag:"frequency-penalty" help:"penalty for frequent tokens"`
	PresencePenalty   *float64 `flag:"presence-penalty" help:"penalty for tokens that already occurred"`
	RepetitionPenalty *float64 `flag:"repetition-penalty" help:"penalty for repetition"`
}

// Extras are what some servers can be asked for beyond tokens.
type Extras struct {
	CacheSalt       string `flag:"cache-salt" help:"+ vLLM: separate the prefix cache by this salt; unique gives each request its own, so the cache never helps"`
	Priority        *int   `flag:"priority" help:"+ vLLM: priority of the requests; lower runs first (the server needs --scheduling-policy priority)"`
	ContinuousUsage bool   `flag:"continuous-usage-stats" help:"+ vLLM: ask for the token count in each event, so that events with several tokens are counted exactly"`
	ReturnTokenIDs  bool   `flag:"return-token-ids" help:"+ vLLM: ask for token ids in each event, so that tokens are counted exactly"`
}

// given are the names of the options that were set and that not every protocol
// has a place for.
func (o *Options) given() []string {
	sampling := o.Sampling.fields(allSampling...)
	names := slices.DeleteFunc(slices.Clone(allSampling), func(name string) bool { return sampling[name] == nil })
	for _, f := range []struct {
		name string
		set  bool
	}{
		{"logprobs", o.Logprobs != nil},
		{"cache_salt", o.Extras.CacheSalt != ""},
		{"priority", o.Extras.Priority != nil},
		{"continuous_usage_stats", o.Extras.ContinuousUsage},
		{"return_token_ids", o.Extras.ReturnTokenIDs},
	} {
		if f.set {
			names = append(names, f.name)
		}
	}
	return names
}

// Names of options, for Kind.carries.
var (
	allSampling = []string{"temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"}
	allOptions  = append([]string{"logprobs", "cache_salt", "priority", "continuous_usage_stats", "return_token_ids"}, allSampling...)
)

// A Server answers questions about itself. Every backend made by a Kind is one.
type Server interface {
	// Models lists what the server serves.
	Models(ctx context.Context) ([]Model, error)
	// CountTokens is how many prompt tokens the server would see in a text, or
	// in messages where the backend takes them. It fails with ErrNoEndpoint
	// where the server cannot be asked.
	CountTokens(ctx context.Context, in *tacho.Input) (int, error)
	// FlushCache makes the server forget the prompts it has seen. It fails with
	// ErrNoEndpoint where the server cannot be told to.
	FlushCache(ctx context.Context) error
	// About is what the server says of itself; of several servers, each.
	About(ctx context.Context) []About
}

// New returns a backend that speaks the protocol to the server of o.Client.
func (k Kind) New(o Options) (tacho.Backend, error) {
	if o.Client == nil {
		return nil, fmt.Errorf("backend %s: no transport", k.Name)
	}
	for _, name := range o.given() {
		if !slices.Contains(k.carries, name) {
			return nil, fmt.Errorf("backend %s: the server does not know %s: leave it out", k.Name, name)
		}
	}
	c, err := newClient(k, o)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", k.Name, err)
	}
	return c, nil
}

// Find returns the Kind of a name or an alias.
func Find(name string) (Kind, error) {
	want := strings.ToLower(strings.TrimSpace(name))
	var names, all []string
	for _, k := range Kinds {
		known := append([]string{k.Name}, k.Aliases...)
		if slices.Contains(known, want) {
			return k, nil
		}
		names, all = append(names, k.Name), append(all, known...)
	}
	return Kind{}, fmt.Errorf("unknown backend %q%s (have %s)", name, spelling.Meant(want, all), strings.Join(names, ", "))
}

// accepts complains about an input the protocol cannot carry.
func (k *Kind) accepts(in *tacho.Input) error {
	given := 0
	for _, has := range []bool{in.Text != "", in.IDs != nil, in.Messages != nil, in.Audio != nil} {
		if has {
			given++
		}
	}
	switch {
	case given == 0:
		return errors.New("the request has no input: give it a text, token ids, messages or a sound")
	case given > 1:
		return errors.New("the request has its input in several forms: give it one of text, token ids, messages and a sound")
	case in.IDs != nil && !k.Takes.IDs:
		return fmt.Errorf("%s cannot send token ids: use a backend that can (%s), or a workload of text", k.Name, takers(func(f Forms) bool { return f.IDs }))
	case in.Audio != nil && !k.Takes.Audio:
		return fmt.Errorf("%s cannot transcribe audio: use a backend that can (%s), or a workload of text", k.Name, takers(func(f Forms) bool { return f.Audio }))
	case in.Messages != nil && !k.Takes.Media && slices.ContainsFunc(in.Messages, func(m tacho.Message) bool { return m.HasMedia() }):
		return fmt.Errorf("%s cannot send images, audio or video: use a backend that can (%s), or a workload of text", k.Name, takers(func(f Forms) bool { return f.Media }))
	case in.Messages != nil && !k.Takes.Messages && (len(in.Messages) > 1 || !k.Takes.Media || !in.Messages[0].HasMedia()):
		return fmt.Errorf("%s cannot send messages: use a backend that can (%s), or a workload of text%s", k.Name, takers(func(f Forms) bool { return f.Messages }), k.instead())
	case in.Text != "" && !k.Takes.Text:
		return fmt.Errorf("%s cannot send plain text: use a backend that can (%s)%s", k.Name, takers(func(f Forms) bool { return f.Text }), k.instead())
	}
	return nil
}

// instead suggests workloads of sound for a backend that sends nothing else.
func (k *Kind) instead() string {
	if !k.Takes.Audio {
		return ""
	}
	return ", or a workload of sounds (--dataset-name custom_audio, hf with an audio column, or random_mm with --random-mm-audio-ms)"
}

// takers are the names of the kinds that take a form of input.
func takers(takes func(Forms) bool) string {
	var names []string
	for _, k := range Kinds {
		if takes(k.Takes) {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}
