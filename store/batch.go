package store

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
)

// A batch is a number of consecutive lines and their values.
type batch[T any] struct {
	lines   [][]byte // until they are decoded
	size    int      // bytes
	values  []*T
	errs    []error
	decoded chan struct{} // closed when values and errs are set
	failed  error         // the error that ended the reading after these lines
}

// batchBytes is the approximate size of a batch: large enough that the handover costs little, and small
// enough that the batches in progress need little memory.
const batchBytes = 64 << 10

// maxLine is the maximum length of a line. The longest record, with the most events and the longest text that backends
// accept, is shorter.
const maxLine = 128 << 20

// inOrder decodes lines on all CPUs, because decoding is most of the work of reading a run, and passes
// them to use in order until use returns false. An empty line has a nil value. An incomplete last line
// is skipped unless the file is known to be complete.
func inOrder[T any](in *bufio.Reader, whole bool, decode func([]byte, *T) error, use func(*T, error) bool) error {
	batches := make(chan *batch[T], runtime.NumCPU()) // batches in progress
	enough := make(chan struct{})
	go readBatches(in, whole, decode, batches, enough)
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

// readBatches reads batches and starts to decode them, until the end of the file or until enough is closed.
func readBatches[T any](in *bufio.Reader, whole bool, decode func([]byte, *T) error, batches chan<- *batch[T], enough <-chan struct{}) {
	defer close(batches)
	for {
		b := readBatch[T](in, whole)
		long := b.size > 16*batchBytes
		if long { // decode one at a time, because of the memory
			b.decode(decode)
		}
		select {
		case batches <- b:
			if !long {
				go b.decode(decode)
			}
		case <-enough:
			return
		}
		if b.failed != nil {
			return
		}
	}
}

func readBatch[T any](in *bufio.Reader, whole bool) *batch[T] {
	b := &batch[T]{decoded: make(chan struct{})}
	text := make([]byte, batchBytes, batchBytes+batchBytes/8) // room for the rest of the last line
	var n int
	n, b.failed = io.ReadFull(in, text)
	text = text[:n]
	if b.failed == nil {
		text, b.failed = readRest(in, text)
	}
	b.size = len(text)
	for line := range bytes.Lines(text) {
		if whole || line[len(line)-1] == '\n' {
			b.lines = append(b.lines, line)
		}
	}
	return b
}

// readRest appends the rest of the last line to text.
func readRest(in *bufio.Reader, text []byte) ([]byte, error) {
	for begin := len(text); ; {
		piece, err := in.ReadSlice('\n')
		text = append(text, piece...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return text, err
		}
		if len(text)-begin > maxLine {
			return text[:begin], fmt.Errorf("a line is longer than %d MiB", maxLine>>20)
		}
	}
}

func (b *batch[T]) decode(decode func([]byte, *T) error) {
	b.values, b.errs = make([]*T, len(b.lines)), make([]error, len(b.lines))
	for i, line := range b.lines {
		if len(bytes.TrimSpace(line)) > 0 {
			b.values[i] = new(T)
			b.errs[i] = decode(line, b.values[i])
		}
	}
	b.lines = nil
	close(b.decoded)
}
