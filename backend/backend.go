// Package backend implements the client side of each protocol, one protocol per file. A client encodes a request
// before its due time, sends the request, and records the response and its arrival times. Metrics are computed
// elsewhere.
//
// stream.go and reader.go implement the exchange of one request for a stream of events, which all protocols share.
// A Kind holds the differences: how to encode a request and how to decode one event.
package backend

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/transport"
)

// Kinds lists all protocols, in the order shown by help.
var Kinds = []Kind{
	vllm, openAI, openAIChat, openAIResponses, openAIAudio, sglangNative, textGeneration, trtllm, tritonTRT, tritonVLLM, llamaCPP,
	ollamaGenerate, ollamaChat, lmdeployCompletions, lmdeployGenerate, deepspeedMII, deepspeedMIIGenerate, transformersServe, anthropicMessages, geminiStream,
	openAIEmbeddings, openAIEmbeddingsChat, openAIEmbeddingsCLIP, openAIEmbeddingsVLM2Vec, infinityEmbeddings, infinityEmbeddingsCLIP, vllmPooling, vllmRerank,
}

// A Kind is a server protocol.
type Kind struct {
	Name        string
	Aliases     []string // alternative names
	Doc         string   // one line for help
	Endpoint    string   // path of the requests; {model} is replaced by the model name
	Port        int      // default port of the server
	MetricsPath string   // path of the server's metrics; empty if there is none
	Takes       Forms
	ExactLength bool // the protocol can force the server to generate exactly the requested number of tokens
	Pools       bool // a response is one document without tokens

	otherPaths []string // further paths with the same request format
	framing    framing
	noEndMark  bool        // a stream has no end mark, unless an event announces one
	keyName    string      // header for the API key; empty means Authorization with a bearer token
	header     http.Header // headers required by the protocol
	signatures []signature // used by Detect to recognise the server
	about      string      // path of the server's version and settings; empty if there is none
	owner      string      // owner of the server's models, if different from Name
	// prefer returns a better Kind for the server recognised by its signatures, and the evidence; nil if this Kind
	// is the best.
	prefer func(ctx context.Context, c *client) (*Kind, string)

	encode  func(o *Options, r *tacho.Request) ([]byte, error)
	decoder func(o *Options) decoder
	// inputs returns the number of texts or documents in a request; nil means always one.
	inputs func(r *tacho.Request) int
	// contentType returns the MIME type of an encoded body; nil means JSON.
	contentType func(body []byte) string
	// tokenMarks are byte strings. Each event with a token contains one of them, followed by any byte other than a
	// closing quote.
	tokenMarks []string
	supports   []string // options the protocol can encode, by the names of Options.given
	// Queries to the server. A nil query is not supported; models must not be nil.
	models func(ctx context.Context, c *client) ([]Model, error)
	count  func(ctx context.Context, c *client, in *tacho.Input) (int, error)
	flush  func(ctx context.Context, c *client) error
}

// Forms are the forms of tacho.Input. Media means messages with images, audio or video; a protocol may support
// Media without supporting conversations.
type Forms struct{ Text, IDs, Messages, Media, Audio bool }

// Options are the settings shared by all requests of a backend.
type Options struct {
	Client   *transport.Client
	Endpoint string      // path; empty means Kind.Endpoint
	Model    string      // model name on the server; empty means the server's default
	APIKey   string      // sent in the header the protocol requires
	Header   http.Header // sent with every request
	Sampling Sampling
	Extras   Extras
	Logprobs *int            // number of alternatives per token to return log probabilities for
	Extra    map[string]any  // merged into the body; Request.Extra overrides Extra
	KeepText bool            // store the generated text in Record.Text
	OnToken  OnToken         // may be nil
	Secrets  *redact.Secrets // removed from error messages of the server; newClient adds the secrets of Header

	atOpenAI bool // the server is OpenAI's own service
}

// Sampling holds the sampling parameters. Nil fields are not sent.
type Sampling struct {
	Temperature       *float64 `flag:"temperature" help:"sampling temperature; unset leaves it to the server"`
	TopP              *float64 `flag:"top-p" help:"nucleus sampling"`
	TopK              *int     `flag:"top-k" help:"sample from this many most likely tokens"`
	MinP              *float64 `flag:"min-p" help:"lowest probability of a token, relative to the most likely one"`
	FrequencyPenalty  *float64 `flag:"frequency-penalty" help:"penalty for frequent tokens"`
	PresencePenalty   *float64 `flag:"presence-penalty" help:"penalty for tokens that already occurred"`
	RepetitionPenalty *float64 `flag:"repetition-penalty" help:"penalty for repetition"`
}

// Extras are optional features of some servers.
type Extras struct {
	CacheSalt       string `flag:"cache-salt" help:"+ vLLM: separate the prefix cache by this salt; unique gives each request its own, so the cache never helps" secret:"salt"`
	Priority        *int   `flag:"priority" help:"+ vLLM: priority of the requests; lower runs first (the server needs --scheduling-policy priority)"`
	ContinuousUsage bool   `flag:"continuous-usage-stats" help:"+ vLLM: request the token count in each event, to count events with several tokens exactly"`
	ReturnTokenIDs  bool   `flag:"return-token-ids" help:"+ vLLM: request token ids in each event, to count tokens exactly"`
}

// given returns the names of the options set by the user and not supported by every protocol.
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

// Option names, for Kind.supports.
var (
	allSampling = []string{"temperature", "top_p", "top_k", "min_p", "frequency_penalty", "presence_penalty", "repetition_penalty"}
	allOptions  = append([]string{"logprobs", "cache_salt", "priority", "continuous_usage_stats", "return_token_ids"}, allSampling...)
)

// A Server answers queries about itself. Every backend made by a Kind implements Server.
type Server interface {
	// Models returns the models served by the server.
	Models(ctx context.Context) ([]Model, error)
	// CountTokens returns the number of prompt tokens the server would count in a text, or in messages if the
	// backend accepts messages. If the server cannot count tokens, CountTokens fails with ErrNoEndpoint.
	CountTokens(ctx context.Context, in *tacho.Input) (int, error)
	// FlushCache clears the server's prefix cache. If the server cannot clear its cache, FlushCache fails with
	// ErrNoEndpoint.
	FlushCache(ctx context.Context) error
	// About returns the description of the server, or of each server if there are several.
	About(ctx context.Context) []About
}

// New returns a backend speaking the protocol k to the server of o.Client.
func (k Kind) New(o Options) (tacho.Backend, error) {
	if o.Client == nil {
		return nil, fmt.Errorf("backend %s: no transport", k.Name)
	}
	for _, name := range o.given() {
		if !slices.Contains(k.supports, name) {
			return nil, fmt.Errorf("backend %s does not support %s: remove the option", k.Name, name)
		}
	}
	c, err := newClient(k, o)
	if err != nil {
		return nil, fmt.Errorf("backend %s: %w", k.Name, err)
	}
	return c, nil
}

// Find returns the Kind with the given name or alias.
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
	return Kind{}, fmt.Errorf("unknown backend %q%s (have %s)", name, spelling.DidYouMean(want, all), strings.Join(names, ", "))
}

// accepts returns an error if the protocol cannot carry the input.
func (k *Kind) accepts(in *tacho.Input) error {
	given := 0
	for _, has := range []bool{in.Text != "", in.IDs != nil, in.Messages != nil, in.Audio != nil} {
		if has {
			given++
		}
	}
	switch {
	case given == 0:
		return errors.New("the request has no input: set a text, token ids, messages or audio")
	case given > 1:
		return errors.New("the request has several inputs: set only one of text, token ids, messages and audio")
	case in.IDs != nil && !k.Takes.IDs:
		return fmt.Errorf("%s cannot send token ids: use a backend that can (%s), or a workload of text", k.Name, kindsTaking(func(f Forms) bool { return f.IDs }))
	case in.Audio != nil && !k.Takes.Audio:
		return fmt.Errorf("%s cannot transcribe audio: use a backend that can (%s), or a workload of text", k.Name, kindsTaking(func(f Forms) bool { return f.Audio }))
	case in.Messages != nil && !k.Takes.Media && slices.ContainsFunc(in.Messages, func(m tacho.Message) bool { return m.HasMedia() }):
		return fmt.Errorf("%s cannot send images, audio or video: use a backend that can (%s), or a workload of text", k.Name, kindsTaking(func(f Forms) bool { return f.Media }))
	case in.Messages != nil && !k.Takes.Messages && (len(in.Messages) > 1 || !k.Takes.Media || !in.Messages[0].HasMedia()):
		return fmt.Errorf("%s cannot send messages: use a backend that can (%s), or a workload of text%s", k.Name, kindsTaking(func(f Forms) bool { return f.Messages }), k.instead())
	case in.Text != "" && !k.Takes.Text:
		return fmt.Errorf("%s cannot send plain text: use a backend that can (%s)%s", k.Name, kindsTaking(func(f Forms) bool { return f.Text }), k.instead())
	}
	return nil
}

// instead suggests audio workloads for a backend that accepts only audio.
func (k *Kind) instead() string {
	if !k.Takes.Audio {
		return ""
	}
	return ", or an audio workload (--dataset-name custom_audio, hf with an audio column, or random_mm with --random-mm-audio-ms)"
}

// kindsTaking returns the names of the kinds accepting a form of input.
func kindsTaking(takes func(Forms) bool) string {
	var names []string
	for _, k := range Kinds {
		if takes(k.Takes) {
			names = append(names, k.Name)
		}
	}
	return strings.Join(names, ", ")
}
