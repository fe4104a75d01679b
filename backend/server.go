package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/jsonscan"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/wire"
	"github.com/tacho-bench/tacho/transport"
)

// ErrNoEndpoint reports a query the server does not support.
var ErrNoEndpoint = errors.New("the server has no such endpoint")

// A MissingError is an ErrNoEndpoint with the request the server rejected.
type MissingError struct {
	Method, Path string // Path includes the path of the base URL
	Status       int
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %v", e.Method, e.Path, e.Status, ErrNoEndpoint)
}

// Unwrap makes a MissingError an ErrNoEndpoint.
func (e *MissingError) Unwrap() error { return ErrNoEndpoint }

// A Model is a server's description of a model.
type Model struct {
	ID     string // name used in requests
	Root   string // origin, usually a Hugging Face name; may be empty
	MaxLen int    // context length: tokens of prompt and output together; 0 if unknown
	Vocab  int    // vocabulary size; 0 if unknown
	Owner  string // usually the name of the server
}

// FlushCache implements Server.
func (c *client) FlushCache(ctx context.Context) error {
	if c.flush == nil {
		return fmt.Errorf("%s cannot flush its cache: %w", c.Name, ErrNoEndpoint)
	}
	if err := c.flush(ctx, c); err != nil {
		return fmt.Errorf("flush the server's cache: %w", err)
	}
	return nil
}

// Models implements Server.
func (c *client) Models(ctx context.Context) ([]Model, error) {
	models, err := c.models(ctx, c)
	if err != nil {
		return nil, fmt.Errorf("list the models: %w", err)
	}
	for i := range models {
		models[i].dropImplausible()
	}
	return slices.DeleteFunc(models, func(m Model) bool { return len(m.ID) > limit.Text }), nil
}

// maxContext is longer than the context of any model.
const maxContext = 1 << 30

// dropImplausible resets values that cannot be correct.
func (m *Model) dropImplausible() {
	if m.MaxLen < 0 || m.MaxLen > maxContext {
		m.MaxLen = 0
	}
	if len(m.Root) > limit.Text {
		m.Root = ""
	}
}

// CountTokens implements Server.
func (c *client) CountTokens(ctx context.Context, in *tacho.Input) (int, error) {
	if c.count == nil {
		return 0, fmt.Errorf("%s servers cannot count tokens: %w", c.Name, ErrNoEndpoint)
	}
	n, err := c.count(ctx, c, in)
	if err != nil {
		return 0, fmt.Errorf("count tokens: %w", err)
	}
	return n, nil
}

// query sends a metadata request to the server and decodes the response. A nil question means no body, and a nil
// answer discards the response.
func (c *client) query(ctx context.Context, method, path string, question, answer any) error {
	return c.queryLimit(ctx, limit.Page, method, path, question, answer)
}

// queryLimit is query with a limit on the response size in bytes.
func (c *client) queryLimit(ctx context.Context, most int64, method, path string, question, answer any) error {
	var body []byte
	if question != nil {
		var err error
		if body, err = marshal(question); err != nil {
			return err
		}
	}
	path = c.prefix + strings.ReplaceAll(path, modelPlaceholder, url.PathEscape(c.Model))
	req, err := c.Client.NewRequest(method, path, c.headers("application/json"), body)
	if err != nil {
		return err
	}
	// Queries are idempotent. With a key that is set but not sent, net/http retries a query if its connection turns
	// out to be closed.
	req.Header["Idempotency-Key"] = nil
	status, text, err := c.roundTrip(req.WithContext(ctx), most)
	switch {
	case status == 0:
		return err
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return &MissingError{Method: method, Path: req.URL.Path, Status: status}
	case status != http.StatusOK:
		return &tacho.Failure{
			Cause: tacho.Status, Status: status,
			Message: fmt.Sprintf("%s %s: status %d: %s", method, path, status, c.errorMessage(text, http.StatusText(status))),
		}
	case err != nil:
		return fmt.Errorf("read the response of %s: %w", path, err)
	}
	if answer == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return &tacho.Failure{Cause: tacho.Malformed, Status: status, Message: fmt.Sprintf(
			"the response to %s %s is not a valid %s response: check the address (%s: %s)", method, path, c.Name, jsonscan.ErrorText(err), c.quote(text))}
	}
	return nil
}

// roundTrip sends a query and reads the response. It checks the status first, because after a status below 200 no
// body follows, only a connection that never ends. An error with a status concerns the body.
func (c *client) roundTrip(req *http.Request, most int64) (status int, text []byte, err error) {
	resp, err := c.Client.HTTP().Do(req)
	if err != nil {
		return 0, nil, c.failed(err)
	}
	defer func() { _ = resp.Body.Close() }() // read or abandoned
	status = resp.StatusCode
	if status < http.StatusOK {
		return status, nil, nil
	}
	if status != http.StatusOK {
		most = limit.ErrorBody
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(text)) > most {
		text, err = text[:most], limit.Bytes("an answer", most)
	}
	return status, text, err
}

// failed returns the error of a query without a response.
func (c *client) failed(err error) error {
	f := transport.Classify(err, nil)
	f.Message = c.clipTo(f.Message, limit.Text)
	return f
}

func openAIModels(ctx context.Context, c *client) ([]Model, error) {
	return listModels(ctx, c, wire.OpenAIModelsPath)
}

func listModels(ctx context.Context, c *client, path string) ([]Model, error) {
	var list wire.OpenAIModelList
	if err := c.query(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, err
	}
	models := make([]Model, len(list.Data))
	for i, m := range list.Data {
		models[i] = Model{ID: m.ID, Root: m.Root, MaxLen: m.MaxModelLen, Owner: m.OwnedBy}
		if m.Meta != nil {
			models[i].Vocab = m.Meta.Vocab
		}
	}
	return models, nil
}

// countPromptTokens counts tokens as the completions endpoint does, including the special tokens added by the
// tokenizer.
func countPromptTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	special := true
	return countTokens(ctx, c, wire.OpenAITokenizeRequest{Model: c.Model, Prompt: &in.Text, AddSpecialTokens: &special})
}

// countChatTokens counts tokens as the chat endpoint does, with the chat template.
func countChatTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	return countTokens(ctx, c, wire.OpenAITokenizeRequest{Model: c.Model, Messages: chatMessages(in)})
}

func countTokens(ctx context.Context, c *client, question wire.OpenAITokenizeRequest) (int, error) {
	var answer wire.OpenAITokenizeResponse
	err := c.queryLimit(ctx, limit.Tokens, http.MethodPost, wire.OpenAITokenizePath, question, &answer)
	return answer.Count, err
}
