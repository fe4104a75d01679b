package hub

import (
	"context"
	"crypto/sha1" //nolint:gosec // it is how git names a blob
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// plainName is what a commit and the name of a blob look like: they become
// parts of paths.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][\w-]{0,127}$`)

// stallTime is how long a download may bring nothing before it is given up.
const stallTime = 60 * time.Second

// fileFacts is what the hub tells of a file before it gives it.
type fileFacts struct {
	etag string
	size int64 // -1 unknown
}

// Fetch is where a file of a repository is: in the local cache, or downloaded
// into it, in the layout of Hugging Face's own tools. A download that breaks off
// goes on where it was, now or the next time. progress may be nil.
func (h Hub) Fetch(ctx context.Context, r Repo, commit, file string, progress func(done, all int64)) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if !plainName.MatchString(commit) || !filepath.IsLocal(filepath.FromSlash(file)) {
		return "", fmt.Errorf("%q at %q is not a file of a repository", file, commit)
	}
	if path, ok := h.Have(r, commit, file); ok {
		return path, nil
	}
	if h.Offline {
		return "", fmt.Errorf("%s of %s is not in the cache %s, and %w", file, r.Name, h.caches()[0], ErrOffline)
	}
	address := r.page(h.endpoint()) + "/resolve/" + commit + "/" + escaped(file)
	facts, err := h.facts(ctx, address, r)
	if err != nil {
		return "", err
	}
	repo := filepath.Join(h.caches()[0], r.folder())
	blob := filepath.Join(repo, "blobs", facts.etag)
	if _, err := os.Stat(blob); err != nil {
		if err := h.fill(ctx, address, r, blob, facts, progress); err != nil {
			return "", err
		}
	}
	link := filepath.Join(repo, "snapshots", commit, filepath.FromSlash(file))
	return link, place(link, blob)
}

// escaped is the path of a file as an address has it.
func escaped(file string) string {
	parts := strings.Split(file, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

func (h Hub) facts(ctx context.Context, address string, r Repo) (fileFacts, error) {
	response, err := h.send(ctx, http.MethodHead, address, nil, r)
	if err != nil {
		return fileFacts{}, err
	}
	_ = response.Body.Close() // a head has none
	f := fileFacts{size: response.ContentLength}
	tag := response.Header.Get("X-Linked-Etag")
	if tag == "" {
		tag = response.Header.Get("Etag")
	}
	f.etag = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
	if n, err := strconv.ParseInt(response.Header.Get("X-Linked-Size"), 10, 64); err == nil {
		f.size = n
	} else if response.StatusCode >= 300 {
		f.size = -1 // the length is that of the redirection
	}
	if !plainName.MatchString(f.etag) {
		return f, fmt.Errorf("%s: the hub does not say which version of the file this is (ETag %q): is the endpoint a hub (HF_ENDPOINT)?", address, tag)
	}
	return f, nil
}

// fill downloads a blob. It tries again as long as each try brings something.
func (h Hub) fill(ctx context.Context, address string, r Repo, blob string, facts fileFacts, progress func(done, all int64)) error {
	if err := os.MkdirAll(filepath.Dir(blob), 0o755); err != nil {
		return err
	}
	partial, err := os.OpenFile(blob+".incomplete", os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer partial.Close() //nolint:errcheck // closed below where it matters
	have, err := partial.Seek(0, io.SeekEnd)
	if err != nil {
		return err
	}
	if facts.size < 0 || have > facts.size {
		have = 0 // there is no saying whether it is a part of this
	}
	for have < facts.size || facts.size < 0 {
		before := have
		have, err = h.piece(ctx, address, r, partial, have, facts.size, progress)
		if err == nil {
			break
		}
		if have == 0 {
			return err
		}
		if have <= before || ctx.Err() != nil {
			return fmt.Errorf("%s: broke off after %d bytes; what has arrived is kept, and the same command goes on from there: %w", address, have, err)
		}
	}
	if err := verify(partial, have, facts); err != nil {
		_ = os.Remove(partial.Name()) // what is wrong with it would stay wrong
		return fmt.Errorf("%s: %w: it was thrown away, try again", address, err)
	}
	if err := errors.Join(partial.Sync(), partial.Close()); err != nil {
		return err
	}
	return os.Rename(partial.Name(), blob)
}

// piece downloads a file from where the partial one ends, and returns how much
// of it there is then.
func (h Hub) piece(ctx context.Context, address string, r Repo, partial *os.File, have, size int64, progress func(done, all int64)) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(stallTime, func() { cancel(fmt.Errorf("nothing arrived for %v", stallTime)) })
	defer stall.Stop()
	header := http.Header{}
	if have > 0 {
		header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	response, err := h.send(ctx, http.MethodGet, address, header, r)
	if err != nil {
		return have, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end or given up
	if response.StatusCode != http.StatusPartialContent {
		have = 0 // it begins again
	} else if from := fmt.Sprintf("bytes %d-", have); !strings.HasPrefix(response.Header.Get("Content-Range"), from) {
		return have, fmt.Errorf("asked for what comes after %d bytes, the server sends %q", have, response.Header.Get("Content-Range"))
	}
	if err := partial.Truncate(have); err != nil {
		return have, err
	}
	if _, err := partial.Seek(have, io.SeekStart); err != nil {
		return have, err
	}
	buf := make([]byte, 1<<17)
	for {
		n, err := response.Body.Read(buf)
		stall.Reset(stallTime)
		if _, err := partial.Write(buf[:n]); err != nil {
			return have, err
		}
		have += int64(n)
		if progress != nil {
			progress(have, size)
		}
		switch {
		case errors.Is(err, io.EOF):
			return have, nil
		case size >= 0 && have > size:
			return have, nil // verify says what is wrong
		case err != nil && ctx.Err() != nil:
			return have, context.Cause(ctx)
		case err != nil:
			return have, err
		}
	}
}

// verify holds a file against what the hub said of it. An ETag of 64 digits is
// the SHA-256 of the file, one of 40 the name of a git blob; others say nothing.
func verify(f *os.File, have int64, facts fileFacts) error {
	if facts.size >= 0 && have != facts.size {
		return fmt.Errorf("%d bytes arrived, the hub says %d", have, facts.size)
	}
	var sum hash.Hash
	switch len(facts.etag) {
	case 2 * sha256.Size:
		sum = sha256.New()
	case 2 * sha1.Size:
		sum = sha1.New() //nolint:gosec // as above
		_, _ = fmt.Fprintf(sum, "blob %d\x00", have)
	default:
		return nil
	}
	if _, err := hex.DecodeString(facts.etag); err != nil {
		return nil //nolint:nilerr // it is no sum
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != facts.etag {
		return fmt.Errorf("what arrived has the sum %s, the hub says %s", got, facts.etag)
	}
	return nil
}

// place puts a blob in its place in a snapshot: as a link, or itself where the
// system lets us make no link.
func place(link, blob string) error {
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		return err
	}
	target, err := filepath.Rel(filepath.Dir(link), blob)
	if err != nil {
		return err
	}
	err = os.Symlink(target, link)
	if err == nil || errors.Is(err, os.ErrExist) {
		return nil
	}
	return os.Rename(blob, link)
}
