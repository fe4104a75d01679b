package store

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
)

// A batch is some lines that follow each other, and what they say.
type batch[T any] struct {
	lines   [][]byte
	values  []*T
	errs    []error
	decoded chan struct{} // closed when values and errs are there
	failed  error         // what ended the reading after these lines
}

// batchBytes is about how long a batch is: long enough that handing it over costs
// nothing, and short enough that those under way need little memory.
const batchBytes = 64 << 10

// inOrder decodes lines on all processors, for that is most of the work of
// reading a run, and hands them to use in their order until it says false. An
// empty line has no value. A last line without an end is left out,
// unless the file is known to be whole.
func inOrder[T any](in *bufio.Reader, whole bool, decode func([]byte, *T) error, use func(*T, error) bool) error {
	batches := make(chan *batch[T], runtime.NumCPU()) // which are under way
	enough := make(chan struct{})
	go func() {
		defer close(batches)
		for {
			b := readBatch[T](in, whole)
			select {
			case batches <- b:
				go b.decode(decode)
			case <-enough:
				return
			}
			if b.failed != nil {
				return
			}
		}
	}()
	defer func() {
		close(enough)
		for range batches { // the reader is gone before its file is closed
		}
	}()
	for b := range batches {
		<-b.decoded
		for i, v := range b.values {
			if !use(v, b.errs[i]) {
				return nil
			}
		}
		if b.failed != nil && !errors.Is(b.failed, io.EOF) && !errors.Is(b.failed, io.ErrUnexpectedEOF) {
			return b.failed
		}
	}
	return nil
}

func readBatch[T any](in *bufio.Reader, whole bool) *batch[T] {
	b := &batch[T]{decoded: make(chan struct{})}
	text := make([]byte, batchBytes, batchBytes+batchBytes/8) // room for the rest of the last line
	var n int
	n, b.failed = io.ReadFull(in, text)
	text = text[:n]
	if b.failed == nil {
		var rest []byte // of the last line
		rest, b.failed = in.ReadBytes('\n')
		text = append(text, rest...)
	}
	for line := range bytes.Lines(text) {
		if whole || line[len(line)-1] == '\n' {
			b.lines = append(b.lines, line)
		}
	}
	return b
}

func (b *batch[T]) decode(decode func([]byte, *T) error) {
	b.values, b.errs = make([]*T, len(b.lines)), make([]error, len(b.lines))
	for i, line := range b.lines {
		if len(bytes.TrimSpace(line)) > 0 {
			b.values[i] = new(T)
			b.errs[i] = decode(line, b.values[i])
		}
	}
	close(b.decoded)
}
