package rows

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// maxLine limits the length of a line or row. Longer rows do not occur in datasets and must not exhaust the memory.
const maxLine = 64 << 20

// maxWindow limits the memory of a zstd decoder. It is the limit of the zstd command, also with --long and --ultra.
const maxWindow = 128 << 20

// Lines reads the non-empty lines of a file and counts line numbers.
type Lines struct {
	path   string
	file   io.ReadCloser
	buf    *bufio.Reader
	number int
	offset int64 // offset of the last line returned
	end    int64 // offset after all bytes read
	err    error
	long   []byte // a line longer than the buffer
}

// OpenLines opens a file of lines, compressed or not.
func OpenLines(path string) (*Lines, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	return &Lines{path: path, file: f, buf: bufio.NewReaderSize(f, 1<<16)}, nil
}

// Next returns the next line without its line end, or nil at the end of the file. The slice is valid until the next
// call.
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
		l.fail(err)
		return line
	}
	l.long = append(l.long[:0], line...)
	for errors.Is(err, bufio.ErrBufferFull) {
		if line, err = l.buf.ReadSlice('\n'); len(l.long)+len(line) > maxLine {
			l.err = fmt.Errorf("%s:%d: longer than %d MiB: shorten or remove the line", l.path, l.number, maxLine>>20)
			return nil
		}
		l.long = append(l.long, line...)
	}
	l.fail(err)
	return l.long
}

// fail ends the reading, if err is not nil. The error names the file.
func (l *Lines) fail(err error) {
	if l.err = err; err != nil && !errors.Is(err, io.EOF) {
		l.err = fmt.Errorf("%s: %w", l.path, err)
	}
}

// All iterates over the remaining lines.
func (l *Lines) All(yield func([]byte) bool) {
	for line := l.Next(); line != nil; line = l.Next() {
		if !yield(line) {
			return
		}
	}
}

// Number returns the number of the last line returned.
func (l *Lines) Number() int { return l.number }

// Offset returns the offset of the last line returned, in the uncompressed text.
func (l *Lines) Offset() int64 { return l.offset }

// Err returns the error of reading the file.
func (l *Lines) Err() error {
	if errors.Is(l.err, io.EOF) {
		return nil
	}
	return l.err
}

// Close closes the file.
func (l *Lines) Close() { _ = l.file.Close() }

// openFile opens a text file and decompresses it if its name ends in .gz or .zst. openFile skips a byte order mark.
func openFile(path string) (io.ReadCloser, error) {
	f, err := openPacked(path)
	if err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(f, 1<<16)
	if head, _ := in.Peek(len(byteOrderMark)); string(head) == byteOrderMark { // the next read reports an error again
		_, _ = in.Discard(len(byteOrderMark))
	}
	return unpacked{in, f}, nil
}

const byteOrderMark = "\xef\xbb\xbf"

// ReadText returns the first most bytes of a file. cut reports whether the file is longer.
func ReadText(path string, most int) (text string, cut bool, err error) {
	f, err := openFile(path)
	if err != nil {
		return "", false, err
	}
	defer func() { _ = f.Close() }()
	var b strings.Builder
	if _, err := io.Copy(&b, io.LimitReader(f, int64(most)+1)); err != nil {
		return "", false, fmt.Errorf("%s: %w", path, err)
	}
	if text = b.String(); len(text) > most {
		text, cut = text[:most], true
	}
	return strings.ToValidUTF8(text, "\ufffd"), cut, nil
}

func openPacked(path string) (io.ReadCloser, error) {
	f, err := atomicfile.OpenOnce(path)
	if err != nil {
		return nil, err
	}
	switch {
	case strings.HasSuffix(path, ".gz"):
		z, err := gzip.NewReader(f)
		if err != nil {
			_ = f.Close() // report the first error
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return unpacked{z, f}, nil
	case strings.HasSuffix(path, ".zst"):
		z, err := zstd.NewReader(f, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			_ = f.Close() // report the first error
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return unpacked{z, closer{z, f}}, nil
	}
	return f, nil
}

// unpacked is a decompressed stream and its file.
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

// UncompressedName returns the name of a file without the extension of its compression.
func UncompressedName(path string) string {
	return strings.TrimSuffix(strings.TrimSuffix(path, ".gz"), ".zst")
}
