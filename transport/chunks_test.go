package transport

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net/http/httputil"
	"testing"
	"testing/iotest"
)

// The decoder returns the same body as net/http however the bytes are cut, and rejects
// what net/http rejects.
func FuzzChunks(f *testing.F) {
	for _, s := range []string{
		"5\r\nhello\r\n6;x=y\r\n world\r\n0\r\n\r\n",
		"A\r\n0123456789\r\n0 \r\n\r\n",
		"0\r\n\r\n",
		"5\r\nhello\r\n0\r\n",
		"5\r\nhel",
		"5\r\nhello",
		"5\r\nhelloXX0\r\n\r\n",
		"5\nhello\r\n0\r\n\r\n",
		"5\r\nhello\n0\r\n\r\n",
		"zz\r\n",
		"\r\n",
		"-1\r\n",
		"0x5\r\nhello\r\n",
		"fffffffffffffffff\r\n",
		"ffffffffffffffff\r\nx",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, b []byte, size uint8) {
		want, wantErr := io.ReadAll(httputil.NewChunkedReader(bytes.NewReader(b)))
		for name, r := range map[string]io.Reader{
			"whole":        bytes.NewReader(b),
			"byte by byte": iotest.OneByteReader(bytes.NewReader(b)),
		} {
			got, err := decoded(r, int(size))
			if ended := errors.Is(err, io.EOF); ended && wantErr != nil {
				t.Errorf("%s: %q was taken; net/http: %v", name, b, wantErr)
			} else if ended && !bytes.Equal(got, want) {
				t.Errorf("%s: %q of %q, want %q", name, got, b, want)
			} else if !ended && wantErr == nil && whole(b) {
				t.Errorf("%s: %q: %v", name, b, err)
			}
		}
	})
}

// whole reports whether the trailer is complete, which net/http does not check.
func whole(b []byte) bool {
	r := bufio.NewReader(bytes.NewReader(b))
	_, _ = io.Copy(io.Discard, httputil.NewChunkedReader(r))
	rest, _ := io.ReadAll(r)
	return bytes.HasPrefix(rest, []byte("\r\n"))
}

// decoded decodes r piece by piece, into a buffer of size room.
func decoded(r io.Reader, room int) (got []byte, err error) {
	var c chunkDecoder
	piece, to := make([]byte, 4096), make([]byte, 1+room)
	for !c.done() {
		k, err := r.Read(piece)
		if err != nil {
			return got, c.truncated(err)
		}
		for used := 0; used < k && !c.done(); {
			n, u, err := c.take(to, piece[used:k])
			got = append(got, to[:n]...)
			if used += u; err != nil {
				return got, err
			}
		}
	}
	return got, io.EOF
}

func BenchmarkChunks(b *testing.B) {
	one := []byte("64\r\n" + string(bytes.Repeat([]byte("x"), 98)) + "\n\n" + "\r\n")
	var c chunkDecoder
	p := make([]byte, 4096)
	b.ReportAllocs()
	for b.Loop() {
		if n, used, err := c.take(p, one); n != 100 || used != len(one) || err != nil {
			b.Fatal(n, used, err)
		}
	}
}
