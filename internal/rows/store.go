package rows

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strings"

	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// A Ref is the position of a stored row. A stored row takes only these 16 bytes of memory.
type Ref struct {
	offset int64 // offset in the file; the bits above fileBits are the file number
	size   uint32
	Tag    uint32 // free for the caller
}

// fileBits is the number of bits for the offset within a file.
const fileBits = 44

// A Store reads rows again in any order. Rows stay in their files. If a file is compressed or not JSON, the Store
// writes the rows to a copy on disk.
type Store struct{ files []*source }

// A source is a file with stored rows, or the copy of such a file.
type source struct {
	path string // path of the original file
	file *os.File
	copy bool
	end  int64  // size of the copy
	buf  []byte // part of the copy not yet written
}

// Each reads the rows of one more file like the function Each. It also passes the offset of the row to fn, for
// Keep.
func (k *Store) Each(path string, bad *Bad, fn func(row json.RawMessage, offset int64) error) error {
	if err := k.Open(path); err != nil {
		return err
	}
	r := reader{path, bad, fn}
	return errors.Join(unlessEnough(r.rows()), k.Done())
}

// Open starts a file. Keep refers to this file until the next Open.
func (k *Store) Open(path string) (err error) {
	s := &source{path: path, copy: !isPlain(path)}
	if s.copy {
		s.file, err = newCopy()
	} else {
		s.file, err = atomicfile.OpenOnce(path)
	}
	k.files = append(k.files, s)
	return err
}

// newCopy opens an empty file without a name, so the file disappears with the process.
func newCopy() (*os.File, error) {
	f, err := os.CreateTemp("", "tacho-trace-*")
	if err != nil {
		return nil, fmt.Errorf("create a copy of the trace: %w", err)
	}
	_ = os.Remove(f.Name()) // best effort: some systems cannot remove an open file
	return f, nil
}

// isPlain reports whether rows can be read directly from the file: JSON, uncompressed and without a byte order
// mark.
func isPlain(path string) bool {
	name := strings.ToLower(path)
	if UncompressedName(name) != name || strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".csv") {
		return false
	}
	f, err := atomicfile.OpenOnce(path)
	if err != nil {
		return true // the next open reports the error
	}
	defer func() { _ = f.Close() }()
	head := make([]byte, len(byteOrderMark))
	n, _ := io.ReadFull(f, head) // a shorter file has no byte order mark
	return string(head[:n]) != byteOrderMark
}

// Keep stores a row, or a part of a row, at an offset of the file last opened.
func (k *Store) Keep(row []byte, offset int64) (Ref, error) {
	if int64(len(row)) > math.MaxUint32 {
		return Ref{}, fmt.Errorf("a row of %d bytes", len(row))
	}
	s := k.files[len(k.files)-1]
	if s.copy {
		offset = s.end
		s.end += int64(len(row))
		s.buf = append(s.buf, row...)
	}
	p := Ref{offset: int64(len(k.files)-1)<<fileBits | offset, size: uint32(len(row))}
	if len(s.buf) < 1<<20 {
		return p, nil
	}
	return p, k.Done()
}

// Done ends the storing of rows of the current file. Its rows can be read now.
func (k *Store) Done() error {
	s := k.files[len(k.files)-1]
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.file.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// Estimate returns the approximate number of rows in the file last opened.
func (k *Store) Estimate() int {
	info, err := k.files[len(k.files)-1].file.Stat()
	if err != nil {
		return 0
	}
	const usualRow = 512
	return int(info.Size() / usualRow)
}

// find returns the file of a Ref and the offset in the file.
func (k *Store) find(p Ref) (*source, int64) {
	return k.files[p.offset>>fileBits], p.offset & (1<<fileBits - 1)
}

// Read returns the row at p.
func (k *Store) Read(p Ref) ([]byte, error) {
	s, offset := k.find(p)
	row := make([]byte, p.size)
	if _, err := s.file.ReadAt(row, offset); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return row, nil
}

// Location returns the file and line of a row for messages. For a copied file, Location returns the row number
// instead, if not 0.
func (k *Store) Location(p Ref, row uint32) string {
	s, offset := k.find(p)
	switch {
	case !s.copy:
		return fmt.Sprintf("%s%s%d", s.path, lineOf, s.line(offset))
	case row > 0:
		return fmt.Sprintf("%s%s%d", s.path, rowOf, row)
	}
	return s.path
}

// line returns the line number at an offset.
func (s *source) line(offset int64) int {
	n := 1
	buf := make([]byte, 1<<16)
	for at := int64(0); at < offset; {
		got, err := s.file.ReadAt(buf[:min(int64(len(buf)), offset-at)], at)
		n += bytes.Count(buf[:got], []byte("\n"))
		if at += int64(got); err != nil {
			break
		}
	}
	return n
}
