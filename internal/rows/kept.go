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
)

// A Place is where a row is. Its 16 bytes are all that stays in memory of a
// row that is kept.
type Place struct {
	offset int64 // in the file whose number is above fileBits
	size   uint32
	Tag    uint32 // for whoever keeps the row
}

// fileBits is how many bits of a place's offset are the offset.
const fileBits = 44

// Kept are rows that can be read again in any order. They stay where they are
// in their files, or in a copy on disk where a file is packed or not JSON.
type Kept struct{ files []*scratch }

// A scratch is a file with rows that are kept, or the copy of one.
type scratch struct {
	path string // of the file, also where this is a copy
	file *os.File
	copy bool
	end  int64  // of the copy
	buf  []byte // of the copy, not yet written
}

// Each reads the rows of one more file, as the function Each does. It also
// tells fn where in the file a row begins, so that fn can keep it.
func (k *Kept) Each(path string, bad *Bad, fn func(row json.RawMessage, offset int64) error) error {
	if err := k.Open(path); err != nil {
		return err
	}
	r := reader{path, bad, fn}
	return errors.Join(unlessEnough(r.rows()), k.Done())
}

// Open begins a file: until the next call, Keep is about its rows.
func (k *Kept) Open(path string) (err error) {
	s := &scratch{path: path, copy: !isPlain(path)}
	if s.copy {
		s.file, err = newCopy()
	} else {
		s.file, err = os.Open(path)
	}
	k.files = append(k.files, s)
	return err
}

// newCopy opens an empty file. It has no name: it is gone with the process,
// however that ends.
func newCopy() (*os.File, error) {
	f, err := os.CreateTemp("", "tacho-trace-*")
	if err != nil {
		return nil, fmt.Errorf("no place for a copy of the trace: %w", err)
	}
	_ = os.Remove(f.Name()) // where an open file cannot be removed, it stays
	return f, nil
}

// isPlain says whether the rows of a file can be read where they are: it is
// JSON, not packed, and has no byte order mark.
func isPlain(path string) bool {
	name := strings.ToLower(path)
	if BareName(name) != name || strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".csv") {
		return false
	}
	f, err := os.Open(path)
	if err != nil {
		return true // the next to open it says why
	}
	defer func() { _ = f.Close() }() // only read
	head := make([]byte, len(byteOrderMark))
	n, _ := io.ReadFull(f, head) // a shorter file has no mark
	return string(head[:n]) != byteOrderMark
}

// Keep keeps a row, or a part of one, that begins at an offset of the file
// last opened.
func (k *Kept) Keep(row []byte, offset int64) (Place, error) {
	if int64(len(row)) > math.MaxUint32 {
		return Place{}, fmt.Errorf("a row of %d bytes", len(row))
	}
	s := k.files[len(k.files)-1]
	if s.copy {
		offset = s.end
		s.end += int64(len(row))
		s.buf = append(s.buf, row...)
	}
	p := Place{offset: int64(len(k.files)-1)<<fileBits | offset, size: uint32(len(row))}
	if len(s.buf) < 1<<20 {
		return p, nil
	}
	return p, k.Done()
}

// Done says that no more rows of the file will be kept: those there are can be
// read.
func (k *Kept) Done() error {
	s := k.files[len(k.files)-1]
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.file.Write(s.buf)
	s.buf = s.buf[:0]
	return err
}

// Guess is about how many rows the file last opened has.
func (k *Kept) Guess() int {
	info, err := k.files[len(k.files)-1].file.Stat()
	if err != nil {
		return 0
	}
	const usualRow = 512
	return int(info.Size() / usualRow)
}

// find is the file of a place, and the offset there.
func (k *Kept) find(p Place) (*scratch, int64) {
	return k.files[p.offset>>fileBits], p.offset & (1<<fileBits - 1)
}

// Read is the row at a place.
func (k *Kept) Read(p Place) ([]byte, error) {
	s, offset := k.find(p)
	row := make([]byte, p.size)
	if _, err := s.file.ReadAt(row, offset); err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	return row, nil
}

// Where tells people the file and the line of a place. Of a file that was
// copied it tells the number of the row instead, if that is not 0.
func (k *Kept) Where(p Place, row uint32) string {
	s, offset := k.find(p)
	switch {
	case !s.copy:
		return fmt.Sprintf("%s%s%d", s.path, lineOf, s.line(offset))
	case row > 0:
		return fmt.Sprintf("%s%s%d", s.path, rowOf, row)
	}
	return s.path
}

// line is the number of the line at an offset.
func (s *scratch) line(offset int64) int {
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
