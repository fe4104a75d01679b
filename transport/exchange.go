package transport

import (
	"net/http"
	"strings"
	"unique"

	"github.com/tacho-bench/tacho"
)

// Exchange describes how to send one request, and the times of the request and its
// response. Times are wall-clock nanoseconds, because the kernel's timestamps are
// CLOCK_REALTIME; 0 means the event did not happen.
type Exchange struct {
	Options tacho.CallOptions // set by the caller

	Conn   int64 // a connection was ready
	Sent   int64 // the first byte of the request left, by the wire clock or the kernel; otherwise the time just before the write
	SentBy int64 // the first byte had left by then: equal to Sent, or the time just after the write
	Wrote  int64 // just after the last byte of the request was written; 0 if the response came first
	Head   int64 // the first byte of the response arrived
	End    int64 // the last byte of the response arrived, or the exchange failed

	Clock       tacho.Clock // clock of Head and the reads
	Retransmits int         // segments retransmitted by our kernel
	OutOfOrder  int         // segments received out of order

	Left   bool // Sent and Wrote are times of the wire clock
	Conns  int  // connections tried; more than 1 if the server had closed the earlier ones before it received a byte
	Reused bool // the last connection had served another request

	Status     int
	Type       string // Content-Type of the response
	Encoding   string // Content-Encoding of the response, although none was requested; empty if none
	Location   string // Location of a redirect
	RetryAfter string // Retry-After of an error response
}

// head copies the needed fields of a response head and drops the rest, which would be most
// of the memory of an open stream. Streams share the string of their type.
func (x *Exchange) head(resp *http.Response) {
	x.Status, x.Type = resp.StatusCode, unique.Make(resp.Header.Get("Content-Type")).Value()
	x.Encoding = resp.Header.Get("Content-Encoding")
	if strings.EqualFold(x.Encoding, "identity") {
		x.Encoding = ""
	}
	if x.Status != http.StatusOK {
		x.Location, x.RetryAfter = resp.Header.Get("Location"), resp.Header.Get("Retry-After")
	}
	resp.Header = nil
}

// Read is the arrival time of a part of a body. The part begins at the end of the previous
// Read.
type Read struct {
	End   int    // offset after its last byte, in the data of the same Consume call
	At    int64  // arrival of its last byte, by the clock of the exchange
	Lag   int32  // nanoseconds from At until the client received the bytes, saturated
	Since int32  // nanoseconds before At when no byte of this receive had arrived, saturated
	Late  bool   // the bytes may have waited in the connection for longer than they do if the client keeps up
	Recv  uint32 // number of the receive in this exchange; equal numbers share a timestamp
	Wire  bool   // At is the exact time of this segment at the network device
}

// Consumer gets the body of a response. Consume is called at the end of the response, and
// earlier only if the buffer is full, so that decoding does not disturb streams in
// progress. data is valid only during the call; reads cover it without gaps. An error ends
// the exchange.
type Consumer interface {
	Consume(data []byte, reads []Read) error
}
