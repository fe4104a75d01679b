package workload

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"strings"
)

// A rowPlace is where a row is: 16 bytes for each are all that stays in memory
// of a trace that must be read from several places.
type rowPlace struct {
	offset int64
	size   uint32
	tag    uint32 // what its reader wants to know of it
}

// A scratch is a text that can be read at any place: a file, or a copy of it
// on disk where the file itself is packed or of another form.
type scratch struct {
	file *os.File
	end  int64 // of the copy
	buf  []byte
	copy bool
}

// openScratch opens a file to be read in place, or an empty copy.
func openScratch(path string) (*scratch, error) {
	if isPlain(path) {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		return &scratch{file: f}, nil
	}
	return newScratch()
}

// newScratch opens an empty copy. It has no name: it is gone with the process,
// however that ends.
func newScratch() (*scratch, error) {
	f, err := os.CreateTemp("", "tacho-trace-*")
	if err != nil {
		return nil, fmt.Errorf("no place for a copy of the trace: %w", err)
	}
	_ = os.Remove(f.Name()) // where an open file cannot be removed, it stays
	return &scratch{file: f, copy: true}, nil
}

// isPlain says whether the rows of a file can be read where they are: it is
// JSON, not packed, and has no byte order mark.
func isPlain(path string) bool {
	name := strings.ToLower(path)
	if bareName(name) != name || strings.HasSuffix(name, ".parquet") || strings.HasSuffix(name, ".csv") {
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

// keep is where a row is from now on: where it was in the file, or at the end
// of the copy.
func (s *scratch) keep(row []byte, offset int64) (rowPlace, error) {
	if int64(len(row)) > math.MaxUint32 {
		return rowPlace{}, fmt.Errorf("a row of %d bytes", len(row))
	}
	if !s.copy {
		return rowPlace{offset: offset, size: uint32(len(row))}, nil
	}
	p := rowPlace{offset: s.end, size: uint32(len(row))}
	s.end += int64(len(row))
	if s.buf = append(s.buf, row...); len(s.buf) < 1<<20 {
		return p, nil
	}
	_, err := s.file.Write(s.buf)
	s.buf = s.buf[:0]
	return p, err
}

// guess is about how many rows there are in a file.
func (s *scratch) guess() int {
	info, err := s.file.Stat()
	if err != nil {
		return 0
	}
	const usualRow = 512
	return int(info.Size() / usualRow)
}

// done says that no more rows will be kept: those there are can be read.
func (s *scratch) done() error {
	if len(s.buf) == 0 {
		return nil
	}
	_, err := s.file.Write(s.buf)
	s.buf = nil
	return err
}

// read is the row at a place.
func (s *scratch) read(p rowPlace) ([]byte, error) {
	row := make([]byte, p.size)
	_, err := s.file.ReadAt(row, p.offset)
	return row, err
}

// line is the number of the line at an offset, for who has to say where
// something is wrong.
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
