// Package hub fetches files of the model hub and keeps them in a local cache, in
// the layout of Hugging Face's own tools. It does not know what is in them.
package hub

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"tacho/internal/wholefile"
)

// address is where models are published.
const address = "https://huggingface.co"

// maxListing bounds what the hub may answer to a question, in bytes.
const maxListing = 1 << 28

// A Hub is a place that models and datasets can be downloaded from.
type Hub struct {
	Client   *http.Client // nil is http.DefaultClient
	Endpoint string       // empty is the Hugging Face hub
	Token    string       // sent as bearer token; empty for what is public
	Home     string       // keeps what was downloaded; HF_HOME, or the cache itself
	Cache    string       // the same, where it is not the directory hub of Home
	Offline  bool         // nothing is to be downloaded
}

var (
	repoName     = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$`)
	revisionName = regexp.MustCompile(`^[A-Za-z0-9][\w./-]*$`)
)

// ErrOffline says that something would have to be downloaded, and must not be.
var ErrOffline = errors.New("the hub must not be asked (HF_HUB_OFFLINE)")

// A Repo is a repository of the hub at one revision.
type Repo struct {
	Dataset  bool // of data; else of a model
	Name     string
	Revision string // empty is main
}

func (r Repo) revision() string {
	return cmp.Or(r.Revision, "main")
}

// check refuses names that cannot be names of a repository or a revision: they
// become part of paths and addresses.
func (r Repo) check() error {
	what := "model"
	if r.Dataset {
		what = "dataset"
	}
	if !repoName.MatchString(r.Name) || strings.Contains(r.Name, "..") {
		return fmt.Errorf("%q is not the name of a %s (owner/name)", r.Name, what)
	}
	if !revisionName.MatchString(r.revision()) || strings.Contains(r.revision(), "..") {
		return fmt.Errorf("%q is not a revision of a %s (a branch, a tag or a commit)", r.revision(), what)
	}
	return nil
}

// folder is the directory of the repository in a cache.
func (r Repo) folder() string {
	kind := "models--"
	if r.Dataset {
		kind = "datasets--"
	}
	return kind + strings.ReplaceAll(r.Name, "/", "--")
}

// page is the address of the repository, api that of what the hub knows of it.
func (r Repo) page(endpoint string) string {
	if r.Dataset {
		return endpoint + "/datasets/" + r.Name
	}
	return endpoint + "/" + r.Name
}

func (r Repo) api(endpoint string) string {
	kind := "/api/models/"
	if r.Dataset {
		kind = "/api/datasets/"
	}
	return endpoint + kind + r.Name + "/revision/" + url.PathEscape(r.revision())
}

// caches are where repositories may be, the first being where they are kept.
func (h Hub) caches() []string {
	out := []string{filepath.Join(h.Home, "hub"), h.Home}
	if h.Cache != "" {
		out = slices.Insert(out, 0, h.Cache)
	}
	return out
}

// Snapshot is the directory of the repository in a local cache.
func (h Hub) Snapshot(r Repo) (string, error) {
	dir, _, _, err := h.snapshot(r)
	return dir, err
}

// snapshot is the directory of the repository in a local cache, its commit, and
// the directory it is a part of.
func (h Hub) snapshot(r Repo) (dir, commit, repo string, err error) {
	if err := r.check(); err != nil {
		return "", "", "", err
	}
	for _, cache := range h.caches() {
		repo = filepath.Join(cache, r.folder())
		if _, err := os.Stat(repo); err != nil {
			continue
		}
		commit = r.revision()
		if ref, err := os.ReadFile(filepath.Join(repo, "refs", filepath.FromSlash(commit))); err == nil {
			commit = strings.TrimSpace(string(ref))
		}
		commit = filepath.Base(commit)
		dir = filepath.Join(repo, "snapshots", commit)
		if _, err := os.Stat(dir); err == nil {
			return dir, commit, repo, nil
		}
		return "", "", "", fmt.Errorf("%s is in the cache %s, but not at revision %s: %w", r.Name, cache, r.revision(), fs.ErrNotExist)
	}
	return "", "", "", fmt.Errorf("%s is not in the cache %s: %w", r.Name, h.caches()[0], fs.ErrNotExist)
}

// A Listing is the files of a repository at one commit.
type Listing struct {
	Commit string   `json:"commit"`
	Files  []string `json:"files"`
	Whole  bool     `json:"-"` // false where only those are known that somebody has downloaded
}

// listingFile keeps what the hub listed, beside the snapshots of a repository.
const listingFile = "tacho-listing-"

// Local is what a local cache knows of a repository, without a network.
func (h Hub) Local(r Repo) (Listing, error) {
	dir, commit, repo, err := h.snapshot(r)
	if err != nil {
		return Listing{}, err
	}
	var l Listing
	if b, err := os.ReadFile(filepath.Join(repo, listingFile+commit+".json")); err == nil && json.Unmarshal(b, &l) == nil && l.Commit == commit {
		l.Whole = true
		return l, nil
	}
	l = Listing{Commit: commit}
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			l.Files = append(l.Files, filepath.ToSlash(strings.TrimPrefix(path, dir+string(filepath.Separator))))
		}
		return err
	})
	return l, err
}

// List asks the hub for the files of a repository, and keeps the answer.
func (h Hub) List(ctx context.Context, r Repo) (Listing, error) {
	if err := r.check(); err != nil {
		return Listing{}, err
	}
	if h.Offline {
		return Listing{}, fmt.Errorf("%s: %w", r.Name, ErrOffline)
	}
	response, err := h.send(ctx, http.MethodGet, r.api(h.endpoint()), nil, r)
	if err != nil {
		return Listing{}, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end or given up
	var answer struct {
		SHA      string `json:"sha"`
		Siblings []struct {
			Name string `json:"rfilename"`
		} `json:"siblings"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(nil, response.Body, maxListing)).Decode(&answer); err != nil {
		return Listing{}, fmt.Errorf("%s: not an answer of the hub: %w", response.Request.URL, err)
	}
	l := Listing{Commit: answer.SHA, Whole: true}
	if !plainName.MatchString(l.Commit) {
		return Listing{}, fmt.Errorf("%s: the hub names no commit", response.Request.URL)
	}
	for _, s := range answer.Siblings {
		if filepath.IsLocal(filepath.FromSlash(s.Name)) { // it becomes a path below the cache
			l.Files = append(l.Files, s.Name)
		}
	}
	return l, h.keepListing(r, l)
}

func (h Hub) keepListing(r Repo, l Listing) error {
	if h.Home == "" && h.Cache == "" {
		return errors.New("there is no directory to keep downloads in (HF_HOME)")
	}
	repo := filepath.Join(h.caches()[0], r.folder())
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return errors.Join(
		wholefile.Write(filepath.Join(repo, listingFile+l.Commit+".json"), b),
		wholefile.Write(filepath.Join(repo, "refs", filepath.FromSlash(r.revision())), []byte(l.Commit)),
		os.MkdirAll(filepath.Join(repo, "snapshots", l.Commit), 0o755),
	)
}

// Have is where a file of a repository is in a local cache.
func (h Hub) Have(r Repo, commit, file string) (string, bool) {
	for _, cache := range h.caches() {
		path := filepath.Join(cache, r.folder(), "snapshots", filepath.Base(commit), filepath.FromSlash(file))
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return "", false
}

func (h Hub) endpoint() string {
	return strings.TrimRight(cmp.Or(h.Endpoint, address), "/")
}

func (h Hub) client() *http.Client {
	return cmp.Or(h.Client, http.DefaultClient)
}

const maxRedirects = 10

// send asks the hub for something and says what is wrong if it does not get it.
func (h Hub) send(ctx context.Context, method, address string, header http.Header, r Repo) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, err
	}
	if header != nil {
		request.Header = header.Clone()
	}
	if h.Token != "" {
		request.Header.Set("Authorization", "Bearer "+h.Token)
	}
	// If the file were packed on the way, its length would not be known.
	request.Header.Set("Accept-Encoding", "identity")
	client := *h.client()
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return errors.New("too many redirections")
		case next.URL.Host == via[0].URL.Host: // a renamed repository
			return nil
		case method == http.MethodHead:
			// The facts about a file are in the hub's own answer, not in that of
			// the store it sends us to.
			return http.ErrUseLastResponse
		}
		next.Header.Del("Authorization") // which is for the hub alone
		return nil
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w (is the hub within reach? HF_ENDPOINT names another; what is in the local cache needs none)", err)
	}
	if code := response.StatusCode; code < 400 {
		return response, nil
	}
	_ = response.Body.Close() // there is nothing in it
	return nil, h.refusal(response, address, r)
}

// refusal is the error of an answer that is none.
func (h Hub) refusal(response *http.Response, address string, r Repo) error {
	what := "model"
	if r.Dataset {
		what = "dataset"
	}
	token := "give a token (HF_TOKEN)"
	if h.Token != "" {
		token = "the token (HF_TOKEN) is not one that may"
	}
	switch code := response.Header.Get("X-Error-Code"); {
	case response.StatusCode == http.StatusNotFound, code == "RepoNotFound":
		return fmt.Errorf("%s: %s: the hub has no such %s or file, or it is private: %s: %w", address, response.Status, what, token, fs.ErrNotExist)
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s: %s: accept the terms of the %s on its page, %s, and %s", address, response.Status, what, r.page(h.endpoint()), token)
	case response.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("%s: %s: the hub wants a pause; %s", address, response.Status, token)
	}
	return fmt.Errorf("%s: %s", address, response.Status)
}
