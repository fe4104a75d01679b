package metric

import (
	"fmt"
	"time"

	"tacho"
)

const (
	// heldTokens is how many tokens an answer must have to tell whether it was held
	// back: a few tokens can share a step of the engine.
	heldTokens = 8
	// heldEvents is how many events that come together were held back. Engines that
	// compute several steps at once, or guess tokens ahead, send ten at most.
	heldEvents = 12
	// fastestToken is less than any engine needs for a token of one stream.
	fastestToken = 200 * time.Microsecond
	// heldWait is how many times as long the first token of a whole answer must have
	// taken as all the others, and leastWait how long at least: an answer that takes no
	// time at all comes whole because it is short.
	heldWait  = 10
	leastWait = 5 * time.Millisecond
	// heldShare is the share of such answers from which on the times of tokens are not
	// the server's.
	heldShare = 0.05
)

// Buffering counts streamed answers that arrived in lumps.
type Buffering struct {
	Answers int `json:"answers"` // successful streams of several tokens
	Held    int `json:"held"`    // of Answers: tokens came in lumps, or all together
	Tokens  int `json:"tokens"`  // of Held
	Lumps   int `json:"lumps"`   // in which these came
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
	// A buffer is full whenever it is passed on, but for the last time. A server that
	// was late has one large lump.
	full := lumps > 1 && 4*large >= 3*(lumps-1)
	if wait >= leastWait && (whole || full) {
		b.Held++
		b.Tokens, b.Lumps = b.Tokens+r.Output, b.Lumps+lumps
	}
}

func (b *Buffering) merge(o *Buffering) {
	b.Answers, b.Held = b.Answers+o.Answers, b.Held+o.Held
	b.Tokens, b.Lumps = b.Tokens+o.Tokens, b.Lumps+o.Lumps
}

// buffered says whether streams were held back on their way, so that the times of
// their tokens are not the server's.
func (s *Summary) buffered() bool {
	share, ok := ratio(s.Buffering.Held, s.Buffering.Answers)
	return ok && share > heldShare
}

// unbuffered is a rule that is not asked if streams were held back: its question is
// about the client or the server, and the cause is between them.
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

// bufferedRule asks whether something held the streams back.
var bufferedRule = Rule{
	Code: "buffered", Unit: "share", Note: never, Degraded: heldShare, Invalid: 0.5,
	Doc: fmt.Sprintf("streamed answers that arrived whole, or in lumps of %d events or more / streamed answers of %d tokens or more. Events of a lump are less than %v apart. TTFT, TPOT and ITL then describe what holds the stream back, not the server", heldEvents, heldTokens, fastestToken),
	Do:  "switch buffering off in proxy, gateway or CDN (nginx: proxy_buffering off), or connect to the server directly; a server that is short of CPU also writes tokens in lumps",
	value: func(s *Summary) (float64, bool) {
		return ratio(s.Buffering.Held, s.Buffering.Answers)
	},
	inWords: func(s *Summary, v float64) string {
		b := s.Buffering
		text := fmt.Sprintf("%s of the answers arrived in lumps of %.0f tokens, not as a stream", percent(v), float64(b.Tokens)/float64(max(b.Lumps, 1)))
		for i := range s.Instruments {
			in := &s.Instruments[i]
			ttft, tpot := s.At(in.Target, TTFT).Stats, s.At(in.Target, TPOT).Stats
			if in.TTFTMillis != nil && in.TPOTMillis != nil && ttft != nil && tpot != nil {
				return text + fmt.Sprintf(" (server: TTFT %.0f ms, TPOT %.1f ms; here: %.0f and %.1f ms)", *in.TTFTMillis, *in.TPOTMillis, ttft.Mean, tpot.Mean)
			}
		}
		return text
	},
}
