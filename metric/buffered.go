package metric

import (
	"fmt"
	"time"

	"github.com/tacho-bench/tacho"
)

const (
	// heldTokens is the minimum length of an answer to check, because a few tokens can share a step of
	// the engine.
	heldTokens = 8
	// heldEvents is the minimum number of events in a burst. Engines that compute several steps at
	// once, or use speculative decoding, send ten events at most.
	heldEvents = 12
	// fastestToken is shorter than any engine needs for a token of one stream.
	fastestToken = 200 * time.Microsecond
	// heldWait is the minimum ratio of the time to the first token and the time of all other tokens if
	// an answer arrives in one piece. minWait is the minimum time to the first token: an answer that
	// takes no time arrives in one piece because it is short.
	heldWait = 10
	minWait  = 5 * time.Millisecond
	// heldShare is the share of buffered answers above which token times are not the server's.
	heldShare = 0.05
)

// Buffering counts streamed answers that arrived in bursts.
type Buffering struct {
	Answers int `json:"answers"` // successful streams of several tokens
	Held    int `json:"held"`    // of Answers: tokens arrived in bursts, or all together
	Tokens  int `json:"tokens"`  // in Held
	Lumps   int `json:"lumps"`   // bursts in Held
}

func (b *Buffering) add(r *tacho.Record) {
	if !r.OK() || len(r.Events) == 0 || r.Output < heldTokens {
		return
	}
	b.Answers++
	lumps, large, begin := 1, 0, 0
	for i := range r.Events[1:] {
		if r.Events[i+1].At-r.Events[i].At >= fastestToken {
			if i+1-begin >= heldEvents {
				large++
			}
			lumps, begin = lumps+1, i+1
		}
	}
	span, wait := r.Last()-r.First(), r.First()-r.Sent
	whole := lumps == 1 && wait >= heldWait*span
	// A buffer is passed on when it is full, except the last time. A server that stalled has one large
	// burst only.
	full := lumps > 1 && 4*large >= 3*(lumps-1)
	if wait >= minWait && (whole || full) {
		b.Held++
		b.Tokens, b.Lumps = b.Tokens+r.Output, b.Lumps+lumps
	}
}

func (b *Buffering) merge(o *Buffering) {
	b.Answers, b.Held = b.Answers+o.Answers, b.Held+o.Held
	b.Tokens, b.Lumps = b.Tokens+o.Tokens, b.Lumps+o.Lumps
}

// buffered reports whether something between server and client buffered the streams, so that token
// times are not the server's.
func (s *Summary) buffered() bool {
	share, ok := ratio(s.Buffering.Held, s.Buffering.Answers)
	return ok && share > heldShare
}

// unbuffered disables a rule if streams were buffered, because the rule would blame the client or the
// server for a cause between them.
func unbuffered(r Rule) Rule {
	value := r.value
	r.value = func(s *Summary) (float64, bool) {
		if s.buffered() {
			return 0, false
		}
		return value(s)
	}
	return r
}

// bufferedRule checks if a proxy buffered the streams.
var bufferedRule = Rule{
	Code: "buffered", Unit: "share", Note: never, Degraded: heldShare, Invalid: 0.5,
	Doc:    fmt.Sprintf("streamed answers that arrived in one piece, or in bursts of %d events or more / streamed answers of %d tokens or more. Events of a burst are less than %v apart. TTFT, TPOT and ITL then describe the buffer and not the server. Typical causes are a proxy, gateway or CDN (nginx: set proxy_buffering off). A server short of CPU also writes tokens in bursts", heldEvents, heldTokens, fastestToken),
	Action: "turn off proxy buffering, or connect directly",
	value: func(s *Summary) (float64, bool) {
		return ratio(s.Buffering.Held, s.Buffering.Answers)
	},
	text: func(s *Summary, v float64) string {
		b := s.Buffering
		text := fmt.Sprintf("%s of answers arrived in bursts of %.0f tokens", Percent(v), float64(b.Tokens)/float64(max(b.Lumps, 1)))
		for i := range s.Instruments {
			in := &s.Instruments[i]
			if ttft := s.At(in.Target, TTFT).Stats; in.TTFTMillis != nil && ttft != nil {
				return text + fmt.Sprintf(" (TTFT %.0f ms, server %.0f ms)", ttft.Mean, *in.TTFTMillis)
			}
		}
		return text
	},
}
