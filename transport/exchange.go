package transport

import (
	"net/http"
	"strings"
	"unique"

	"tacho"
)

// An Exchange is how one request is to be sent, and what the connection saw of it
// and its response.
// Times are wall-clock nanoseconds (the kernel stamps CLOCK_REALTIME, so
// everything is on that clock); 0 is a moment that did not come.
type Exchange struct {
	Options tacho.CallOptions // set by the caller

	Conn   int64 // a connection was ready
	Sent   int64 // the first byte of the request left, by the wire clock or the kernel's; or just before it was written
	SentBy int64 // by then that byte had left: Sent, or just after it was written
	Wrote  int64 // just after the last byte of the request was written; 0 too if the answer came before
	Head   int64 // the first byte of the response arrived
	End    int64 // the last byte of the response arrived, or it failed

	Clock       tacho.Clock // what stamped Head and the reads
	Retransmits int         // segments that our kernel sent again
	OutOfOrder  int         // segments that came before one that was sent earlier

	Left   bool // Sent and Wrote are of the wire clock
	Conns  int  // connections tried; above 1 the server had closed the one before it got a byte
	Reused bool // the last one had served another request

	Status     int
	Type       string // Content-Type of the answer
	Encoding   string // Content-Encoding of the answer, which was not asked for; empty is none
	Location   string // of a redirect
	RetryAfter string // of a refusal
}

// head notes what matters of the head of an answer. It is most of what an open
// stream would hold, so the rest is let go; and streams share the name of their type.
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

// A Read says when a stretch of a body arrived. The stretch begins where the
// one before it ended.
type Read struct {
	End   int    // offset just past its last byte, in the data it was handed over with
	At    int64  // when its last byte arrived, by the exchange's clock
	Lag   int32  // nanoseconds from At until our code had it, saturated
	Since int32  // nanoseconds before At when none of this receive had come, saturated
	Late  bool   // it may have lain in the connection for longer than it does if the client is well
	Recv  uint32 // number of the receive in this exchange: equal numbers share a stamp
	Wire  bool   // At is exact: it was seen at the network device, apart from what came later
}

// A Consumer takes the body of a response as it was received. It is called
// when the response is over, and before that only each time so much has piled
// up that it should not be kept: the work of decoding stays out of the way of
// the streams that still run. data is valid during the call only; reads cover
// it without a gap. An error ends the exchange: no more of it is wanted.
type Consumer interface {
	Consume(data []byte, reads []Read) error
}
