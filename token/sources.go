package token

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
)

// Sources says where a Counter may come from. Each place is tried in the order
// of the fields; those left empty are passed over.
type Sources struct {
	Path     string       // as in Open: if given, nothing else will do
	Model    string       // owner/name, as the hub knows it
	Revision string       // empty is main
	Home     string       // a local Hugging Face cache
	Online   bool         // whether the hub may be asked
	Hub      Hub          // how
	Server   string       // address of the server, to count with its /tokenize
	Client   *http.Client // to ask the server with; nil is http.DefaultClient
	CacheDir string       // as in LoadCached
}

// Find is the first Counter that can be had, and Estimate if none can. passed
// says why each place before it was of no use. The error is for a Path that
// does not load: who names a tokenizer wants that one.
func (s Sources) Find(ctx context.Context) (c Counter, passed []error, err error) {
	if s.Path != "" {
		t, err := Open(s.Path, s.CacheDir)
		if err != nil {
			return nil, nil, err
		}
		return t, nil, nil
	}
	places := []func() (Counter, error){s.local, func() (Counter, error) { return s.remote(ctx) }, func() (Counter, error) { return s.server(ctx) }}
	for _, place := range places {
		c, err := place()
		if err == nil {
			return c, passed, nil
		}
		passed = append(passed, err)
	}
	return Estimate{}, passed, nil
}

// Open loads a tokenizer file, the one in a directory, or what Builtin has
// under that name; cacheDir is as in LoadCached.
func Open(path, cacheDir string) (*Tokenizer, error) {
	info, err := os.Stat(path)
	if err != nil {
		t, unknown := Builtin(path)
		if unknown != nil {
			return nil, fmt.Errorf("load a tokenizer: %w; %w", err, unknown)
		}
		return t, nil
	}
	if info.IsDir() {
		return FromDir(path, cacheDir)
	}
	return LoadCached(path, cacheDir)
}

func (s Sources) local() (Counter, error) {
	if s.Model == "" || s.Home == "" {
		return nil, errors.New("local cache: no model or no cache given")
	}
	return asCounter(FromCache(s.Model, s.Revision, s.Home, s.CacheDir))
}

func (s Sources) remote(ctx context.Context) (Counter, error) {
	if s.Model == "" || !s.Online {
		return nil, errors.New("hub: not to be asked, or no model given")
	}
	return asCounter(FromHub(ctx, s.Hub, s.Model, s.Revision, s.CacheDir))
}

func (s Sources) server(ctx context.Context) (Counter, error) {
	if s.Server == "" {
		return nil, errors.New("server: none given")
	}
	c, err := NewServer(ctx, s.Client, s.Server, s.Model)
	if err != nil {
		return nil, err
	}
	return c, nil
}

// asCounter keeps a nil Tokenizer from becoming a Counter that is not nil.
func asCounter(t *Tokenizer, err error) (Counter, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}
