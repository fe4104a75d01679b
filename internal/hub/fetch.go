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

// plainName matches commits and blob names, because both become parts of paths.
var plainName = regexp.MustCompile(`^[A-Za-z0-9][\w-]{0,127}$`)

// stallTimeout is the time without data after which a download fails.
const stallTimeout = 60 * time.Second

// fileInfo are the properties of a file reported by the hub before the download.
type fileInfo struct {
	etag string
	size int64 // -1 if unknown
}

// Fetch returns the path of a repository file in the local cache and downloads the file if necessary. The cache
// uses the layout of Hugging Face's own tools. An interrupted download resumes, in this call or in a later one.
// progress may be nil.
func (h Hub) Fetch(ctx context.Context, r Repo, commit, file string, progress func(done, all int64)) (string, error) {
	if err := r.check(); err != nil {
		return "", err
	}
	if !plainName.MatchString(commit) || !filepath.IsLocal(filepath.FromSlash(file)) {
		return "", fmt.Errorf("%q at %q is not a file of a repository", file, commit)
	}
	if path, ok := h.Cached(r, commit, file); ok {
		return path, nil
	}
	if h.Offline {
		return "", fmt.Errorf("%s of %s is not in the cache %s: %w", file, r.Name, h.Caches()[0], ErrOffline)
	}
	address := r.page(h.endpoint()) + "/resolve/" + commit + "/" + escaped(file)
	info, err := h.stat(ctx, address, r)
	if err != nil {
		return "", err
	}
	repo := filepath.Join(h.Caches()[0], r.folder())
	blob := filepath.Join(repo, "blobs", info.etag)
	if _, err := os.Stat(blob); err != nil {
		if err := h.download(ctx, address, r, blob, info, progress); err != nil {
			return "", err
		}
	}
	link := filepath.Join(repo, "snapshots", commit, filepath.FromSlash(file))
	return link, place(link, blob)
}

// escaped returns the URL path of a file.
func escaped(file string) string {
	parts := strings.Split(file, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return strings.Join(parts, "/")
}

func (h Hub) stat(ctx context.Context, address string, r Repo) (fileInfo, error) {
	response, err := h.send(ctx, http.MethodHead, address, nil, r)
	if err != nil {
		return fileInfo{}, err
	}
	_ = response.Body.Close() // the response to HEAD has no body
	f := fileInfo{size: response.ContentLength}
	tag := response.Header.Get("X-Linked-Etag")
	if tag == "" {
		tag = response.Header.Get("Etag")
	}
	f.etag = strings.Trim(strings.TrimPrefix(tag, "W/"), `"`)
	if n, err := strconv.ParseInt(response.Header.Get("X-Linked-Size"), 10, 64); err == nil {
		f.size = n
	} else if response.StatusCode >= 300 {
		f.size = -1 // the length belongs to the redirect
	}
	if !plainName.MatchString(f.etag) {
		return f, fmt.Errorf("%s: the response has no usable ETag (%q): check that HF_ENDPOINT is a hub", address, tag)
	}
	return f, nil
}

// download downloads a blob. It tries again if the last attempt made progress.
func (h Hub) download(ctx context.Context, address string, r Repo, blob string, info fileInfo, progress func(done, all int64)) error {
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
	if info.size < 0 || have > info.size {
		have = 0 // the partial file may belong to another version
	}
	for have < info.size || info.size < 0 {
		before := have
		have, err = h.downloadRest(ctx, address, r, partial, have, info.size, progress)
		if err == nil {
			break
		}
		if have == 0 {
			return err
		}
		if have <= before || ctx.Err() != nil {
			return fmt.Errorf("%s: the download broke off after %d bytes: %w (run the same command to resume)", address, have, err)
		}
	}
	if err := verify(partial, have, info); err != nil {
		_ = os.Remove(partial.Name()) // the file would stay wrong
		return fmt.Errorf("%s: %w (the file was deleted, try again)", address, err)
	}
	if err := errors.Join(partial.Sync(), partial.Close()); err != nil {
		return err
	}
	return os.Rename(partial.Name(), blob)
}

// downloadRest downloads a file from the end of the partial file and returns the new size of the partial file.
func (h Hub) downloadRest(ctx context.Context, address string, r Repo, partial *os.File, have, size int64, progress func(done, all int64)) (int64, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	stall := time.AfterFunc(stallTimeout, func() { cancel(fmt.Errorf("received no data for %v", stallTimeout)) })
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
		have = 0 // the server sends the file from the start
	} else if from := fmt.Sprintf("bytes %d-", have); !strings.HasPrefix(response.Header.Get("Content-Range"), from) {
		return have, fmt.Errorf("requested the bytes after %d, but the server sent %q", have, response.Header.Get("Content-Range"))
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
		stall.Reset(stallTimeout)
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
			return have, nil // verify reports the error
		case err != nil && ctx.Err() != nil:
			return have, context.Cause(ctx)
		case err != nil:
			return have, err
		}
	}
}

// verify compares a file with the properties reported by the hub. An ETag of 64 digits is the SHA-256 of the file,
// and an ETag of 40 digits is the name of a git blob. Other ETags cannot be verified.
func verify(f *os.File, have int64, info fileInfo) error {
	if info.size >= 0 && have != info.size {
		return fmt.Errorf("received %d bytes, but the hub announced %d", have, info.size)
	}
	var sum hash.Hash
	switch len(info.etag) {
	case 2 * sha256.Size:
		sum = sha256.New()
	case 2 * sha1.Size:
		sum = sha1.New() //nolint:gosec // as above
		_, _ = fmt.Fprintf(sum, "blob %d\x00", have)
	default:
		return nil
	}
	if _, err := hex.DecodeString(info.etag); err != nil {
		return nil //nolint:nilerr // the ETag is not a checksum
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if _, err := io.Copy(sum, f); err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); got != info.etag {
		return fmt.Errorf("the checksum is %s, but the hub announced %s", got, info.etag)
	}
	return nil
}

// place adds a blob to a snapshot as a link, or moves the blob if the system does not allow links.
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
