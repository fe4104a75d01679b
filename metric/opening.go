package metric

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// Opening describes successful answers that begin with events without text, token ids or log probabilities, with or
// without a count. Such an event may be half a character, the announcement of an answer or a heartbeat of a gateway,
// so it is never the first token. If it was one, TTFT is too long and TPOT too short.
type Opening struct {
	Answers   int     `json:"answers"`   // answers whose first such event may have been the first token
	OffMillis float64 `json:"off_ms"`    // largest time from that event to the first token event
	OffShare  float64 `json:"off_share"` // largest possible error of mean, median or p99 of TTFT or TPOT, or of 1 % of the values, as a share
}

// OpeningTime returns how much earlier than the first token event the first token may have arrived. It is 0
// if the server counted no more tokens than the token events carried.
func OpeningTime(r *tacho.Record) time.Duration {
	if len(r.Opening) == 0 || len(r.Events) == 0 {
		return 0
	}
	if u := r.Usage; u != nil && u.Completion > 0 {
		room := u.Completion
		for i := range r.Events {
			room -= max(int(r.Events[i].Tokens), 1)
		}
		if room <= 0 {
			return 0
		}
	}
	return max(r.First()-r.Opening[0].At+r.Opening[0].Slack.Duration(), 0)
}

// opened holds the other possible values of TTFT and TPOT.
type opened struct {
	answers int
	most    time.Duration
	of      [len(openingMetrics)]bounded
}

// openingMetrics depend on the first token. In the record, value is the possible error of the classic metric.
var openingMetrics = [...]struct {
	index int // in Classic
	off   func(r *tacho.Record, value int) off
	other func(*bounded) *stat.Digest
}{
	{indexTTFT, func(r *tacho.Record, _ int) off { return off{less: OpeningTime(r)} }, func(b *bounded) *stat.Digest { return b.low }},
	{indexTPOT, func(r *tacho.Record, _ int) off {
		return off{more: OpeningTime(r) / time.Duration(max(r.Output-1, 1))}
	}, func(b *bounded) *stat.Digest { return b.high }},
}

// add adds a successful record. Call it before the record's values are added to digests.
func (o *opened) add(r *tacho.Record, v values, digests []stat.Digest) {
	early := OpeningTime(r)
	if early > 0 {
		o.answers++
		o.most = max(o.most, early)
	}
	if o.answers == 0 {
		return
	}
	for i, m := range openingMetrics {
		o.of[i].add(m.off, r, v[m.index].Values, &digests[m.index])
	}
}

// merge merges b. digests and others are the digests before they are merged.
func (o *opened) merge(b *opened, digests, others []stat.Digest) {
	o.answers, o.most = o.answers+b.answers, max(o.most, b.most)
	for i, m := range openingMetrics {
		o.of[i].merge(&b.of[i], &digests[m.index], &others[m.index])
	}
}

// summary returns nil if no first token is in doubt.
func (o *opened) summary(s *Summary) *Opening {
	if o.answers == 0 {
		return nil
	}
	out := &Opening{Answers: o.answers, OffMillis: millis(o.most)}
	for i, m := range openingMetrics {
		d, b := s.Dist(Classic[m.index]), &o.of[i]
		if d.Stats == nil || m.other(b) == nil {
			continue
		}
		other := m.other(b).Distribution()
		for _, pair := range [][2]float64{
			{d.Stats.Mean, other.Mean()},
			{d.Stats.Median, other.Median()},
			{d.Stats.Percentile(99), other.Quantile(0.99)},
			{d.Stats.Percentile(99), d.Stats.Percentile(99) - b.slack.percentile(99, d.N)},
		} {
			out.OffShare = max(out.OffShare, math.Abs(pair[0]-pair[1])/max(pair[0], minMillis))
		}
	}
	return out
}

// UncertainShare returns the largest error of the p99 or of 99 % of the values, which is off, as a share of the p99.
func (s *Stats) UncertainShare(off float64) float64 { return uncertain(s, off) }

// NoText counts token events without text, token ids, log probabilities or a count, after the first text of an answer. They
// may be half characters or heartbeats of a gateway.
type NoText struct {
	Events  int `json:"events"`
	Answers int `json:"answers"` // answers with such events
	Unequal int `json:"unequal"` // answers with another number of tokens than of token events, or with events before the first text
}

func (n *NoText) add(r *tacho.Record) {
	events, tokens := 0, 0
	for i := range r.Events {
		tokens += max(int(r.Events[i].Tokens), 1)
		if r.Events[i].Kind == tacho.NoText {
			events++
		}
	}
	if events == 0 {
		return
	}
	n.Events, n.Answers = n.Events+events, n.Answers+1
	if r.OutputFrom == tacho.FromEvents || tokens != r.Output || len(r.Opening) > 0 {
		n.Unequal++
	}
}

// unequalShare is the share of answers with other counts up to which events without text are tokens. The count of
// one answer may be equal by coincidence, if an event has two tokens, but not the counts of all answers. If such events
// come before the first text too, something sends them that are no tokens.
const unequalShare = 0.01

// textRules check whether events without text are tokens.
var textRules = []Rule{openingRule, noTextRule}

var noTextRule = Rule{
	Code: "no-text", Unit: "share", Note: never, Degraded: maxUncertain, Invalid: never,
	Figures: gapFigures,
	Action:  "set --return-token-ids (vLLM)",
	Doc:     fmt.Sprintf("token events without text, token ids, log probabilities or a count after the first text / all token events, if in more than %g %% of the answers with such events the number of tokens differs from the number of token events, or such events also come before the first text. They may be half characters or heartbeats", 100*unequalShare),
	value: func(s *Summary) (float64, bool) {
		n := &s.Tokens.NoText
		if float64(n.Unequal) <= unequalShare*float64(n.Answers) {
			return 0, false
		}
		return ratio(n.Events, s.Events)
	},
	text: func(_ *Summary, v float64) string {
		return fmt.Sprintf("%s of events have no text and may be heartbeats instead of tokens, so ITL is uncertain", Percent(v))
	},
}

// openingRule checks whether the first tokens are known.
var openingRule = Rule{
	Code: "first-token", Unit: "share", Note: 0.005, Degraded: maxUncertain, Invalid: never,
	Figures: slices.Concat(firstFigures, []*Metric{TPOT}),
	Action:  "set --return-token-ids (vLLM)",
	Doc:     fmt.Sprintf("largest possible error of mean, median or p99 of TTFT or TPOT, or of 1 %% of their values / the value, but at least %d ms, if the first event without text, token ids or log probabilities was the first token. The error is 0 if the server counted no more tokens than the events with text carry", minMillis),
	value: func(s *Summary) (float64, bool) {
		if s.Opening == nil {
			return 0, false
		}
		return s.Opening.OffShare, true
	},
	text: func(s *Summary, _ float64) string {
		share, _ := ratio(s.Opening.Answers, s.Dist(TTFT).N)
		return fmt.Sprintf("%s of answers begin with events without text; counted as tokens, they shorten TTFT by up to %s", Percent(share), Duration(s.Opening.OffMillis))
	},
}
