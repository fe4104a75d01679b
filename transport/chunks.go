package transport

import (
	"errors"
	"fmt"
	"io"

	"tacho/internal/limit"
)

// chunks takes the chunks of a body apart, as they come. net/http has a reader
// for that; but a stream is many small chunks, which come in pieces that we have
// the times of, and each would pass through five readers.
type chunks struct {
	state  chunkState
	left   int64 // bytes of a chunk that are still to come; before it begins, how many it will have
	digits int8  // of its length
	extra  int   // bytes of a line that says nothing to us
}

type chunkState int8

const (
	inLength   chunkState = iota // of a chunk
	inBlanks                     // which may stand behind the length
	inExtra                      // or something that we do not know
	afterLine                    // the LF that ends the line
	inChunk                      //
	afterChunk                   // the CR,
	afterCR                      // and the LF
	inTrailer                    // a line behind the last chunk
	afterLast                    // the LF of the last line
	chunksOver
)

// mostDigits of a length fit into 63 bits.
const mostDigits = 15

var errChunk = errors.New("malformed chunked encoding")

// over says that the last byte of the body was taken.
func (c *chunks) over() bool { return c.state == chunksOver }

// cut is why a body ended before its end: where the connection just ended, it was
// cut off.
func (*chunks) cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// take takes the body out of a piece, as far as there is room for it. It says how
// much that is, and how much of the piece is done with.
func (c *chunks) take(room, piece []byte) (n, used int, err error) {
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

// framing is a byte that is not of the body.
func (c *chunks) framing(b byte) error {
	switch c.state {
	case inLength:
		return c.length(b)
	case inBlanks, inExtra:
		switch {
		case b == '\r':
			c.state = afterLine
		case b == '\n', c.state == inBlanks && b != ' ' && b != '\t':
			return fmt.Errorf("%w: %q behind the length of a chunk", errChunk, b)
		}
		return c.more("the head of a chunk")
	case afterLine:
		if b != '\n' {
			return fmt.Errorf("%w: a CR within a line", errChunk)
		}
		c.extra, c.digits = 0, 0
		if c.state = inChunk; c.left == 0 {
			c.state = inTrailer
		}
	case afterChunk:
		if b != '\r' {
			return fmt.Errorf("%w: a chunk is longer than it says", errChunk)
		}
		c.state = afterCR
	case afterCR:
		if b != '\n' {
			return fmt.Errorf("%w: a chunk is longer than it says", errChunk)
		}
		c.state = inLength
	case inTrailer:
		return c.trailer(b)
	case afterLast:
		if b != '\n' {
			return fmt.Errorf("%w: no LF behind the last CR", errChunk)
		}
		c.state = chunksOver
	}
	return nil
}

// length is a byte of the line that a chunk begins with.
func (c *chunks) length(b byte) error {
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

// trailer is a byte of the lines behind the last chunk. Nobody wants them. An
// empty one is the end.
func (c *chunks) trailer(b byte) error {
	switch {
	case b == '\r' && c.left == 0:
		c.state = afterLast
	case b == '\n':
		c.left = 0 // of this line
		return nil
	default:
		c.left = 1
	}
	return c.more("what follows an answer")
}

// more counts a byte that says nothing to us, of what.
func (c *chunks) more(what string) error {
	if c.extra++; c.extra > limit.Header {
		return fmt.Errorf("%w: %s has more than %d bytes", errChunk, what, limit.Header)
	}
	return nil
}
