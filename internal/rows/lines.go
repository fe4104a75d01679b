package rows

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// mostLine bounds a line and a row: a longer one belongs to no dataset, and
// must not fill the memory.
const mostLine = 64 << 20

// Lines reads the lines of a file that have something in them, one after the
// other, and knows the number of each.
type Lines struct {
	file   io.ReadCloser
	buf    *bufio.Reader
	number int
	offset int64 // of the line last given
	end    int64 // of all that was read
	err    error
	long   []byte // a line that did not fit the buffer
}

// OpenLines opens a file of lines, packed or not.
func OpenLines(path string) (*Lines, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return &Lines{file: f, buf: bufio.NewReaderSize(f, 1<<16)}, nil
}

// Next is the next line without its end; nil when there is none. It is good
// until the next call.
func (l *Lines) Next() []byte {
	for l.err == nil {
		line := l.read()
		l.offset = l.end
		l.end += int64(len(line))
		if line = bytes.TrimLeft(line, " \t\r\n"); len(line) > 0 {
			l.offset = l.end - int64(len(line))
			return bytes.TrimRight(line, " \t\r\n")
		}
	}
	return nil
}

func (l *Lines) read() []byte {
	l.number++
	line, err := l.buf.ReadSlice('\n')
	if !errors.Is(err, bufio.ErrBufferFull) {
		l.err = err
		return line
	}
	l.long = append(l.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if line, err = l.buf.ReadSlice('\n'); len(l.long)+len(line) > mostLine {
			l.err = fmt.Errorf("line %d is longer than %d MiB", l.number, mostLine>>20)
			return nil
		}
		l.long = append(l.long, line...)
	}
	l.err = err
	return l.long
}

// All yields the lines to the end.
func (l *Lines) All(yield func([]byte) bool) {
	for line := l.Next(); line != nil; line = l.Next() {
		if !yield(line) {
			return
		}
	}
}

// Number is the number of the line last given.
func (l *Lines) Number() int { return l.number }

// Offset is where the line last given begins, in the unpacked text.
func (l *Lines) Offset() int64 { return l.offset }

// Err is what went wrong with the file itself.
func (l *Lines) Err() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}

// Close lets go of the file.
func (l *Lines) Close() { _ = l.file.Close() } // only read

// openFile opens a file of text for reading, and unpacks it on the way if its
// name ends in .gz or .zst. A byte order mark is left out.
func openFile(path string) (io.ReadCloser, error) {
	f, err := openPacked(path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 1<<16)
	if head, _ := in.Peek(len(byteOrderMark)); string(head) == byteOrderMark { // an error comes again with the next read
		_, _ = in.Discard(len(byteOrderMark)) // it is there
	}
	return unpacked{in, f}, nil
}

const byteOrderMark = "\xef\xbb\xbf"

// ReadText is the text of a file up to most bytes; cut says that there is
// more.
func ReadText(path string, most int) (text string, cut bool, err error) {
	f, err := openFile(path)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }() // only read
	var b strings.Builder
	if _, err := io.Copy(&b, io.LimitReader(f, int64(most)+1)); err != nil {
		return "", false, err
	}
	if text = b.String(); len(text) > most {
		text, cut = text[:most], true
	}
	return strings.ToValidUTF8(text, "\ufffd"), cut, nil
}

func openPacked(path string) (io.ReadCloser, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(path, ".gz"):
		z, err := gzip.NewReader(f)
		if err != nil {
			_ = f.Close() // nothing was read
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return unpacked{z, f}, nil
	case strings.HasSuffix(path, ".zst"):
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1))
		if err != nil {
			_ = f.Close() // nothing was read
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return unpacked{z, closer{z, f}}, nil
	}
	return f, nil
}

// unpacked is a stream and the file it comes from.
type unpacked struct {
	io.Reader
	io.Closer
}

type closer struct {
	z *zstd.Decoder
	f io.Closer
}

func (c closer) Close() error {
	c.z.Close()
	return c.f.Close()
}

// BareName is the name of a file without the ending of its packing.
func BareName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
}
