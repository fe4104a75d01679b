// Package hub downloads files from the model hub to a local cache with the layout of Hugging Face's own tools.
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

	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// address is the default endpoint.
const address = "https://huggingface.co"

// maxListing limits the size of a response of the hub, in bytes.
const maxListing = 1 << 28

// A Hub is a server for models and datasets.
type Hub struct {
	Client   *http.Client // nil means http.DefaultClient
	Endpoint string       // empty means the Hugging Face hub
	Token    string       // bearer token; empty for public repositories
	Home     string       // directory of downloads: HF_HOME, or the cache itself
	Cache    string       // cache directory, if not Home/hub
	Offline  bool         // downloads are not allowed
}

var (
	repoName     = regexp.MustCompile(`^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$`)
	revisionName = regexp.MustCompile(`^[A-Za-z0-9][\w./-]*$`)
)

// ErrOffline reports a missing file in offline mode.
var ErrOffline = errors.New("downloads are disabled (HF_HUB_OFFLINE)")

// A Repo is a repository of the hub at one revision.
type Repo struct {
	Dataset  bool // a dataset, otherwise a model
	Name     string
	Revision string // empty means main
}

func (r Repo) revision() string {
	return cmp.Or(r.Revision, "main")
}

// check rejects invalid names of repositories and revisions, because names become parts of paths and URLs.
func (r Repo) check() error {
	what := "model"
	if r.Dataset {
		what = "dataset"
	}
	if !repoName.MatchString(r.Name) || strings.Contains(r.Name, "..") {
		return fmt.Errorf("%q is not a valid %s name (owner/name)", r.Name, what)
	}
	if !revisionName.MatchString(r.revision()) || strings.Contains(r.revision(), "..") {
		return fmt.Errorf("%q is not a revision of a %s (a branch, a tag or a commit)", r.revision(), what)
	}
	return nil
}

// ModelPrefix begins the name of each directory of a model in a cache.
const ModelPrefix = "models--"

// folder returns the directory name of the repository in a cache.
func (r Repo) folder() string {
	kind := ModelPrefix
	if r.Dataset {
		kind = "datasets--"
	}
	return kind + strings.ReplaceAll(r.Name, "/", "--")
}

// page returns the web address of the repository, and api the address of its metadata.
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

// Caches returns the directories to search for repositories. Downloads go to the first.
func (h Hub) Caches() []string {
	out := []string{filepath.Join(h.Home, "hub"), h.Home}
	if h.Cache != "" {
		out = slices.Insert(out, 0, h.Cache)
	}
	return out
}

// Snapshot returns the directory of the repository in a local cache.
func (h Hub) Snapshot(r Repo) (string, error) {
	dir, _, _, err := h.snapshot(r)
	return dir, err
}

// snapshot returns the directory of the repository in a local cache, its commit, and its parent directory.
func (h Hub) snapshot(r Repo) (dir, commit, repo string, err error) {
	if err := r.check(); err != nil {
		return "", "", "", err
	}
	for _, cache := range h.Caches() {
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
	return "", "", "", fmt.Errorf("%s is not in the cache %s: %w", r.Name, h.Caches()[0], fs.ErrNotExist)
}

// A Listing is the list of files of a repository at one commit.
type Listing struct {
	Commit   string   `json:"commit"`
	Files    []string `json:"files"`
	Complete bool     `json:"-"` // false if the list contains only files already downloaded
}

// listingFile is the file name prefix for listings, stored next to the snapshots of a repository.
const listingFile = "tacho-listing-"

// Local returns the listing from a local cache, without network access.
func (h Hub) Local(r Repo) (Listing, error) {
	dir, commit, repo, err := h.snapshot(r)
	if err != nil {
		return Listing{}, err
	}
	var l Listing
	if b, err := os.ReadFile(filepath.Join(repo, listingFile+commit+".json")); err == nil && json.Unmarshal(b, &l) == nil && l.Commit == commit {
		l.Complete = true
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

// List queries the hub for the files of a repository and stores the listing.
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
		return Listing{}, fmt.Errorf("%s: not a response of a hub: %w", response.Request.URL, err)
	}
	l := Listing{Commit: answer.SHA, Complete: true}
	if !plainName.MatchString(l.Commit) {
		return Listing{}, fmt.Errorf("%s: the response contains no commit", response.Request.URL)
	}
	for _, s := range answer.Siblings {
		if filepath.IsLocal(filepath.FromSlash(s.Name)) { // the name becomes a path below the cache
			l.Files = append(l.Files, s.Name)
		}
	}
	return l, h.saveListing(r, l)
}

func (h Hub) saveListing(r Repo, l Listing) error {
	if h.Home == "" && h.Cache == "" {
		return errors.New("no directory for downloads (set HF_HOME)")
	}
	repo := filepath.Join(h.Caches()[0], r.folder())
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	return errors.Join(
		atomicfile.Write(filepath.Join(repo, listingFile+l.Commit+".json"), b),
		atomicfile.Write(filepath.Join(repo, "refs", filepath.FromSlash(r.revision())), []byte(l.Commit)),
		os.MkdirAll(filepath.Join(repo, "snapshots", l.Commit), 0o755),
	)
}

// Cached returns the path of a repository file in a local cache, if present.
func (h Hub) Cached(r Repo, commit, file string) (string, bool) {
	for _, cache := range h.Caches() {
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

const maxRedirects = 10

// send sends a request to the hub and returns an error for any failure status.
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
	// Compression would hide the length of the file.
	request.Header.Set("Accept-Encoding", "identity")
	client := *cmp.Or(h.Client, http.DefaultClient)
	client.CheckRedirect = func(next *http.Request, via []*http.Request) error {
		switch {
		case len(via) > maxRedirects:
			return errors.New("too many redirects")
		case next.URL.Host == via[0].URL.Host: // a renamed repository
			return nil
		case method == http.MethodHead:
			// The hub's own response contains the properties of a file. The response of the storage server does
			// not.
			return http.ErrUseLastResponse
		}
		next.Header.Del("Authorization") // the token is only for the hub
		return nil
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("%w (check the network, or set HF_ENDPOINT to another hub; files in the local cache need no network)", err)
	}
	if code := response.StatusCode; code < 400 {
		return response, nil
	}
	_ = response.Body.Close() // the body is empty
	return nil, h.refusal(response, address, r)
}

// refusal returns the error for a failure status.
func (h Hub) refusal(response *http.Response, address string, r Repo) error {
	what := "model"
	if r.Dataset {
		what = "dataset"
	}
	token := "set a token (HF_TOKEN)"
	if h.Token != "" {
		token = "use a token with access (HF_TOKEN)"
	}
	switch code := response.Header.Get("X-Error-Code"); {
	case response.StatusCode == http.StatusNotFound, code == "RepoNotFound":
		return fmt.Errorf("%s: %s, no such %s or file, or it is private (%s): %w", address, response.Status, what, token, fs.ErrNotExist)
	case response.StatusCode == http.StatusUnauthorized, response.StatusCode == http.StatusForbidden:
		return fmt.Errorf("%s: %s, accept the terms of the %s at %s and %s", address, response.Status, what, r.page(h.endpoint()), token)
	case response.StatusCode == http.StatusTooManyRequests:
		return fmt.Errorf("%s: %s, too many requests: wait, or %s", address, response.Status, token)
	}
	return fmt.Errorf("%s: %s", address, response.Status)
}
