package backend

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"tacho/transport"
)

// Auto is the name under which Find does not look: the server is to be asked
// what it is, by Detect.
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

// maxPage bounds how much of a page is looked at.
const maxPage = 1 << 20

// Detect finds out which protocol the server behind a transport speaks best,
// and says by what it knows.
func Detect(ctx context.Context, client *transport.Client, header http.Header) (kind Kind, evidence string, err error) {
	pages := map[string]*page{}
	for doubt := range mostDoubt + 1 {
		for _, k := range Kinds {
			s, err := k.known(doubt, func(path string) (*page, error) {
				if pages[path] == nil {
					p, err := fetch(ctx, client, header, path)
					if err != nil {
						return nil, err
					}
					pages[path] = p
				}
				return pages[path], nil
			})
			if err != nil {
				return Kind{}, "", err
			}
			if s != nil {
				return k, fmt.Sprintf("GET %s has %s", s.path, s.holds), nil
			}
		}
	}
	var asked []string
	for path, p := range pages {
		asked = append(asked, fmt.Sprintf("GET %s: status %d", path, p.status))
	}
	return Kind{}, "", errors.New("cannot tell what the server is: name its protocol with --backend (" + strings.Join(slices.Sorted(slices.Values(asked)), ", ") + ")")
}

// known is the first of a Kind's signs, of those with so much doubt, that the
// server shows; nil if none.
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
	status int
	text   []byte // of a 200
}

func fetch(ctx context.Context, client *transport.Client, header http.Header, path string) (*page, error) {
	req, err := client.NewRequest(http.MethodGet, path, header, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.HTTP().Do(req.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }() // it has been read, or given up
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxPage))
	p := &page{status: resp.StatusCode}
	if err != nil || resp.StatusCode != http.StatusOK {
		return p, nil // half a page says nothing
	}
	var compact bytes.Buffer
	if json.Compact(&compact, text) == nil {
		text = compact.Bytes()
	}
	p.text = text
	return p, nil
}
