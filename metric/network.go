package metric

import (
	"fmt"
	"time"

	"tacho"
)

// NetworkUse is what the network, and the way in which the server uses it, did to
// the requests, as far as it can be seen from here.
type NetworkUse struct {
	Retransmitted int `json:"retransmitted,omitempty"` // requests of which our kernel sent segments again
	OutOfOrder    int `json:"out_of_order,omitempty"`  // requests with segments of the answer out of order
	Stalls        int `json:"stalls,omitempty"`        // requests whose first tokens came together, as long after the head of the answer as a delayed acknowledgement
	Short         int `json:"short,omitempty"`         // requests where that took a little less, which no delayed acknowledgement does
}

// A kernel that has something to send may wait for the acknowledgement of the
// last small segment (Nagle's algorithm), and Linux delays acknowledgements by 40
// ms and a little more on a connection that has just sent. So the first tokens
// wait behind the head of their answer, and come together.
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

// stallsPerShort is how many more waits must be a little longer than the delay than
// a little shorter: those of the server's own have as many of both.
const stallsPerShort = 4

// networkRules name what is the doing of the network or of the server's use of it.
var networkRules = []Rule{
	{
		Code: "retransmits", Unit: "share", Note: 0, Degraded: never, Invalid: never,
		Do:    "look at the network between here and the server: latencies are as its users have them",
		Doc:   "requests of which our kernel sent segments again, for the network had lost them or was slow to acknowledge / all: their TTFT holds that wait",
		value: func(s *Summary) (float64, bool) { return ratio(s.Network.Retransmitted, s.Requests) },
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the network made our kernel send segments of %d requests again, so they reached the server late", s.Network.Retransmitted)
		},
	},
	{
		Code: "out-of-order", Unit: "share", Note: 0, Degraded: never, Invalid: never,
		Do:    "look at the network between here and the server: gaps are as its users have them",
		Doc:   "requests with segments of the answer that came before one that was sent earlier / all: the network lost or overtook that one, and the tokens behind it waited for it",
		value: func(s *Summary) (float64, bool) { return ratio(s.Network.OutOfOrder, s.Requests) },
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the network lost or overtook segments of %d answers, and the tokens behind them waited for these", s.Network.OutOfOrder)
		},
	},
	{
		Code: "nagle", Unit: "share", Note: 0.05, Degraded: never, Invalid: never,
		Do:  "have the server, or the proxy before it, set TCP_NODELAY",
		Doc: fmt.Sprintf("requests whose first tokens came together, %v and a little more after the head of their answer / requests, where those that waited a little less are a quarter of them at most: a server with Nagle's algorithm on holds back what it has until the last is acknowledged, which kernels delay by that time", delayedAck),
		value: func(s *Summary) (float64, bool) {
			if s.Network.Stalls <= stallsPerShort*s.Network.Short {
				return 0, false
			}
			return ratio(s.Network.Stalls, s.Requests)
		},
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the first tokens of %d answers came together, %v and a little more after the head: as of a server that leaves Nagle's algorithm on, and waits for a delayed acknowledgement", s.Network.Stalls, delayedAck)
		},
	},
}
