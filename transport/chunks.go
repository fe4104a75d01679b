package transport

import (
	"errors"
	"fmt"
	"io"

	"github.com/tacho-bench/tacho/internal/limit"
)

// chunkDecoder decodes chunked encoding from pieces as they arrive. It replaces the reader
// of net/http, because a stream consists of many small chunks, the pieces have arrival
// times, and each chunk would pass through five readers.
type chunkDecoder struct {
	state  chunkState
	left   int64 // bytes left in the chunk; in the length, the value so far
	digits int8  // digits of the length so far
	extra  int   // ignored bytes: chunk extensions and trailers
}

type chunkState int8

const (
	inLength   chunkState = iota // in the length of a chunk
	inBlanks                     // in blanks after the length
	inExtra                      // in a chunk extension
	afterLine                    // at the LF after the length
	inChunk                      // in the data of a chunk
	afterChunk                   // at the CR after the data
	afterCR                      // at the LF after the data
	inTrailer                    // in a trailer line
	afterLast                    // at the LF of the last line
	chunksOver
)

// mostDigits hex digits fit into 63 bits.
const mostDigits = 15

var errChunk = errors.New("malformed chunked encoding")

// done reports whether the body is complete.
func (c *chunkDecoder) done() bool { return c.state == chunksOver }

// truncated returns the error of a body that ended early: io.ErrUnexpectedEOF if the
// connection was closed.
func (*chunkDecoder) truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// take decodes piece into room. It returns the number of bytes decoded and the number of
// bytes of piece used.
func (c *chunkDecoder) take(room, piece []byte) (n, used int, err error) {
	for used < len(piece) && c.state != chunksOver {
		if c.state != inChunk {
			if err := c.framing(piece[used]); err != nil {
				return n, used, err
			}
			used++
			continue
		}
		if n == len(room) {
			break
		}
		k := copy(room[n:], piece[used:min(int64(len(piece)), int64(used)+c.left)])
		n, used, c.left = n+k, used+k, c.left-int64(k)
		if c.left == 0 {
			c.state = afterChunk
		}
	}
	return n, used, nil
}

// framing handles a byte outside the data of a chunk.
func (c *chunkDecoder) framing(b byte) error {
	switch c.state {
	case inLength:
		return c.length(b)
	case inBlanks, inExtra:
		switch {
		case b == '\r':
			c.state = afterLine
		case b == '\n', c.state == inBlanks && b != ' ' && b != '\t':
			return fmt.Errorf("%w: %q after the length of a chunk", errChunk, b)
		}
		return c.countExtra("a chunk extension")
	case afterLine:
		if b != '\n' {
			return fmt.Errorf("%w: a CR inside a line", errChunk)
		}
		c.extra, c.digits = 0, 0
		if c.state = inChunk; c.left == 0 {
			c.state = inTrailer
		}
	case afterChunk:
		if b != '\r' {
			return fmt.Errorf("%w: a chunk is longer than its length", errChunk)
		}
		c.state = afterCR
	case afterCR:
		if b != '\n' {
			return fmt.Errorf("%w: a chunk is longer than its length", errChunk)
		}
		c.state = inLength
	case inTrailer:
		return c.trailer(b)
	case afterLast:
		if b != '\n' {
			return fmt.Errorf("%w: no LF after the last CR", errChunk)
		}
		c.state = chunksOver
	}
	return nil
}

// length handles a byte of the length of a chunk.
func (c *chunkDecoder) length(b byte) error {
	var digit byte
	switch {
	case b >= '0' && b <= '9':
		digit = b - '0'
	case b >= 'a' && b <= 'f':
		digit = b - 'a' + 10
	case b >= 'A' && b <= 'F':
		digit = b - 'A' + 10
	case c.digits > 0 && b == '\r':
		c.state = afterLine
		return nil
	case c.digits > 0 && b == ';':
		c.state = inExtra
		return nil
	case c.digits > 0 && (b == ' ' || b == '\t'):
		c.state = inBlanks
		return nil
	default:
		return fmt.Errorf("%w: %q in the length of a chunk", errChunk, b)
	}
	if c.digits == mostDigits {
		return fmt.Errorf("%w: the length of a chunk has more than %d digits", errChunk, mostDigits)
	}
	c.digits++
	c.left = c.left<<4 | int64(digit)
	return nil
}

// trailer handles a byte of the trailer, which is ignored. An empty line ends the body.
func (c *chunkDecoder) trailer(b byte) error {
	switch {
	case b == '\r' && c.left == 0:
		c.state = afterLast
	case b == '\n':
		c.left = 0 // the line is empty so far
		return nil
	default:
		c.left = 1
	}
	return c.countExtra("the trailer")
}

// countExtra counts an ignored byte. what names the element for the error.
func (c *chunkDecoder) countExtra(what string) error {
	if c.extra++; c.extra > limit.Header {
		return fmt.Errorf("%w: %s has more than %d bytes", errChunk, what, limit.Header)
	}
	return nil
}
