package metric

import (
	"fmt"
	"math"
	"slices"
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
	// lumpShare is the minimum share of lumps with several events. A server that is late now and then has
	// a few.
	lumpShare = 0.5
	// fastestToken is shorter than any engine needs for a token of one stream.
	fastestToken = 200 * time.Microsecond
	// heldWait is the minimum ratio of the time to the first token and the time of all other tokens if
	// an answer arrives in one piece. minWait is the minimum time to the first token, or between lumps: an
	// answer that takes no time arrives in one piece because it is short.
	heldWait = 10
	minWait  = 5 * time.Millisecond
	// heldShare is the share of buffered answers above which token times are not the server's.
	heldShare = 0.05
)

// Buffering counts streamed answers that arrived in lumps: several events without a pause of
// fastestToken between them. Answers with lumps that a late client may have caused are not counted.
type Buffering struct {
	Answers int   `json:"answers"` // successful streams of several tokens
	Held    Lumps `json:"held"`    // lumps of heldEvents or more, or all together
	Small   Lumps `json:"small"`   // smaller lumps
}

// Lumps counts answers that arrived in lumps.
type Lumps struct {
	Answers int           `json:"answers"`
	Events  int           `json:"events"`
	Lumps   int           `json:"lumps"`
	Span    time.Duration `json:"span_ns"` // sum of the times from the first event to the last
}

// size returns the mean number of events in a lump.
func (l *Lumps) size() float64 { return float64(l.Events) / float64(max(l.Lumps, 1)) }

// pauseMillis returns the mean time between lumps.
func (l *Lumps) pauseMillis() float64 { return millis(l.Span) / float64(max(l.Lumps-l.Answers, 1)) }

// heldMillis returns the time for which a buffer keeps the first event of a lump if the server sends events
// evenly.
func (l *Lumps) heldMillis() float64 { return l.pauseMillis() * (1 - 1/l.size()) }

func (l *Lumps) merge(o *Lumps) {
	l.Answers, l.Events, l.Lumps = l.Answers+o.Answers, l.Events+o.Events, l.Lumps+o.Lumps
	l.Span += min(o.Span, math.MaxInt64-l.Span)
}

func (b *Buffering) add(r *tacho.Record) {
	n := len(r.Events)
	if !r.OK() || n == 0 || r.Output < heldTokens {
		return
	}
	b.Answers++
	lumps, several, large, begin, before := 0, 0, 0, 0, r.Sent
	for i := range n {
		if i+1 < n && r.Events[i+1].At-r.Events[i].At < fastestToken {
			continue
		}
		if lateLump(r, begin, before) {
			return
		}
		if i > begin {
			several++
		}
		if i+1 < n && i+1-begin >= heldEvents { // the last lump is what remains
			large++
		}
		lumps, begin, before = lumps+1, i+1, r.Events[i].At
	}
	span, wait := r.Last()-r.First(), r.First()-r.Sent
	whole := lumps == 1 && wait >= heldWait*span
	// A buffer is passed on when it is full, except the last time. A server that stalled has one large
	// burst only.
	full := lumps > 1 && 4*large >= 3*(lumps-1)
	one := Lumps{1, n, lumps, max(span, 0)}
	switch {
	case wait >= minWait && (whole || full):
		b.Held.merge(&one)
	case lumps > 1 && float64(several) >= lumpShare*float64(lumps) && one.pauseMillis() >= millis(minWait):
		b.Small.merge(&one)
	}
}

// lateLump reports whether the client may have read events together that arrived one by one: the lump that
// begins with an event may have begun half of the pause earlier. The read clock does not know.
func lateLump(r *tacho.Record, begin int, before time.Duration) bool {
	e := &r.Events[begin]
	return e.Coalesced() && r.Clock != tacho.ReadClock && 2*e.Slack.Duration() >= e.At-before
}

func (b *Buffering) merge(o *Buffering) {
	b.Answers += o.Answers
	b.Held.merge(&o.Held)
	b.Small.merge(&o.Small)
}

// heldAnswers returns the share of answers that were held back for long.
func (s *Summary) heldAnswers() (float64, bool) {
	if c := s.Config.Client; s.Clock.Read > 0 && c != nil && stalled(s, c) > heldShare {
		return 0, false // the client may have been late
	}
	if share, in := s.heldBack(&s.Buffering.Held); in != nil && share <= heldBackShare {
		return 0, false // the server sent the bursts
	}
	return ratio(s.Buffering.Held.Answers, s.Buffering.Answers)
}

// buffered reports whether something between server and client buffered the streams, so that token
// times are not the server's.
func (s *Summary) buffered() bool {
	share, ok := s.heldAnswers()
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

// lumpy returns the share of answers in small lumps, if it is large enough to matter.
func (s *Summary) lumpy() (float64, bool) {
	share, ok := ratio(s.Buffering.Small.Answers, s.Buffering.Answers)
	return share, ok && share > heldShare && !s.buffered()
}

// heldBack returns how much the TTFT on a metrics page is below the client's, as a share of the time that a buffer of
// these lumps would add to it. The page is nil if there is none, or if answers came in one lump.
func (s *Summary) heldBack(l *Lumps) (share float64, in *Instruments) {
	held := l.heldMillis() * float64(l.Answers) / float64(max(s.Buffering.Answers, 1)) // in the mean of all answers
	if l.Lumps <= l.Answers || held <= 0 {
		return 0, nil
	}
	for i := range s.Instruments {
		page := &s.Instruments[i]
		ttft := s.At(page.Target, TTFT).Stats
		if page.TTFTMillis == nil || ttft == nil {
			continue
		}
		if back := (ttft.Mean - *page.TTFTMillis - pathMillis) / held; in == nil || back > share {
			share, in = back, page
		}
	}
	return share, in
}

// heldBackShare is the share of a buffer's delay above which the server cannot be its cause.
const heldBackShare = 0.5

// pathMillis is a usual time between the server's clock and the client's, without a buffer.
const pathMillis = 1

// lumpFigures depend on when the first and the last event of an answer pass a buffer.
var lumpFigures = slices.Concat(firstFigures, gapFigures, []*Metric{TPOT})

// bufferedRules check if something between server and client delayed events.
var bufferedRules = []Rule{
	{
		Code: "buffered", Unit: "share", Note: never, Degraded: heldShare, Invalid: 0.5,
		Doc:    fmt.Sprintf("streamed answers that arrived in one piece, or in bursts of %d events or more / streamed answers of %d tokens or more. Events of a burst are less than %v apart. Answers that a late client may have read together are not counted. The rule does not apply if the server's metrics page has the same TTFT. TTFT, TPOT and ITL describe the buffer of a proxy, or a server short of CPU", heldEvents, heldTokens, fastestToken),
		Action: "turn off proxy buffering, or connect directly",
		value:  (*Summary).heldAnswers,
		text: func(s *Summary, v float64) string {
			text := fmt.Sprintf("%s of answers arrived in one piece", Percent(v))
			if size := s.Buffering.Held.size(); size >= 2 {
				text = fmt.Sprintf("%s of answers arrived in bursts of %s events", Percent(v), Brief(math.Round(size)))
			}
			for i := range s.Instruments {
				in := &s.Instruments[i]
				if ttft := s.At(in.Target, TTFT).Stats; in.TTFTMillis != nil && ttft != nil {
					return text + fmt.Sprintf(" (TTFT %s, server %s)", Duration(ttft.Mean), Duration(*in.TTFTMillis))
				}
			}
			return text
		},
	},
	{
		Code: "lumps", Unit: "share", Note: heldShare, Degraded: never, Invalid: never,
		Figures: lumpFigures,
		Doc:     fmt.Sprintf("streamed answers in lumps of fewer than %d events, with several events in half of the lumps / streamed answers of %d tokens or more, counted as in the rule before, if the metrics page of the server has the same TTFT. The server sent the lumps, as with speculative decoding", heldEvents, heldTokens),
		Action:  "the server sends them; compare TPOT instead of ITL",
		value: func(s *Summary) (float64, bool) {
			share, lumpy := s.lumpy()
			back, in := s.heldBack(&s.Buffering.Small)
			return share, lumpy && in != nil && back <= heldBackShare
		},
		text: (*Summary).lumpText,
	},
	{
		Code: "unexplained-lumps", Unit: "share", Note: never, Degraded: heldShare, Invalid: never,
		Figures: lumpFigures,
		Doc:     "the same share, if no metrics page says whether the server sent the lumps. A proxy that holds events back makes TTFT longer and TPOT shorter",
		Action:  "connect directly, or give --metrics-url",
		value: func(s *Summary) (float64, bool) {
			share, lumpy := s.lumpy()
			_, in := s.heldBack(&s.Buffering.Small)
			return share, lumpy && in == nil
		},
		text: func(s *Summary, v float64) string {
			return s.lumpText(v) + ", from the server or a proxy"
		},
	},
	{
		Code: "held-back", Unit: "share", Note: never, Degraded: heldBackShare, Invalid: never,
		Figures: lumpFigures,
		Doc:     "mean TTFT - mean TTFT on the metrics page of the server / the time for which a buffer keeps the first event of a lump, if answers arrive in lumps. The server did not send the lumps",
		Action:  "turn off proxy buffering, or connect directly",
		value: func(s *Summary) (float64, bool) {
			_, lumpy := s.lumpy()
			share, in := s.heldBack(&s.Buffering.Small)
			return share, lumpy && in != nil
		},
		text: func(s *Summary, _ float64) string {
			_, in := s.heldBack(&s.Buffering.Small)
			return fmt.Sprintf("the server's metrics say TTFT %s, but answers arrived after %s in lumps of %s events", Duration(*in.TTFTMillis), Duration(s.At(in.Target, TTFT).Stats.Mean), lumpSize(&s.Buffering.Small))
		},
	},
}

func (s *Summary) lumpText(share float64) string {
	small := &s.Buffering.Small
	return fmt.Sprintf("%s of answers came in lumps of %s events, %s apart", Percent(share), lumpSize(small), Duration(small.pauseMillis()))
}

// lumpSize formats the mean size of small lumps.
func lumpSize(l *Lumps) string { return Brief(l.size()) }
