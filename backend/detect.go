package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/limit"
)

// Auto tells the caller to run Detect. Find does not accept Auto.
const Auto = "auto"

// A signature is a text on a page of a server that identifies a Kind.
type signature struct {
	path  string
	holds string // in the page; JSON is compared without white space
	doubt int    // signatures with less doubt are tried first
}

// certain is a signature with the server's own name.
func certain(path, holds string) signature { return signature{path: path, holds: holds} }

// likely is a signature that servers of other kinds might imitate.
func likely(path, holds string) signature { return signature{path: path, holds: holds, doubt: 1} }

const maxDoubt = 2

// Detect finds the best protocol spoken by the server of o.Client, and returns the evidence.
func Detect(ctx context.Context, o Options) (kind Kind, evidence string, err error) {
	pages := map[view]*page{}
	for doubt := range maxDoubt + 1 {
		for _, k := range Kinds {
			c, err := newClient(k, Options{Client: o.Client, APIKey: o.APIKey, Header: o.Header})
			if err != nil {
				return Kind{}, "", err
			}
			s, err := k.known(doubt, func(path string) (*page, error) { return c.look(ctx, pages, path) })
			if err != nil {
				return Kind{}, "", err
			}
			if s != nil {
				kind, evidence = c.best(ctx, fmt.Sprintf("GET %s has %s", s.path, s.holds))
				return kind, evidence, nil
			}
		}
	}
	return Kind{}, "", undetected(pages)
}

// undetected returns the error for a server without a known signature. If the server requires a key, the error is a
// Failure with the status.
func undetected(pages map[view]*page) error {
	var queried []string
	f := &tacho.Failure{Cause: tacho.Status}
	missing := true
	for v, p := range pages {
		queried = append(queried, fmt.Sprintf("GET %s: status %d", p.path, p.status))
		missing = missing && p.status == http.StatusNotFound && p.path != v.path // the base URL includes a path
		if p.status == http.StatusUnauthorized || p.status == http.StatusForbidden {
			f.Status = p.status
		}
	}
	slices.Sort(queried)
	queried = slices.Compact(queried)
	tried := strings.Join(queried, ", ")
	switch {
	case f.Status != 0:
		f.Message = tried
		return f
	case missing:
		return fmt.Errorf("the server answers 404 at every path: check the path of --base-url, or set --backend (tried %s)", tried)
	}
	return fmt.Errorf("cannot detect the server's protocol: set --backend (tried %s)", tried)
}

// A view identifies a page by its path and by the header carrying the API key.
type view struct{ path, keyName string }

// look returns a page and fetches the page on first use.
func (c *client) look(ctx context.Context, pages map[view]*page, path string) (*page, error) {
	v := view{path, c.keyName}
	if pages[v] == nil {
		p, err := c.fetch(ctx, path)
		if err != nil {
			return nil, err
		}
		pages[v] = p
	}
	return pages[v], nil
}

// best returns the Kind of c, or a better Kind the server also speaks.
func (c *client) best(ctx context.Context, evidence string) (Kind, string) {
	if c.prefer != nil {
		if other, further := c.prefer(ctx, c); other != nil {
			return *other, evidence + ", " + further
		}
	}
	return c.Kind, evidence
}

// openAPIPath is the path of the OpenAPI description of servers built on FastAPI.
const openAPIPath = "/openapi.json"

// known returns the first signature of k with the given doubt found on the server, or nil.
func (k *Kind) known(doubt int, look func(path string) (*page, error)) (*signature, error) {
	for i := range k.signatures {
		s := &k.signatures[i]
		if s.doubt != doubt {
			continue
		}
		p, err := look(s.path)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(p.text, []byte(s.holds)) {
			return s, nil
		}
	}
	return nil, nil
}

// A page is the response to a GET request.
type page struct {
	path   string // including the path of the base URL
	status int
	text   []byte // only for status 200
}

func (c *client) fetch(ctx context.Context, path string) (*page, error) {
	req, err := c.Client.NewRequest(http.MethodGet, path, c.headers("*/*"), nil)
	if err != nil {
		return nil, err
	}
	status, text, err := c.roundTrip(req.WithContext(ctx), limit.Page)
	if status == 0 {
		return nil, err
	}
	p := &page{path: req.URL.Path, status: status}
	if status != http.StatusOK || err != nil && len(text) < limit.Page {
		return p, nil // ignore an incomplete page, unless it was cut at the limit
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) == nil {
		text = compact.Bytes()
	}
	p.text = text
	return p, nil
}
