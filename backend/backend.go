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
	"tacho/transport"
)

// Kinds are the protocols, in the order in which help shows them.
var Kinds = []Kind{vllm, openAI, openAIChat, textGeneration}

// A Kind is one protocol a server can be spoken to in.
type Kind struct {
	Name        string
	Aliases     []string // other names people know it by
	Doc         string   // one line for help
	Endpoint    string   // path of its requests
	Takes       Forms
	ExactLength bool // it has a field that makes the server generate as many tokens as asked

	encode  func(o *Options, r *tacho.Request) ([]byte, error)
	decoder func() decoder
	// live are the byte strings of which an event with a token holds one,
	// followed by anything but a closing quote.
	live   []string
	check  func(o *Options) error // complains about options the protocol cannot carry; may be nil
	models func(ctx context.Context, c *client) ([]Model, error)
	count  func(ctx context.Context, c *client, text string) (int, error)
}

// Forms are the forms of tacho.Input.
type Forms struct{ Text, IDs, Messages bool }

// Options are what the requests of one backend have in common.
type Options struct {
	Client   *transport.Client
	Endpoint string      // path; empty is the Kind's
	Model    string      // as the server knows it; empty is the server's own
	Header   http.Header // sent with every request
	Sampling Sampling
	Logprobs *int           // log probabilities of so many alternatives for each token
	Extra    map[string]any // merged over the body; Request.Extra wins over it
	KeepText bool           // put what was generated into Record.Text
	OnToken  func(n int)    // told of token events as they arrive, roughly, for live figures
}

// Sampling is how the server is to choose tokens. A nil is not sent.
type Sampling struct {
	Temperature       *float64 `flag:"temperature" help:"sampling temperature; unset leaves it to the server"`
	TopP              *float64 `flag:"top-p" help:"nucleus sampling"`
	TopK              *int     `flag:"top-k" help:"sample from so many tokens"`
	MinP              *float64 `flag:"min-p" help:"least probability, relative to the likeliest token"`
	FrequencyPenalty  *float64 `flag:"frequency-penalty" help:"penalty for frequent tokens"`
	PresencePenalty   *float64 `flag:"presence-penalty" help:"penalty for tokens already there"`
	RepetitionPenalty *float64 `flag:"repetition-penalty" help:"penalty for repetition"`
}

// A Server answers questions about itself. Every backend made by a Kind is one.
type Server interface {
	// Models lists what the server serves.
	Models(ctx context.Context) ([]Model, error)
	// CountTokens is how many prompt tokens the server would see in text. It
	// fails with ErrNoEndpoint where the server cannot be asked.
	CountTokens(ctx context.Context, text string) (int, error)
}

// New returns a backend that speaks the protocol to the server of o.Client.
func (k Kind) New(o Options) (tacho.Backend, error) {
	if o.Client == nil {
		return nil, fmt.Errorf("backend %s: no transport", k.Name)
	}
	if k.check != nil {
		if err := k.check(&o); err != nil {
			return nil, fmt.Errorf("backend %s: %w", k.Name, err)
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
	nearest, least := "", max(3, len(want)/2+1)
	names := make([]string, 0, len(Kinds))
	for _, k := range Kinds {
		known := append([]string{k.Name}, k.Aliases...)
		if slices.Contains(known, want) {
			return k, nil
		}
		names = append(names, k.Name)
		for _, n := range known {
			if d := editDistance(want, n); d < least {
				nearest, least = n, d
			}
		}
	}
	if nearest != "" {
		return Kind{}, fmt.Errorf("unknown backend %q, did you mean %q? there are %s", name, nearest, strings.Join(names, ", "))
	}
	return Kind{}, fmt.Errorf("unknown backend %q, there are %s", name, strings.Join(names, ", "))
}

// editDistance is the number of letters to add, drop or change to get from a to b.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(row[j+1]+1, row[j]+1, change)
		}
	}
	return row[len(b)]
}

// accepts complains about an input the protocol cannot carry.
func (k *Kind) accepts(in *tacho.Input) error {
	given := 0
	for _, has := range []bool{in.Text != "", in.IDs != nil, in.Messages != nil} {
		if has {
			given++
		}
	}
	switch {
	case given == 0:
		return errors.New("the request has no input: give it a text, token ids or messages")
	case given > 1:
		return errors.New("the request has its input in several forms: give it one of text, token ids and messages")
	case in.IDs != nil && !k.Takes.IDs:
		return fmt.Errorf("%s cannot send token ids: use a backend that can (%s), or a workload of text", k.Name, takers(func(f Forms) bool { return f.IDs }))
	case in.Messages != nil && !k.Takes.Messages:
		return fmt.Errorf("%s cannot send messages: use a backend that can (%s), or a workload of text", k.Name, takers(func(f Forms) bool { return f.Messages }))
	case in.Text != "" && !k.Takes.Text:
		return fmt.Errorf("%s cannot send plain text: use a backend that can (%s)", k.Name, takers(func(f Forms) bool { return f.Text }))
	}
	return nil
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
