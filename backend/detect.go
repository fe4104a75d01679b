package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"tacho"
	"tacho/internal/limit"
)

// Auto is not a name for Find: it means that Detect asks the server what it is.
const Auto = "auto"

// A sign is a page of a server and what is on it, by which a Kind is known.
type sign struct {
	path  string
	holds string // in the page, with the blanks taken out of its JSON
	doubt int    // signs of less doubt go before others
}

// says is a sign by which a server names itself.
func says(path, holds string) sign { return sign{path: path, holds: holds} }

// shows is a page that servers of other kinds might imitate.
func shows(path, holds string) sign { return sign{path: path, holds: holds, doubt: 1} }

// suggests is a page that many kinds have, and that is all there is to go by.
func suggests(path, holds string) sign { return sign{path: path, holds: holds, doubt: mostDoubt} }

const mostDoubt = 2

// Detect finds out which protocol the server of o.Client speaks best, and says
// by what it knows.
func Detect(ctx context.Context, o Options) (kind Kind, evidence string, err error) {
	pages := map[view]*page{}
	for doubt := range mostDoubt + 1 {
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

// undetected is the error for a server that shows no sign. A Failure has the
// status, if a key is wanted.
func undetected(pages map[view]*page) error {
	var asked []string
	f := &tacho.Failure{Cause: tacho.Status}
	missing := true
	for v, p := range pages {
		asked = append(asked, fmt.Sprintf("GET %s: status %d", p.path, p.status))
		missing = missing && p.status == http.StatusNotFound && p.path != v.path // the address has a path of its own
		if p.status == http.StatusUnauthorized || p.status == http.StatusForbidden {
			f.Status = p.status
		}
	}
	slices.Sort(asked)
	asked = slices.Compact(asked)
	tried := strings.Join(asked, ", ")
	switch {
	case f.Status != 0:
		f.Message = tried
		return f
	case missing:
		return fmt.Errorf("the server answers 404 at every path that was tried: check the path of --base-url, or name the protocol with --backend (%s)", tried)
	}
	return fmt.Errorf("cannot tell what the server is: name its protocol with --backend (%s)", tried)
}

// A view is a page as the server shows it to a key in a certain header.
type view struct{ path, keyName string }

// look is a page, fetched unless it was before.
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

// best is the Kind to use with a server of the client's: that one, or a better
// one that the server speaks, too.
func (c *client) best(ctx context.Context, evidence string) (Kind, string) {
	if c.rather != nil {
		if other, further := c.rather(ctx, c); other != nil {
			return *other, evidence + ", " + further
		}
	}
	return c.Kind, evidence
}

// openAPIPath is where servers built on FastAPI describe themselves.
const openAPIPath = "/openapi.json"

// known is the first of a Kind's signs of that doubt that the server shows; nil
// if it shows none.
func (k *Kind) known(doubt int, look func(path string) (*page, error)) (*sign, error) {
	for i := range k.signs {
		s := &k.signs[i]
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

// A page is what a server answered.
type page struct {
	path   string // with that of the server's address
	status int
	text   []byte // of a 200
}

func (c *client) fetch(ctx context.Context, path string) (*page, error) {
	req, err := c.Client.NewRequest(http.MethodGet, path, c.headers("*/*"), nil)
	if err != nil {
		return nil, err
	}
	status, text, err := c.put(req.WithContext(ctx), limit.Page)
	if status == 0 {
		return nil, err
	}
	p := &page{path: req.URL.Path, status: status}
	if status != http.StatusOK || err != nil && len(text) < limit.Page {
		return p, nil // half a page says nothing, unless it is a long one
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) == nil {
		text = compact.Bytes()
	}
	p.text = text
	return p, nil
}
