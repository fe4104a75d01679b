package token

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// tokenizerFiles are the files of a model that hold its tokenizer, best first.
var tokenizerFiles = []string{"tokenizer.json", "tekken.json", "tokenizer.model", "tiktoken.model", "spiece.model", "qwen.tiktoken"}

// templateFiles are the files of a model that may hold its chat template.
var templateFiles = []string{"chat_template.jinja", "chat_template.json", configFile}

// FromDir loads the tokenizer in a directory that holds a model; cacheDir is
// as in LoadCached.
func FromDir(dir, cacheDir string) (*Tokenizer, error) {
	for _, name := range tokenizerFiles {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return LoadCached(path, cacheDir)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("load a tokenizer: %w", err)
		}
	}
	return nil, fmt.Errorf("load a tokenizer: %s has none of %s", dir, strings.Join(tokenizerFiles, ", "))
}

var (
	modelName    = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$`)
	revisionName = regexp.MustCompile(`^[A-Za-z0-9][\w./-]*$`)
)

// checkModel refuses names that are no name of a model or revision: they
// become part of paths and addresses.
func checkModel(model, revision string) error {
	if !modelName.MatchString(model) || strings.Contains(model, "..") {
		return fmt.Errorf("%q is not the name of a model (owner/name)", model)
	}
	if !revisionName.MatchString(revision) || strings.Contains(revision, "..") {
		return fmt.Errorf("%q is not a revision (a branch, a tag or a commit)", revision)
	}
	return nil
}

// mainRevision is what models are at unless something else is asked for.
const mainRevision = "main"

// Snapshot is the directory of a model in a Hugging Face cache. home is the
// directory HF_HOME names, or the cache itself; an empty revision is main.
func Snapshot(model, revision, home string) (string, error) {
	dir, _, _, err := Hub{Home: home}.snapshot(Repo{Name: model, Revision: revision})
	return dir, err
}

// FromCache loads the tokenizer of a model from a local Hugging Face cache,
// without a network; home and revision are as in Snapshot, cacheDir is as in
// LoadCached.
func FromCache(model, revision, home, cacheDir string) (*Tokenizer, error) {
	dir, err := Snapshot(model, revision, home)
	if err != nil {
		return nil, fmt.Errorf("load a tokenizer: %w", err)
	}
	t, err := FromDir(dir, cacheDir)
	if err != nil {
		return nil, err
	}
	return t.named(model), nil
}

// named says in the name of the tokenizer which model it belongs to.
func (t *Tokenizer) named(model string) *Tokenizer {
	t.name = filepath.Base(t.name) + " of " + model
	return t
}

// hubEndpoint is where models are published.
const hubEndpoint = "https://huggingface.co"

// maxDownload bounds what is taken from the hub for one file, in bytes.
const maxDownload = 1 << 28

// A Hub is a place that models and datasets can be downloaded from.
type Hub struct {
	Client   *http.Client // nil is http.DefaultClient
	Endpoint string       // empty is the Hugging Face hub
	Token    string       // sent as bearer token; empty for what is public
	Home     string       // keeps what was downloaded, in the layout that Snapshot reads
	Cache    string       // the same, where it is not the directory hub of Home
	Offline  bool         // nothing is to be downloaded
}

// FromHub downloads the tokenizer of a model (and the files that may hold its
// chat template) to h.Home and loads it; cacheDir is as in LoadCached.
func FromHub(ctx context.Context, h Hub, model, revision, cacheDir string) (*Tokenizer, error) {
	if revision == "" {
		revision = mainRevision
	}
	if err := checkModel(model, revision); err != nil {
		return nil, fmt.Errorf("download a tokenizer: %w", err)
	}
	if h.Home == "" && h.Cache == "" {
		return nil, errors.New("download a tokenizer: there is no directory to keep it in")
	}
	dir := ""
	for _, name := range tokenizerFiles {
		d, err := h.download(ctx, model, revision, name)
		if err == nil {
			dir = d
			break
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("download a tokenizer: %w", err)
		}
	}
	if dir == "" {
		return nil, fmt.Errorf("download a tokenizer: %s has none of %s at revision %s", model, strings.Join(tokenizerFiles, ", "), revision)
	}
	for _, name := range templateFiles {
		if _, err := h.download(ctx, model, revision, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("download a chat template: %w", err)
		}
	}
	t, err := FromDir(dir, cacheDir)
	if err != nil {
		return nil, err
	}
	return t.named(model), nil
}

// download keeps one file of a model and returns the directory it is in.
func (h Hub) download(ctx context.Context, model, revision, file string) (string, error) {
	url := h.endpoint() + "/" + model + "/resolve/" + revision + "/" + file
	response, err := h.send(ctx, http.MethodGet, url, nil, Repo{Name: model})
	if err != nil {
		return "", err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end or given up
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDownload+1))
	if err != nil {
		return "", fmt.Errorf("%s: %w", url, err)
	}
	if len(body) > maxDownload {
		return "", fmt.Errorf("%s: larger than %d bytes", url, maxDownload)
	}
	return h.keep(model, revision, commitOf(response, revision), file, body)
}

// commitOf is the commit a file was served from. A redirect to where the bytes
// are carries it in the answer before.
func commitOf(response *http.Response, revision string) string {
	for r := response; r != nil; r = r.Request.Response {
		if commit := r.Header.Get("X-Repo-Commit"); revisionName.MatchString(commit) && !strings.Contains(commit, "..") {
			return commit
		}
		if r.Request == nil {
			break
		}
	}
	return strings.ReplaceAll(revision, "/", "--")
}

// keep writes a file into the cache, and the reference to its commit.
func (h Hub) keep(model, revision, commit, file string, body []byte) (string, error) {
	repo := filepath.Join(h.caches()[0], Repo{Name: model}.folder())
	dir := filepath.Join(repo, "snapshots", filepath.Base(commit))
	if err := writeWhole(filepath.Join(dir, file), body); err != nil {
		return "", err
	}
	ref := filepath.Join(repo, "refs", filepath.FromSlash(revision))
	if err := writeWhole(ref, []byte(filepath.Base(commit))); err != nil {
		return "", err
	}
	return dir, nil
}
