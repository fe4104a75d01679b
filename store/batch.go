package store

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"runtime"
)

// A batch is a number of consecutive lines and their values.
type batch[T any] struct {
	lines   [][]byte
	values  []*T
	errs    []error
	decoded chan struct{} // closed when values and errs are set
	failed  error         // the error that ended the reading after these lines
}

// batchBytes is the approximate size of a batch: large enough that the handover costs little, and small
// enough that the batches in progress need little memory.
const batchBytes = 64 << 10

// inOrder decodes lines on all CPUs, because decoding is most of the work of reading a run, and passes
// them to use in order until use returns false. An empty line has a nil value. An incomplete last line
// is skipped unless the file is known to be complete.
func inOrder[T any](in *bufio.Reader, whole bool, decode func([]byte, *T) error, use func(*T, error) bool) error {
	batches := make(chan *batch[T], runtime.NumCPU()) // batches in progress
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
		for range batches { // the reader stops before its file is closed
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
		var rest []byte // rest of the last line
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
