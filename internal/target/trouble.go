package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/transport"
)

// An AnsweredError reports a server whose answers cannot be measured.
type AnsweredError struct{ error }

func (e *AnsweredError) Unwrap() error { return e.error }

// Unreachable returns the error for servers without a usable answer: one line
// with a fix.
func (t *Target) Unreachable(ctx context.Context, err error) error {
	f := (*tacho.Failure)(nil)
	if !errors.As(err, &f) {
		f = transport.Classify(err, nil)
	}
	return t.trouble(ctx, strings.Join(t.Plan.ShownURLs(), ", "), f, t.env.Secrets.Hide(f.Message), "does not list its models: %s; set --model")
}

// Refused returns the error for a server that did not answer the test request.
func (t *Target) Refused(ctx context.Context, server int, f *tacho.Failure) error {
	text := t.env.Secrets.Hide(f.Message)
	if f.Status != 0 && f.Status != http.StatusOK {
		text = fmt.Sprintf("status %d: %s", f.Status, text)
	}
	if wait := t.Plan.ReadyCheck.Duration(); wait > 0 && !Hopeless(f) {
		text = fmt.Sprintf("no answer to a request within %v: %s", wait, text)
	}
	return t.trouble(ctx, t.Plan.ShownURLs()[server], f, text, "did not answer the test request: %s; nothing was measured (--no-trial skips the test)")
}

// unconnected are failures before a connection was established, except
// timeouts.
var unconnected = []tacho.Cause{tacho.Refused, tacho.DNS, tacho.TLS, tacho.Connect, tacho.Reset}

// trouble describes a failure of the server at an address, with a fix. The
// format other is used for unusual failures.
func (t *Target) trouble(ctx context.Context, at string, f *tacho.Failure, text, other string) error {
	if ctx.Err() != nil { // the run was stopped, which explains the failure
		return ctx.Err()
	}
	err := t.cure(ctx, at, f, text, other)
	if f.Status != 0 {
		return &AnsweredError{err}
	}
	return err
}

// noHTTP2 reports whether net/http met a server that answers cleartext HTTP/2
// with HTTP/1. Requests waiting for the same connection fail with the second
// text.
func noHTTP2(text string) bool {
	return strings.Contains(text, "looked like an HTTP/1.1 header") || strings.Contains(text, "http2: client conn could not be established")
}

// brokeOff reports whether the server closed the connection during the request.
// Servers do so after a TLS alert or an HTTP/1 answer, and the client may be
// unable to read either.
func brokeOff(text string) bool {
	return strings.Contains(text, "broken pipe") || strings.Contains(text, "connection reset")
}

// cure returns the message of trouble.
func (t *Target) cure(ctx context.Context, at string, f *tacho.Failure, text, other string) error {
	switch {
	case f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden:
		return fmt.Errorf("the server at %s %s (%s)", at, t.keyTrouble(), text)
	case wantsCertificate(text):
		return fmt.Errorf("the server at %s requires a client certificate, set --client-cert and --client-key (%s)", at, text)
	case noHTTP2(text):
		return fmt.Errorf("the server at %s does not support cleartext HTTP/2, remove --http2 (%s)", at, text)
	case refusesIgnoreEOS(f):
		return fmt.Errorf("the server at %s does not support ignore_eos, use --ignore-eos=false, or --backend transformers for transformers serve (%s)", at, text)
	case t.refusesID(f):
		return fmt.Errorf("the server at %s rejects the request id, use --request-id-format uuid (%s)", at, text)
	case brokeOff(text) && t.Plan.HTTP2 && strings.HasPrefix(at, "http://"):
		return fmt.Errorf("the server at %s closed the connection, perhaps because it does not support cleartext HTTP/2; remove --http2 (%s)", at, text)
	case brokeOff(text) && t.Plan.ClientCert == "" && strings.HasPrefix(at, "https://"):
		return fmt.Errorf("the server at %s closed the connection, perhaps because it requires a client certificate; set --client-cert and --client-key (%s)", at, text)
	case f.Cause == tacho.Refused:
		return fmt.Errorf("cannot reach the server at %s: set --base-url, or wait for the server with --ready-check-timeout-sec (%s)", at, text)
	case f.Phase == "stream" && slices.Contains(unconnected, f.Cause):
		return fmt.Errorf("the server at %s closed the connection in the middle of the answer to the test request (%s); nothing was measured: look at the server's log (--no-trial skips the test)", at, text)
	case slices.Contains(unconnected, f.Cause) || f.Cause == tacho.Timeout && f.Phase == "connect":
		return fmt.Errorf("cannot reach the server at %s: %s", at, text)
	case f.Status == http.StatusBadRequest && speaksTLS(text):
		return fmt.Errorf("the server at %s uses TLS, write https:// instead of http:// (%s)", at, text)
	case f.Status == http.StatusNotFound:
		return fmt.Errorf("the server at %s has no %s or no model %q (%s)%s; check --endpoint, --backend and --model",
			at, t.endpoint(), t.Model, text, t.otherModels(ctx))
	case f.Status == http.StatusBadRequest:
		if models := t.otherModels(ctx); models != "" {
			text += models + " (--model)"
		}
	}
	return fmt.Errorf("the server at %s "+other, at, text)
}

// speaksTLS reports whether a server rejects cleartext HTTP, in the words of Go
// and nginx.
func speaksTLS(text string) bool {
	return strings.Contains(text, "HTTP request to an HTTPS server") || strings.Contains(text, "plain HTTP request was sent to HTTPS port")
}

// wantsCertificate reports whether a server rejects a missing client
// certificate, by a TLS 1.3 alert or an nginx error page.
func wantsCertificate(text string) bool {
	return strings.Contains(text, "tls: certificate required") || strings.Contains(text, "No required SSL certificate was sent")
}

// refuses reports whether a server rejected a request because of the named
// field. A message that names the prompt may quote the entire request, so it
// does not count.
func refuses(f *tacho.Failure, name string) bool {
	invalid := f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity
	text := strings.ToLower(f.Message)
	return invalid && strings.Contains(text, name) && !strings.Contains(text, "prompt")
}

// refusesIgnoreEOS reports whether a server rejected the field ignore_eos.
func refusesIgnoreEOS(f *tacho.Failure) bool { return refuses(f, "ignore_eos") }

// refusesID reports whether a server rejected the request id because it
// requires a UUID.
func (t *Target) refusesID(f *tacho.Failure) bool {
	return t.Plan.RequestIDFormat != plan.UUIDs && refuses(f, "uuid")
}

// RefusesIDs reports whether a failure looks like a rejection of token ids.
func (t *Target) RefusesIDs(f *tacho.Failure) bool {
	switch {
	case refusesIgnoreEOS(f), t.refusesID(f), wantsCertificate(f.Message), speaksTLS(f.Message):
		return false
	case f.Status == http.StatusInternalServerError: // llama-cpp-python reports an internal error that names the prompt
		return strings.Contains(f.Message, "prompt")
	}
	// vLLM checks ids after the stream has started and reports the error in the
	// stream.
	return f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity || f.Cause == tacho.InBand
}

// keyTrouble describes the problem with the API key and the key's source.
func (t *Target) keyTrouble() string {
	if t.env.APIKey == "" {
		return "requires an API key, set OPENAI_API_KEY or --api-key-file"
	}
	return "rejects the API key of " + cmp.Or(t.env.KeyFrom, "the environment")
}

// endpoint returns the path of requests.
func (t *Target) endpoint() string {
	if t.Plan.Endpoint != "" {
		return t.Plan.Endpoint
	}
	return t.Kind.Endpoint
}

// otherModels returns a clause with the models the server lists, or an empty
// string if the requested model is among them.
func (t *Target) otherModels(ctx context.Context) string {
	if t.server == nil {
		return "" // the server did not answer
	}
	ctx, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	models, err := t.server.Models(ctx)
	if err != nil || len(models) == 0 || slices.ContainsFunc(models, func(m backend.Model) bool { return m.ID == t.Model }) {
		return ""
	}
	const most = 10
	var names []string
	for _, m := range models[:min(len(models), most)] {
		names = append(names, m.ID)
	}
	if len(models) > most {
		names = append(names, fmt.Sprintf("and %d more", len(models)-most))
	}
	return "; it serves " + strings.Join(names, ", ")
}
