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

	"tacho"
	"tacho/internal/jsonscan"
	"tacho/internal/limit"
	"tacho/transport"
	"tacho/wire"
)

// ErrNoEndpoint says that the server cannot be asked that.
var ErrNoEndpoint = errors.New("the server has no such endpoint")

// A MissingError is the ErrNoEndpoint of a server that was asked.
type MissingError struct {
	Method, Path string // Path is the whole path, with that of the server's address
	Status       int
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s %s: status %d: %v", e.Method, e.Path, e.Status, ErrNoEndpoint)
}

// Unwrap makes a MissingError an ErrNoEndpoint.
func (e *MissingError) Unwrap() error { return ErrNoEndpoint }

// A Model is what a server says of a model it serves.
type Model struct {
	ID     string // as requests name it
	Root   string // where it comes from, mostly a Hugging Face name; may be empty
	MaxLen int    // tokens of prompt and output together; 0 unknown
	Vocab  int    // tokens of its vocabulary; 0 unknown
	Owner  string // as the server says: mostly its own name
}

// FlushCache implements Server.
func (c *client) FlushCache(ctx context.Context) error {
	if c.flush == nil {
		return fmt.Errorf("%s cannot be told to flush its cache: %w", c.Name, ErrNoEndpoint)
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
		return nil, fmt.Errorf("ask for the models: %w", err)
	}
	for i := range models {
		models[i].believe()
	}
	return slices.DeleteFunc(models, func(m Model) bool { return len(m.ID) > limit.Text }), nil
}

// longestContext is more than any model has.
const longestContext = 1 << 30

// believe forgets what cannot be true.
func (m *Model) believe() {
	if m.MaxLen < 0 || m.MaxLen > longestContext {
		m.MaxLen = 0
	}
	if len(m.Root) > limit.Text {
		m.Root = ""
	}
}

// CountTokens implements Server.
func (c *client) CountTokens(ctx context.Context, in *tacho.Input) (int, error) {
	if c.count == nil {
		return 0, fmt.Errorf("%s servers count no tokens: %w", c.Name, ErrNoEndpoint)
	}
	n, err := c.count(ctx, c, in)
	if err != nil {
		return 0, fmt.Errorf("ask for a token count: %w", err)
	}
	return n, nil
}

// ask puts a question to the server and decodes its answer. A nil question
// has no body, and an answer that nobody wants is nil.
func (c *client) ask(ctx context.Context, method, path string, question, answer any) error {
	return c.askFor(ctx, limit.Page, method, path, question, answer)
}

// askFor is ask, for an answer of at most so many bytes.
func (c *client) askFor(ctx context.Context, most int64, method, path string, question, answer any) error {
	var body []byte
	if question != nil {
		var err error
		if body, err = marshal(question); err != nil {
			return err
		}
	}
	path = c.prefix + strings.ReplaceAll(path, modelHole, url.PathEscape(c.Model))
	req, err := c.Client.NewRequest(method, path, c.headers("application/json"), body)
	if err != nil {
		return err
	}
	// A question does no harm when it is put twice: with a name that is not
	// sent, net/http puts it again if its connection turns out to be closed.
	req.Header["Idempotency-Key"] = nil
	status, text, err := c.put(req.WithContext(ctx), most)
	switch {
	case status == 0:
		return err
	case status == http.StatusNotFound, status == http.StatusMethodNotAllowed, status == http.StatusNotImplemented:
		return &MissingError{Method: method, Path: req.URL.Path, Status: status}
	case status != http.StatusOK:
		return &tacho.Failure{
			Cause: tacho.Status, Status: status,
			Message: fmt.Sprintf("%s %s: status %d: %s", method, path, status, c.words(text, http.StatusText(status))),
		}
	case err != nil:
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	if answer == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return &tacho.Failure{Cause: tacho.Malformed, Status: status, Message: fmt.Sprintf(
			"the answer to %s %s is no %s server's: is this its address? (%s: %s)", method, path, c.Name, jsonscan.Plain(err), c.quote(text))}
	}
	return nil
}

// put sends a question and reads its answer. The status is looked at first:
// behind one below 200 there is no body, but a connection that never ends. An
// error with a status is one of the body.
func (c *client) put(req *http.Request, most int64) (status int, text []byte, err error) {
	resp, err := c.Client.HTTP().Do(req)
	if err != nil {
		return 0, nil, c.failed(err)
	}
	defer func() { _ = resp.Body.Close() }() // it has been read, or given up
	status = resp.StatusCode
	if status < http.StatusOK {
		return status, nil, nil
	}
	if status != http.StatusOK {
		most = limit.Refuse
	}
	text, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err == nil && int64(len(text)) > most {
		text, err = text[:most], limit.Bytes("an answer", most)
	}
	return status, text, err
}

// failed is the error of a question that got no answer.
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
	if err := c.ask(ctx, http.MethodGet, path, nil, &list); err != nil {
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

// countPromptTokens counts as the completions endpoint will: with the tokens
// that the tokenizer puts around a text.
func countPromptTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	special := true
	return countTokens(ctx, c, wire.OpenAITokenizeRequest{Model: c.Model, Prompt: &in.Text, AddSpecialTokens: &special})
}

// countChatTokens counts as the chat endpoint will: under the chat template.
func countChatTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	return countTokens(ctx, c, wire.OpenAITokenizeRequest{Model: c.Model, Messages: chatMessages(in)})
}

func countTokens(ctx context.Context, c *client, question wire.OpenAITokenizeRequest) (int, error) {
	var answer wire.OpenAITokenizeResponse
	err := c.askFor(ctx, limit.Tokens, http.MethodPost, wire.OpenAITokenizePath, question, &answer)
	return answer.Count, err
}
