package metric

import (
	"fmt"
	"time"

	"tacho"
)

const (
	// bufferedTokens is how many tokens an answer must have to tell whether it was held
	// back: a few tokens can share a step of the engine.
	bufferedTokens = 8
	// fastestToken is less than any engine needs for a token of one stream.
	fastestToken = 200 * time.Microsecond
	// bufferedWait is how many times as long the first token must have taken as all the
	// others, and leastWait how long at least: an answer that takes no time at all comes
	// whole because it is short.
	bufferedWait = 10
	leastWait    = 5 * time.Millisecond
	// bufferedShare of the answers is no accident.
	bufferedShare = 0.05
)

// Buffering counts streamed answers that arrived whole.
type Buffering struct {
	Answers int `json:"answers"` // successful streams of several tokens
	Whole   int `json:"whole"`   // of Answers: all tokens came together, long after the request
}

func (b *Buffering) add(r *tacho.Record) {
	if !r.OK() || len(r.Events) == 0 || r.Output < bufferedTokens {
		return
	}
	b.Answers++
	span, wait := r.Last()-r.First(), r.First()-r.Sent
	if span < time.Duration(r.Output-1)*fastestToken && wait >= bufferedWait*span && wait >= leastWait {
		b.Whole++
	}
}

func (b *Buffering) merge(o *Buffering) {
	b.Answers, b.Whole = b.Answers+o.Answers, b.Whole+o.Whole
}

// buffered says whether streams were held back on their way, so that the times of
// their tokens are not the server's.
func (s *Summary) buffered() bool {
	share, ok := ratio(s.Buffering.Whole, s.Buffering.Answers)
	return ok && share > bufferedShare
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
	Code: "buffered", Unit: "share", Note: never, Degraded: bufferedShare, Invalid: 0.5,
	Doc: fmt.Sprintf("streamed answers that arrived whole / streamed answers of %d tokens or more. Whole means less than %v a token, %d times less than the wait for the first token. TTFT, TPOT and ITL then describe what holds the stream back, not the server", bufferedTokens, fastestToken, bufferedWait),
	Do:  "switch buffering off in proxy, gateway or CDN (nginx: proxy_buffering off), or connect to the server directly",
	value: func(s *Summary) (float64, bool) {
		return ratio(s.Buffering.Whole, s.Buffering.Answers)
	},
	inWords: func(s *Summary, v float64) string {
		text := fmt.Sprintf("%s of the answers arrived whole, not as a stream", percent(v))
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
