package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tacho"
	"tacho/stat"
)

// A Severity is how far a run can be trusted, and how much a reason weighs.
type Severity string

// The severities, from good to bad. A note is a reason that changes nothing.
const (
	Note     Severity = "NOTE"
	Valid    Severity = "VALID"
	Degraded Severity = "DEGRADED"
	Invalid  Severity = "INVALID"
	Unjudged Severity = "NOT JUDGED" // somebody else measured it

	// Predicted is the verdict on what nobody measured, whatever else is known of it.
	Predicted Severity = "PREDICTED"
	// PredictedWord begins every sentence on it.
	PredictedWord = "PREDICTED: "
)

// A Verdict says how far the numbers of a run can be trusted, and why.
type Verdict struct {
	Severity Severity `json:"level"`
	Reasons  []Reason `json:"reasons,omitempty"` // in the order of Rules
}

// A Reason is one finding about a run.
type Reason struct {
	Code     string   `json:"code"` // of the rule
	Severity Severity `json:"level"`
	Text     string   `json:"text"`
}

// A Rule is one question a run is asked. The answer is a number, and the
// thresholds say what it weighs when it is above them.
type Rule struct {
	Code     string
	Doc      string // what the number is, and why it matters
	Unit     string // of the number and the thresholds
	Note     float64
	Degraded float64
	Invalid  float64
	value    func(*Summary) (float64, bool) // false: the question does not apply
	inWords  func(s *Summary, value float64) string
	Do       string // what to do about it: a reason ends with it
	DoElse   string // the same for a prediction, where that is something else
	// doFor is the same for a cause that the summary shows; nil, or empty, is Do.
	doFor func(*Summary) string
}

// never is the threshold nothing is above.
var never = math.Inf(1)

// Rules are all the questions, in the order their reasons are given. In these
// tables, and only there, are the thresholds.
var Rules = slices.Concat(recordRules, []Rule{bufferedRule}, clockRules, networkRules, loadRules, idleRules, clientRules)

// recordRules ask the records themselves.
var recordRules = []Rule{
	{
		Code: "no-success", Unit: "runs", Note: never, Degraded: never, Invalid: 0,
		Do:      "read the causes, and try one request by hand",
		Doc:     "1 when no request succeeded: there is nothing to report",
		value:   func(s *Summary) (float64, bool) { return oneIf(s.Completed == 0), true },
		inWords: func(s *Summary, _ float64) string { return fmt.Sprintf("none of %d requests succeeded", s.Requests) },
	},
	{
		Code: "failures", Unit: "share", Note: never, Degraded: 0, Invalid: 0.5,
		Do:     "read the causes, and measure again when they are gone",
		DoElse: "read the causes, change the fleet or the load, and predict again",
		Doc:    "failed / (completed + failed): latencies are of the survivors, so any failure flatters them; with half of them gone they say nothing",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Failed, s.Ended()) },
		inWords: func(s *Summary, v float64) string {
			text := fmt.Sprintf("%d of %d requests failed (%s)", s.Failed, s.Ended(), percent(v))
			if s.Completed > 0 {
				text += ", and latencies are of the others"
			}
			return text
		},
	},
	{
		Code: "interrupted", Unit: "runs", Note: never, Degraded: 0, Invalid: never,
		Do:    "let it end by itself, or plan less (--num-prompts, --max-seconds)",
		Doc:   "1 when the run was stopped before its plan was done: slow requests are the ones cut off",
		value: func(s *Summary) (float64, bool) { return oneIf(s.Config.Interrupted), true },
		inWords: func(s *Summary, _ float64) string {
			if s.Canceled == 0 { // or it is not known, because the process was killed
				return "the run was interrupted before its plan was done"
			}
			return fmt.Sprintf("the run was interrupted; %d requests in flight were dropped", s.Canceled)
		},
	},
	{
		Code: "unsent", Unit: "share", Note: never, Degraded: 0, Invalid: 0.05,
		Do:    "raise --max-concurrency, lower the rate, or replace lost agents",
		Doc:   "sessions due before the end of the level that never began / all that were due: latencies from due leave out those that would have waited longest",
		value: func(s *Summary) (float64, bool) { return s.unsentShare() },
		inWords: func(s *Summary, v float64) string {
			return fmt.Sprintf("%d of %d requests that were due were never sent (%s)", s.Config.Unsent, s.Config.Unsent+s.Requests, percent(v))
		},
	},
	{
		Code: "lag-median", Unit: "ms", Note: never, Degraded: 5, Invalid: 500,
		Do:      "give the client more CPU, or ask for less",
		doFor:   func(s *Summary) string { return doForDials(s, 50) },
		Doc:     "median of sent - due (of sent - slot where the limit bound): half of the requests left later than this, and it is a visible part of a short TTFT",
		value:   func(s *Summary) (float64, bool) { return lagAt(s, 50) },
		inWords: func(s *Summary, v float64) string { return lagWords(s, "half", 50, v) },
	},
	{
		Code: "lag-p99", Unit: "ms", Note: never, Degraded: 50, Invalid: never,
		Do:      "give the client more CPU, or ask for less",
		doFor:   func(s *Summary) string { return doForDials(s, 99) },
		Doc:     "99th percentile of the same lag: bursts of our own making, or connections that the server accepted late. Latencies are right for what was sent; whether that was another load the other rules ask",
		value:   func(s *Summary) (float64, bool) { return lagAt(s, 99) },
		inWords: func(s *Summary, v float64) string { return lagWords(s, "one in a hundred", 99, v) },
	},
	{
		Code: "drift", Unit: "ms", Note: never, Degraded: 50, Invalid: never,
		Do:    "give the client more CPU, or ask for less",
		doFor: func(s *Summary) string { return doForDials(s, 99) },
		Doc:   "mean lag of the last tenth - mean lag of the first tenth: the client falls behind its own schedule. Where that makes it another rate, the next rule says so",
		value: func(s *Summary) (float64, bool) {
			if s.Drift == nil || allAtOnce(s) {
				return 0, false
			}
			return s.Drift.LastTenthMillis - s.Drift.FirstTenthMillis, true
		},
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the client fell %.0f ms behind its schedule in the course of the run", v)
		},
	},
	{
		Code: "rate", Unit: "share", Note: never, Degraded: 0.02, Invalid: 0.10,
		Do:    "give the client more CPU, or ask for less",
		doFor: func(s *Summary) string { return doForDials(s, 99) },
		Doc:   fmt.Sprintf("|achieved / scheduled rate - 1|, where the schedule spans at least %d s and the limit did not bind", rateMinSpanS),
		value: func(s *Summary) (float64, bool) {
			if r := s.Rate; !s.LimitBound && r != nil && r.SpanS >= rateMinSpanS && r.ScheduledPerS != nil && r.AchievedPerS != nil {
				return math.Abs(*r.AchievedPerS / *r.ScheduledPerS - 1), true
			}
			return 0, false
		},
		inWords: func(s *Summary, v float64) string {
			return fmt.Sprintf("sent %.2f req/s where the schedule has %.2f (%s off)",
				*s.Rate.AchievedPerS, *s.Rate.ScheduledPerS, percent(v))
		},
	},
	{
		Code: "limit-bound", Unit: "runs", Note: 0, Degraded: never, Invalid: never,
		Do:    "read the latencies from due, or raise --max-concurrency",
		Doc:   "1 when the concurrency limit held back an asked rate: latency from due counts the wait, the classic numbers do not",
		value: func(s *Summary) (float64, bool) { return oneIf(s.LimitBound && s.Config.RequestRate > 0), true },
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the limit of %d concurrent requests was reached, so requests may have waited in the client",
				s.Config.MaxConcurrency)
		},
	},
	{
		Code: "retried", Unit: "share", Note: 0, Degraded: 0.05, Invalid: never,
		Do:    "raise the keep-alive time of the server or of the proxy before it",
		Doc:   "requests that needed another connection, because the server closed the first before it got a byte / all: the server, or something in front of it, drops connections",
		value: func(s *Summary) (float64, bool) { return ratio(s.RetriedConns, s.Requests) },
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("%d requests needed more than one connection", s.RetriedConns)
		},
	},
	{
		Code: "resent", Unit: "share", Note: never, Degraded: 0, Invalid: never,
		Do:    "repeat the run without --retries to see the failures",
		Doc:   "requests sent more than once, because the plan has retries / all: the server had more load than the plan says, and failures that a retry mended are not counted",
		value: func(s *Summary) (float64, bool) { return ratio(s.Resent, s.Requests) },
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("%d requests were sent again after a failure; their latencies count from the first attempt", s.Resent)
		},
	},
	{
		Code: "prompt-count", Unit: "share", Note: 0, Degraded: 0.02, Invalid: never,
		Do:    "check the tokenizer and the chat template",
		Doc:   "sum of |server's - workload's prompt tokens| / workload's: a few are the chat template, more is another tokenizer or another prompt than was meant",
		value: func(s *Summary) (float64, bool) { return ratio(s.Tokens.Prompt.Off, s.Tokens.Prompt.Asked) },
		inWords: func(s *Summary, v float64) string {
			p := s.Tokens.Prompt
			return fmt.Sprintf("server and workload differ on %d of %d prompts, by %s of the tokens and %+d in the worst prompt",
				p.Differ, p.Requests, percent(v), p.Worst)
		},
	},
	{
		Code: "input-estimated", Unit: "share", Note: never, Degraded: 0, Invalid: never,
		Do:  "give a tokenizer (--tokenizer)",
		Doc: "successes whose prompt tokens are an estimate / all: total token throughput is an estimate too",
		value: func(s *Summary) (float64, bool) {
			if !s.Config.InputEstimated {
				return 0, false
			}
			return ratio(s.Tokens.InputByWorkload, s.Completed)
		},
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the input tokens of %s of the requests are estimated", percent(v))
		},
	},
	{
		Code: "output-count", Unit: "share", Note: 0, Degraded: 0.01, Invalid: never,
		Do:    "see that the server honours ignore_eos, and that its context is long enough",
		Doc:   "requests that gave another number of tokens than they were told to / all that were told a number: the load was not the one asked for",
		value: func(s *Summary) (float64, bool) { return ratio(s.Tokens.Short+s.Tokens.Long, s.Tokens.Exact) },
		inWords: func(s *Summary, _ float64) string {
			return fmt.Sprintf("of %d requests that had to give an exact number of tokens %d gave fewer and %d more",
				s.Tokens.Exact, s.Tokens.Short, s.Tokens.Long)
		},
	},
	{
		Code: "more-events", Unit: "share", Note: 0, Degraded: 0.01, Invalid: never,
		Do:    "trust neither of them before it is clear what the server sends in an event",
		Doc:   "token events beyond the output tokens of their requests / output tokens: one of the two counts is wrong, and so is ITL or TPOT",
		value: func(s *Summary) (float64, bool) { return ratio(s.Tokens.SurplusEvents, s.Tokens.Output) },
		inWords: func(s *Summary, v float64) string {
			return fmt.Sprintf("%d requests have more token events than output tokens, %s of all tokens, so ITL and TPOT do not describe the same tokens", s.Tokens.MoreEvents, percent(v))
		},
	},
	unbuffered(Rule{
		Code: "tokens-per-event", Unit: "tokens", Note: 1.02, Degraded: never, Invalid: never,
		Do:    "read TPOT, or the gap by token",
		Doc:   "mean of output tokens / token events: above 1 the server sent several tokens at once, and ITL is not the time of a token",
		value: func(s *Summary) (float64, bool) { return s.Classic(TokensPerEvent).Mean, true },
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the server sent %.2f tokens in an event, so ITL is the gap between events", v)
		},
	}),
	{
		Code: "token-sums", Unit: "runs", Note: never, Degraded: never, Invalid: 0,
		Do:    "look at its usage in the kept records, and count with --tokenizer",
		Doc:   "1 when a sum of tokens is more than any server can have produced: its counts are wrong, and so is every figure made from them",
		value: func(s *Summary) (float64, bool) { return oneIf(s.Tokens.Saturated), true },
		inWords: func(*Summary, float64) string {
			return "the server's token counts add up to more than can be (sums end at 2^53)"
		},
	},
	{
		Code: "output-by-events", Unit: "share", Note: never, Degraded: 0.01, Invalid: never,
		Do:    "ask the server for usage or give a tokenizer",
		Doc:   "successes whose output tokens were counted as one for each event / all: a lower bound where an event holds several tokens",
		value: func(s *Summary) (float64, bool) { return ratio(countedBy(s, tacho.FromEvents), s.Completed) },
		inWords: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the output tokens of %s of the requests are a count of events", percent(v))
		},
	},
	{
		Code: "few-samples", Unit: "percentiles", Note: 0, Degraded: never, Invalid: never,
		Do:      "run longer or read it as a maximum",
		Doc:     "percentiles shown that rest on fewer samples than ln 0.025 / ln q (368 for p99), where samples that resemble their neighbours count as fewer: what is shown is little more than the largest sample",
		value:   func(s *Summary) (float64, bool) { return float64(len(thinPercentiles(s))), true },
		inWords: func(s *Summary, _ float64) string { return thinWords(s) },
	},
}

// Below rateMinSpanS seconds, ordinary jitter of sending is percents of the rate.
const rateMinSpanS = 1

// Judge weighs a summary. It is a function of the summary's facts alone.
func Judge(s *Summary) Verdict { return JudgeBy(s, nil) }

// JudgeBy weighs a summary by the rules of some codes; nil is all of them.
func JudgeBy(s *Summary, codes []string) Verdict {
	v := Verdict{Severity: Valid}
	for i := range Rules {
		if codes != nil && !slices.Contains(codes, Rules[i].Code) {
			continue
		}
		if reason, found := Rules[i].ask(s); found {
			v.Reasons = append(v.Reasons, reason)
		}
	}
	v.Reasons = append(v.Reasons, s.Config.Known...)
	for _, r := range v.Reasons {
		if r.Severity == Invalid || r.Severity == Degraded && v.Severity == Valid {
			v.Severity = r.Severity
		}
	}
	if s.Config.Predicted {
		v.Severity = Predicted
	}
	return v
}

func (r *Rule) ask(s *Summary) (Reason, bool) {
	value, applies := r.value(s)
	severity := r.weigh(value)
	if !applies || severity == Valid {
		return Reason{}, false
	}
	do := r.Do
	if s.Config.Predicted && r.DoElse != "" {
		do = r.DoElse
	}
	if r.doFor != nil {
		do = cmp.Or(r.doFor(s), do)
	}
	return Reason{r.Code, severity, r.inWords(s, value) + ": " + do}, true
}

// weigh is the severity of the highest threshold value is above, or Valid.
func (r *Rule) weigh(value float64) Severity {
	switch {
	case value > r.Invalid:
		return Invalid
	case value > r.Degraded:
		return Degraded
	case value > r.Note:
		return Note
	}
	return Valid
}

// allAtOnce says that nothing paced the requests, neither a schedule nor the
// limit: then a lag is the time it takes to send them, and no fault.
func allAtOnce(s *Summary) bool {
	return !s.LimitBound && (s.Rate == nil || s.Rate.ScheduledPerS == nil)
}

func lagAt(s *Summary, p float64) (float64, bool) {
	m := Lag
	if s.LimitBound {
		m = SendLag
	}
	d := s.Dist(m)
	if d.Stats == nil || allAtOnce(s) {
		return 0, false
	}
	return d.Stats.Percentile(p), true
}

// dialShare is the part of a lag from which on the time to connect is its cause.
const dialShare = 0.5

// dialMillis is the time to connect at a percentile, if it is the cause of the lag
// there, and 0 otherwise. Each lag has the request's own time to connect in it, so
// requests that took long to connect are the late ones.
func dialMillis(s *Summary, p float64) float64 {
	lag, ok := lagAt(s, p)
	d := s.Dist(connect)
	if !ok || d.Stats == nil || d.Stats.Percentile(p) < dialShare*lag {
		return 0
	}
	return d.Stats.Percentile(p)
}

// doForDials is what to do about a lag that is the time to connect.
func doForDials(s *Summary, p float64) string {
	if dialMillis(s, p) == 0 {
		return ""
	}
	return "look at the server's listen backlog, at its limit of connections, and at the network for lost packets"
}

func lagWords(s *Summary, who string, p, v float64) string {
	if dial := dialMillis(s, p); dial > 0 {
		return fmt.Sprintf("%s of the requests were sent %.1f ms late or more, because the server accepted their connections late (time to connect: %.1f ms)", who, v, dial)
	}
	return fmt.Sprintf("%s of the requests were sent %.1f ms late or more, as the client is short of CPU or the rate is beyond it", who, v)
}

// A thinPercentile is a percentile shown that rests on too few samples.
type thinPercentile struct {
	p                float64
	label            string
	n, worth, needed int // samples, independent samples that tell as much, and how many are needed
}

func thinPercentiles(s *Summary) (out []thinPercentile) {
	for _, p := range s.Config.Percentiles {
		for i := range Sections {
			section := &Sections[i]
			d, needed := s.Dist(section.Metric), stat.EnoughFor(p/100)
			if worth := cmp.Or(d.EffectiveSamples(p), d.N); s.Config.Shows(section) && d.N > 0 && worth < needed {
				out = append(out, thinPercentile{p, section.Label, d.N, worth, needed})
			}
		}
	}
	return out
}

// thinWords names the thin percentiles, those of one percentile together.
func thinWords(s *Summary) string {
	var sentences []string
	before := math.NaN()
	for _, t := range thinPercentiles(s) {
		has := fmt.Sprintf("%s has %d", t.label, t.n)
		if t.worth < t.n {
			has = fmt.Sprintf("%d of %s carry as much information as %d", t.n, t.label, t.worth)
		}
		if t.p == before {
			sentences[len(sentences)-1] += ", " + has
			continue
		}
		before = t.p
		sentences = append(sentences, fmt.Sprintf("P%s needs %d independent samples, but %s", strconv.FormatFloat(t.p, 'f', -1, 64), t.needed, has))
	}
	return strings.Join(sentences, "; ")
}

func countedBy(s *Summary, source tacho.CountSource) int {
	for _, c := range s.Tokens.OutputBy {
		if c.Source == source {
			return c.Requests
		}
	}
	return 0
}

// ratio does not apply where there is nothing to have a part of.
func ratio(part, whole int) (float64, bool) {
	if whole == 0 {
		return 0, false
	}
	return float64(part) / float64(whole), true
}

func oneIf(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func percent(share float64) string { return fmt.Sprintf("%.2f %%", 100*share) }
