package target

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tacho"
	"tacho/backend"
	"tacho/plan"
	"tacho/transport"
)

// An AnsweredError is the error of a server that answered, but not as it must to
// be measured.
type AnsweredError struct{ error }

// Unwrap is what is wrong.
func (e *AnsweredError) Unwrap() error { return e.error }

// Unreachable is the error of servers that gave no answer, or none that can be
// used: one line, with what to do.
func (t *Target) Unreachable(ctx context.Context, err error) error {
	f := (*tacho.Failure)(nil)
	if !errors.As(err, &f) {
		f = transport.Classify(err, nil)
	}
	return t.trouble(ctx, strings.Join(t.Plan.ShownURLs(), ", "), f, t.env.Secrets.Hide(f.Message), "does not say what it serves: %s; --model names the model")
}

// Refused is the error of a server that did not answer the first request.
func (t *Target) Refused(ctx context.Context, server int, f *tacho.Failure) error {
	text := t.env.Secrets.Hide(f.Message)
	if f.Status != 0 && f.Status != http.StatusOK {
		text = fmt.Sprintf("status %d: %s", f.Status, text)
	}
	if wait := t.Plan.ReadyCheck.Duration(); wait > 0 && !Hopeless(f) {
		text = fmt.Sprintf("no answer to a request within %v: %s", wait, text)
	}
	return t.trouble(ctx, t.Plan.ShownURLs()[server], f, text, "did not answer a first request: %s; nothing was measured (--no-trial measures all the same)")
}

// unconnected are the failures before a server was spoken to. A connection that
// was not made in time is another.
var unconnected = []tacho.Cause{tacho.Refused, tacho.DNS, tacho.TLS, tacho.Connect, tacho.Reset}

// trouble says what is wrong with the server at an address, and what to do. A
// failure that is none of the usual ones is told in the other words.
func (t *Target) trouble(ctx context.Context, at string, f *tacho.Failure, text, other string) error {
	if ctx.Err() != nil { // the run was told to stop: that is why
		return ctx.Err()
	}
	err := t.cure(ctx, at, f, text, other)
	if f.Status != 0 {
		return &AnsweredError{err}
	}
	return err
}

// noHTTP2 says whether net/http met a server that answers HTTP/2 in the clear with HTTP/1.
// The second text is that of requests that waited for the same connection.
func noHTTP2(text string) bool {
	return strings.Contains(text, "looked like an HTTP/1.1 header") || strings.Contains(text, "http2: client conn could not be established")
}

// brokeOff says whether the server closed the connection while the request was written.
// It does so after an alert or an answer of HTTP/1 that this side may not get to read.
func brokeOff(text string) bool {
	return strings.Contains(text, "broken pipe") || strings.Contains(text, "connection reset")
}

// cure is the sentence of trouble.
func (t *Target) cure(ctx context.Context, at string, f *tacho.Failure, text, other string) error {
	switch {
	case f.Status == http.StatusUnauthorized || f.Status == http.StatusForbidden:
		return fmt.Errorf("the server at %s %s (%s)", at, t.keyTrouble(), text)
	case wantsCertificate(text):
		return fmt.Errorf("the server at %s wants a client certificate: name it with --client-cert and --client-key (%s)", at, text)
	case noHTTP2(text):
		return fmt.Errorf("the server at %s does not speak HTTP/2 in the clear: leave out --http2 (%s)", at, text)
	case refusesIgnoreEOS(f):
		return fmt.Errorf("the server at %s does not take ignore_eos: write --ignore-eos=false, or --backend transformers if it is transformers serve (%s)", at, text)
	case t.refusesID(f):
		return fmt.Errorf("the server at %s does not take the request id: write --request-id-format uuid (%s)", at, text)
	case brokeOff(text) && t.Plan.HTTP2 && strings.HasPrefix(at, "http://"):
		return fmt.Errorf("the server at %s closed the connection; perhaps it does not speak HTTP/2 in the clear: leave out --http2 (%s)", at, text)
	case brokeOff(text) && t.Plan.ClientCert == "" && strings.HasPrefix(at, "https://"):
		return fmt.Errorf("the server at %s closed the connection; perhaps it wants a client certificate: name it with --client-cert and --client-key (%s)", at, text)
	case f.Cause == tacho.Refused:
		return fmt.Errorf("cannot reach the server at %s: %s (--base-url, --host, --port; --ready-check-timeout-sec waits for it)", at, text)
	case slices.Contains(unconnected, f.Cause) || f.Cause == tacho.Timeout && f.Phase == "connect":
		return fmt.Errorf("cannot reach the server at %s: %s", at, text)
	case f.Status == http.StatusBadRequest && speaksTLS(text):
		return fmt.Errorf("the server at %s speaks TLS there: write https:// instead of http:// (%s)", at, text)
	case f.Status == http.StatusNotFound:
		return fmt.Errorf("the server at %s knows no %s, or no model %s there (%s)%s: see --endpoint, --backend and --model",
			at, t.endpoint(), t.Model, text, t.otherModels(ctx))
	case f.Status == http.StatusBadRequest:
		text += t.otherModels(ctx)
	}
	return fmt.Errorf("the server at %s "+other, at, text)
}

// speaksTLS says whether a server complains that it was spoken to in the clear:
// those of Go and nginx do.
func speaksTLS(text string) bool {
	return strings.Contains(text, "HTTP request to an HTTPS server") || strings.Contains(text, "plain HTTP request was sent to HTTPS port")
}

// wantsCertificate reports whether a server complains that it got no client
// certificate: by the alert of TLS 1.3, or with a page of nginx.
func wantsCertificate(text string) bool {
	return strings.Contains(text, "tls: certificate required") || strings.Contains(text, "No required SSL certificate was sent")
}

// refuses reports whether a server refused a request because of something with
// that name. A message that names the prompt may quote the whole request, and
// says nothing about the other fields.
func refuses(f *tacho.Failure, name string) bool {
	invalid := f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity
	text := strings.ToLower(f.Message)
	return invalid && strings.Contains(text, name) && !strings.Contains(text, "prompt")
}

// refusesIgnoreEOS reports whether a server refused the field ignore_eos.
func refusesIgnoreEOS(f *tacho.Failure) bool { return refuses(f, "ignore_eos") }

// refusesID reports whether a server refused the id of a request because it wants
// a UUID.
func (t *Target) refusesID(f *tacho.Failure) bool {
	return t.Plan.RequestIDFormat != plan.UUIDs && refuses(f, "uuid")
}

// RefusesIDs reports whether the failure of a request looks like a refusal of
// token ids.
func (t *Target) RefusesIDs(f *tacho.Failure) bool {
	switch {
	case refusesIgnoreEOS(f), t.refusesID(f), wantsCertificate(f.Message), speaksTLS(f.Message):
		return false
	case f.Status == http.StatusInternalServerError: // llama-cpp-python takes it for an error of its own, and names the prompt
		return strings.Contains(f.Message, "prompt")
	}
	// vLLM looks at the ids when it has begun a stream, and says so in it.
	return f.Status == http.StatusBadRequest || f.Status == http.StatusUnprocessableEntity || f.Cause == tacho.InBand
}

// keyTrouble says what is wrong with the key, and where it comes from.
func (t *Target) keyTrouble() string {
	if t.env.APIKey == "" {
		return "wants an API key: put it into OPENAI_API_KEY, or name a file with --api-key-file"
	}
	return "does not accept the API key of " + cmp.Or(t.env.KeyFrom, "the environment")
}

// endpoint is the path of requests.
func (t *Target) endpoint() string {
	if t.Plan.Endpoint != "" {
		return t.Plan.Endpoint
	}
	return t.Kind.Endpoint
}

// otherModels ends a sentence with the models that the server lists. It is empty
// if the one that was asked for is among them.
func (t *Target) otherModels(ctx context.Context) string {
	if t.server == nil {
		return "" // it was asked in vain
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
	return "; it lists no model " + t.Model + " but " + strings.Join(names, ", ")
}
