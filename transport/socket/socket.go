// Package socket records when each byte of a TCP connection left and arrived. On Linux the
// kernel timestamps the bytes, and a receive thread reads them from the sockets of all
// connections. Other systems have no Clock, and callers use the time of the read.
//
// The package does not know HTTP. Package framing recognizes the bytes that matter to the
// receive thread.
package socket

import (
	"net"
	"time"

	"github.com/tacho-bench/tacho/transport/socket/tap"
)

// ErrNoWire is in the error of OpenTap if segments cannot be timestamped at the network
// device.
var ErrNoWire = tap.ErrUnavailable

// Stats count the segments seen at the network device.
type Stats = tap.Stats

// now is the wall clock. The kernel's timestamps are CLOCK_REALTIME, and only times of the
// same clock can be subtracted.
func now() int64 { return time.Now().UnixNano() }

// Stamp is the arrival time of received bytes.
type Stamp struct {
	At     int64
	Lag    int32 // nanoseconds from At until the client received the bytes, saturated
	Since  int32 // nanoseconds before At when the socket was empty, saturated; 0 is unknown
	Kernel bool  // At is the kernel's time, not the time of the read
	Wire   bool  // At is the time of this segment at the network device
	Waited bool  // the reader waited for the bytes: the socket was empty when the read began
}

// Conn is a TCP connection whose bytes have times. One reader and one writer may use it
// at the same time. Close ends every wait.
type Conn interface {
	net.Conn
	Receiver
	Sender
	Observer
	// Decode passes all bytes received from now on through d. d is called in order and must
	// not wait or use the connection.
	Decode(d Decoder)
}

// A Decoder turns the bytes of the socket into the bytes that Receive returns, such as TLS
// records into their contents.
type Decoder interface {
	// Decode decodes the first used bytes of p, at most one record, and appends the result to
	// dst. The arrival time of p becomes the arrival time of the result. An empty p is the end
	// of the stream. An error, which may be io.EOF, ends receiving.
	Decode(dst, p []byte) (decoded []byte, used int, err error)
}

// Receiver is the receiving half of a Conn.
type Receiver interface {
	// Receive is Read with the time at which the bytes arrived. It returns the bytes of
	// one segment, or the first of them.
	Receive(p []byte) (n int, at Stamp, err error)
	// ReceiveAll waits for bytes and hands over all bytes received.
	ReceiveAll() (Pieces, error)
	// Await waits until Receive would not wait, and returns the number of bytes received.
	Await() int
	// Tell calls f once Receive would not wait, or sooner. f must not wait or use the
	// connection. end reports whether the bytes seem to end a response.
	Tell(f func(end bool))
}

// Sender is the sending half of a Conn. A message is sent by Prepare, Send and Watch; Write
// sends the rest of a message that Send could not send without waiting.
type Sender interface {
	// Prepare must be called before Send. The connection will have sent end bytes in total
	// after Send. relaxedEnd reports whether the end of the response may be delivered a
	// little later, because nothing waits for it.
	Prepare(end int64, relaxedEnd bool)
	// Send writes as much of p as it can without waiting, and asks the kernel for a
	// timestamp. It returns the number of bytes written.
	Send(p []byte) int
	// Watch must be called after Send.
	Watch()
	// LeftBy returns the time at which the last byte of the last Send left, or 0 if the
	// kernel did not report it.
	LeftBy() int64
}

// Observer reports the state of a Conn.
type Observer interface {
	// Waits reports whether Receive would wait.
	Waits() bool
	// Quiet reports whether the peer holds the connection open and sent nothing.
	Quiet() bool
	// Left returns when the first byte after the first before bytes left, and when byte
	// number end left, as seen at the network device.
	Left(before, end uint64) (first, last int64, ok bool)
	// Counters returns the segments retransmitted and the segments received out of order
	// since the last call.
	Counters() (retransmits, outOfOrder int)
}
