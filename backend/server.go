package backend

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"tacho"
	"tacho/internal/jsonscan"
	"tacho/transport"
	"tacho/wire/openai"
)

// maxAnswer bounds the answer to a question: a list of a million tokens is
// less than this.
const maxAnswer = 64 << 20

// ErrNoEndpoint says that the server has nobody to ask.
var ErrNoEndpoint = errors.New("the server has no such endpoint")

// A Model is what a server says of a model it serves.
type Model struct {
	ID     string // as requests name it
	Root   string // where it comes from, mostly a Hugging Face name; may be empty
	MaxLen int    // tokens of prompt and output together; 0 unknown
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
	return models, nil
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
	resp, err := c.Client.HTTP().Do(req.WithContext(ctx))
	if err != nil {
		return c.failed(err)
	}
	defer func() { _ = resp.Body.Close() }() // it has been read, or given up
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the answer of %s: %w", path, err)
	}
	switch resp.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
		return fmt.Errorf("%s %s: status %d: %w", method, path, resp.StatusCode, ErrNoEndpoint)
	default:
		return &tacho.Failure{
			Cause: tacho.Status, Status: resp.StatusCode,
			Message: fmt.Sprintf("%s %s: status %d: %s", method, path, resp.StatusCode, c.words(text, http.StatusText(resp.StatusCode))),
		}
	}
	if answer == nil || len(text) == 0 {
		return nil
	}
	if err := json.Unmarshal(text, answer); err != nil {
		return &tacho.Failure{Cause: tacho.Malformed, Status: resp.StatusCode, Message: fmt.Sprintf(
			"the answer to %s %s is no %s server's: is this its address? (%s: %s)", method, path, c.Name, jsonscan.Plain(err), c.quote(text))}
	}
	return nil
}

// failed is the error of a question that got no answer.
func (c *client) failed(err error) error {
	f := transport.Classify(err, nil)
	f.Message = c.redact(f.Message)
	return f
}

func openAIModels(ctx context.Context, c *client) ([]Model, error) {
	return listModels(ctx, c, openai.ModelsPath)
}

func listModels(ctx context.Context, c *client, path string) ([]Model, error) {
	var list openai.ModelList
	if err := c.ask(ctx, http.MethodGet, path, nil, &list); err != nil {
		return nil, err
	}
	models := make([]Model, len(list.Data))
	for i, m := range list.Data {
		models[i] = Model{ID: m.ID, Root: m.Root, MaxLen: m.MaxModelLen}
	}
	return models, nil
}

// countPromptTokens counts as the completions endpoint will: with the tokens
// that the tokenizer puts around a text.
func countPromptTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	special := true
	return countTokens(ctx, c, openai.TokenizeRequest{Model: c.Model, Prompt: &in.Text, AddSpecialTokens: &special})
}

// countChatTokens counts as the chat endpoint will: under the chat template.
func countChatTokens(ctx context.Context, c *client, in *tacho.Input) (int, error) {
	return countTokens(ctx, c, openai.TokenizeRequest{Model: c.Model, Messages: chatMessages(in)})
}

func countTokens(ctx context.Context, c *client, question openai.TokenizeRequest) (int, error) {
	var answer openai.TokenizeResponse
	err := c.ask(ctx, http.MethodPost, openai.TokenizePath, question, &answer)
	return answer.Count, err
}
