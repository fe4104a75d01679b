package metric

import (
	"fmt"
	"time"

	"github.com/tacho-bench/tacho"
)

// NetworkUse counts effects of the network, and of the server's use of it, that are visible to the
// client.
type NetworkUse struct {
	Retransmitted int `json:"retransmitted,omitempty"` // requests with segments retransmitted by our kernel
	OutOfOrder    int `json:"out_of_order,omitempty"`  // requests with segments of the answer out of order
	Stalls        int `json:"stalls,omitempty"`        // requests with the first tokens together, one delayed acknowledgement after the response headers
	Short         int `json:"short,omitempty"`         // requests with a slightly shorter delay, which a delayed acknowledgement cannot cause
}

// With Nagle's algorithm, a kernel waits for the acknowledgement of the last small segment before it
// sends more. Linux delays acknowledgements by slightly more than 40 ms on a connection that has just
// sent. The first tokens then wait behind the response headers and arrive together.
const (
	delayedAck  = 40 * time.Millisecond
	ackEarly    = 500 * time.Microsecond
	ackLate     = 6 * time.Millisecond
	togetherGap = time.Millisecond
)

func (u *NetworkUse) add(r *tacho.Record) {
	if r.Retransmits > 0 {
		u.Retransmitted++
	}
	if r.OutOfOrder > 0 {
		u.OutOfOrder++
	}
	if len(r.Events) < 2 || r.Head == tacho.Never || r.Events[1].At-r.Events[0].At > togetherGap {
		return
	}
	switch off := r.Events[0].At - r.Head - (delayedAck - ackEarly); {
	case off >= 0 && off < ackEarly+ackLate:
		u.Stalls++
	case off < 0 && off >= -(ackEarly+ackLate):
		u.Short++
	}
}

func (u *NetworkUse) merge(o *NetworkUse) {
	u.Retransmitted, u.OutOfOrder = u.Retransmitted+o.Retransmitted, u.OutOfOrder+o.OutOfOrder
	u.Stalls, u.Short = u.Stalls+o.Stalls, u.Short+o.Short
}

// stallsPerShort is the minimum ratio of delays slightly longer than the delayed acknowledgement to
// delays slightly shorter. Delays caused by the server itself have about as many of both.
const stallsPerShort = 4

// fewestStalls is the minimum number of such delays, because the first token of an answer may take as long by itself.
const fewestStalls = 5

// networkRules check for effects of the network or of the server's use of it.
var networkRules = []Rule{
	{
		Code: "retransmits", Unit: "share", Note: 0, Degraded: never, Invalid: never,
		Action: "check the network path to the server",
		Doc:    "requests with segments retransmitted by our kernel, because they were lost or acknowledged late / all requests. Their TTFT includes the delay",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Network.Retransmitted, s.Requests) },
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the kernel retransmitted segments of %d requests, so these requests reached the server late", s.Network.Retransmitted)
		},
	},
	{
		Code: "out-of-order", Unit: "share", Note: 0, Degraded: never, Invalid: never,
		Action: "check the network path to the server",
		Doc:    "requests with segments of the answer out of order / all requests. Tokens waited for a segment that the network lost or overtook",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Network.OutOfOrder, s.Requests) },
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the network lost or overtook segments of %d answers, and later tokens waited for them", s.Network.OutOfOrder)
		},
	},
	{
		Code: "nagle", Unit: "share", Note: 0.05, Degraded: never, Invalid: never,
		Action: "set TCP_NODELAY on server or proxy",
		Doc:    fmt.Sprintf("requests with the first tokens together, slightly more than %v (a delayed acknowledgement) after the response headers / all requests, if at most a quarter as many have a slightly shorter delay. A server with Nagle's algorithm holds data back", delayedAck),
		value: func(s *Summary) (float64, bool) {
			if s.Network.Stalls < fewestStalls || s.Network.Stalls <= stallsPerShort*s.Network.Short {
				return 0, false
			}
			return ratio(s.Network.Stalls, s.Requests)
		},
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the first tokens of %d answers came together, about %d ms after the headers (Nagle's algorithm with delayed ACKs)", s.Network.Stalls, delayedAck.Milliseconds())
		},
	},
}
