package metric

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// A Severity is the trustworthiness of a run, or the weight of a reason.
type Severity string

// The severities, from good to bad. A Note does not change the verdict.
const (
	Note     Severity = "NOTE"
	Valid    Severity = "VALID"
	Degraded Severity = "DEGRADED"
	Invalid  Severity = "INVALID"
	Unjudged Severity = "NOT JUDGED" // measured by another tool

	// Predicted is the verdict on a prediction, whatever else is known.
	Predicted Severity = "PREDICTED"
	// PredictedWord begins every sentence about a prediction.
	PredictedWord = "PREDICTED: "
)

// A Verdict says how far the results of a run can be trusted, and why.
type Verdict struct {
	Severity Severity `json:"level"`
	Reasons  []Reason `json:"reasons,omitempty"` // in the order of Rules
}

// A Reason is one finding about a run.
type Reason struct {
	Code     string   `json:"code"` // of the rule
	Severity Severity `json:"level"`
	Text     string   `json:"text"`
	// Figures are the names of the metrics and quantities in doubt ("itl"). If it is empty, all figures
	// are in doubt.
	Figures []string `json:"figures,omitempty"`
	// Unusable reports whether Figures are INVALID. The other figures of the level are usable, so the
	// severity is DEGRADED.
	Unusable bool `json:"unusable,omitempty"`
}

// doubts reports whether the reason is about a figure.
func (r *Reason) doubts(figure string) bool {
	return len(r.Figures) == 0 || slices.Contains(r.Figures, figure)
}

// Voids reports whether a figure of a usable level is not usable. Such a figure is marked or left out.
func (v *Verdict) Voids(figure string) bool { return v.Severity != Invalid && v.Of(figure) == Invalid }

// Of returns the verdict on one figure: a metric ("itl") or a quantity of the level ("request_goodput").
func (v *Verdict) Of(figure string) Severity {
	if v.Severity != Valid && v.Severity != Degraded {
		return v.Severity
	}
	out := Valid
	for i := range v.Reasons {
		switch r := &v.Reasons[i]; {
		case !r.doubts(figure):
		case r.Unusable:
			return Invalid
		case r.Severity == Degraded:
			out = Degraded
		}
	}
	return out
}

// A Rule computes one number from a summary and compares it with thresholds. A number above a threshold
// gives a reason of that severity. A rule with Figures makes these figures unusable and the level
// DEGRADED if its number is above Invalid.
type Rule struct {
	Code            string
	Doc             string // definition of the number, and why it matters
	Unit            string // of the number and the thresholds
	Note            float64
	Degraded        float64
	Invalid         float64
	Figures         []*Metric                      // metrics in doubt; none means every figure
	value           func(*Summary) (float64, bool) // false if the rule does not apply
	text            func(s *Summary, value float64) string
	Action          string // recommended action, the end of a reason
	PredictedAction string // action for a prediction, if different
	// actionFor returns the action for a cause found in the summary. If it is nil or returns "", Action
	// applies.
	actionFor func(*Summary) string
	atEnd     bool // the number is wrong while requests of the level are outstanding
}

// never is a threshold that no value exceeds.
var never = math.Inf(1)

// Rules are all rules in the order of their reasons. All thresholds are in these tables.
var Rules = slices.Concat(recordRules, bufferedRules, textRules, clockRules, networkRules, loadRules, pauseRules, pageRules, idleRules, answerRules, clientRules)

// recordRules examine the records.
var recordRules = []Rule{
	{
		Code: "no-success", Unit: "runs", Note: never, Degraded: never, Invalid: 0,
		Action: "read the causes and try one request by hand",
		Doc:    "1 if no request succeeded. There is nothing to report",
		value:  func(s *Summary) (float64, bool) { return oneIf(s.Completed == 0), true },
		text:   func(s *Summary, _ float64) string { return fmt.Sprintf("none of %d requests succeeded", s.Requests) },
	},
	{
		Code: "failures", Unit: "share", Note: never, Degraded: 0, Invalid: 0.5,
		Action:          "fix the causes and measure again",
		PredictedAction: "change the engine or the load and predict again",
		Doc:             "failed / (completed + failed). Latencies are of the survivors, so any failure flatters them",
		value:           func(s *Summary) (float64, bool) { return ratio(s.Failed, s.Ended()) },
		text: func(s *Summary, v float64) string {
			text := fmt.Sprintf("%d of %d requests failed (%s)", s.Failed, s.Ended(), Percent(v))
			if s.Completed > 0 {
				text += ", so latencies cover only the others"
			}
			return text
		},
	},
	{
		Code: "interrupted", Unit: "runs", Note: never, Degraded: 0, Invalid: never,
		Action: "let it finish, or plan less (--num-prompts, --max-seconds)",
		Doc:    "1 if the run stopped before its plan was complete. The requests cut off are the slow ones",
		value:  func(s *Summary) (float64, bool) { return oneIf(s.Config.Interrupted), true },
		text: func(s *Summary, _ float64) string {
			text := "the run was interrupted before its plan was complete"
			if s.Canceled > 0 { // otherwise unknown, because the process was killed
				text = fmt.Sprintf("the run was interrupted and %d requests in flight were canceled", s.Canceled)
			}
			return text + s.Unsent().leftOut()
		},
	},
	endedEarlyRule, unsentRule, notReceivedRule, turnsRule,
	{
		Code: "lag-median", Unit: "ms", Note: never, Degraded: 5, Invalid: 500,
		Action:    "give the client more CPU or reduce the load",
		actionFor: func(s *Summary) string { return dialAction(s, 50) },
		Doc:       "median of sent - due (of sent - slot if the limit was reached)",
		value:     func(s *Summary) (float64, bool) { return lagAt(s, 50) },
		text:      func(s *Summary, v float64) string { return lagWords(s, "half", 50, v) },
	},
	{
		Code: "lag-p99", Unit: "ms", Note: never, Degraded: 50, Invalid: never,
		Action:    "give the client more CPU or reduce the load",
		actionFor: func(s *Summary) string { return dialAction(s, 99) },
		Doc:       "99th percentile of the same lag. Latencies are correct for the requests as sent; other rules check whether the load differed from the plan",
		value:     func(s *Summary) (float64, bool) { return lagAt(s, 99) },
		text:      func(s *Summary, v float64) string { return lagWords(s, "1 %", 99, v) },
	},
	{
		Code: "drift", Unit: "ms", Note: never, Degraded: 50, Invalid: never,
		Action:    "give the client more CPU or reduce the load",
		actionFor: func(s *Summary) string { return dialAction(s, 99) },
		Doc:       "mean lag of the last tenth of the requests - mean lag of the first tenth. The client falls behind its schedule",
		value: func(s *Summary) (float64, bool) {
			if s.Drift == nil || s.AllAtOnce() {
				return 0, false
			}
			return s.Drift.LastTenthMillis - s.Drift.FirstTenthMillis, true
		},
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the client fell %s behind its schedule during the run", Duration(v))
		},
	},
	{
		Code: "rate", Unit: "share", Note: never, Degraded: 0.02, Invalid: 0.10,
		Action:    "give the client more CPU or reduce the load",
		actionFor: func(s *Summary) string { return dialAction(s, 99) },
		Doc:       fmt.Sprintf("|achieved / scheduled rate - 1|, if the schedule spans at least %d s and the limit was not reached", rateMinSpanS),
		value: func(s *Summary) (float64, bool) {
			if r := s.Rate; !s.LimitBound && r != nil && r.SpanS >= rateMinSpanS && r.ScheduledPerS != nil && r.AchievedPerS != nil {
				return math.Abs(*r.AchievedPerS / *r.ScheduledPerS - 1), true
			}
			return 0, false
		},
		text: func(s *Summary, v float64) string {
			return fmt.Sprintf("the client sent %s req/s instead of the scheduled %s (%s off)",
				Brief(*s.Rate.AchievedPerS), Brief(*s.Rate.ScheduledPerS), Percent(v))
		},
	},
	{
		Code: "limit-bound", Unit: "runs", Note: 0, Degraded: never, Invalid: never,
		Action: "read latencies from due, or raise --max-concurrency",
		Doc:    "1 if the concurrency limit delayed requests sent at a rate. Latencies from due include the wait, classic latencies do not",
		value:  func(s *Summary) (float64, bool) { return oneIf(s.LimitBound && s.Config.RequestRate > 0), true },
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("the limit of %d concurrent requests was reached, so requests may have waited in the client",
				s.Config.MaxConcurrency)
		},
	},
	{
		Code: "retried", Unit: "share", Note: 0, Degraded: 0.05, Invalid: never,
		Action: "raise the keep-alive timeout of the server or its proxy",
		Doc:    "requests that needed a second connection, because the first was closed before it carried a byte / all requests. The server or a proxy drops connections",
		value:  func(s *Summary) (float64, bool) { return ratio(s.RetriedConns, s.Requests) },
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("%d requests needed more than one connection", s.RetriedConns)
		},
	},
	{
		Code: "resent", Unit: "share", Note: never, Degraded: 0, Invalid: never,
		Action: "repeat without --retries to see the failures",
		Doc:    "requests sent more than once, because the plan allows retries / all requests. The server had more load than planned, and only final failures count",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Resent, s.Requests) },
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("%d requests were sent again after a failure; their latencies count from the first attempt", s.Resent)
		},
	},
	{
		Code: "prompt-count", Unit: "share", Note: 0, Degraded: 0.02, Invalid: never,
		Action: "check the tokenizer and the chat template",
		Doc:    "sum of |prompt tokens counted by the server - counted by the workload| / tokens counted by the workload. A small difference is the chat template; a large one means another tokenizer or a changed prompt",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Tokens.Prompt.Off, s.Tokens.Prompt.Asked) },
		text: func(s *Summary, v float64) string {
			p := s.Tokens.Prompt
			return fmt.Sprintf("the server counts %d of %d prompts differently (%s of the tokens, %+d in the worst prompt)",
				p.Differ, p.Requests, Percent(v), p.Worst)
		},
	},
	{
		Code: "input-estimated", Unit: "share", Note: never, Degraded: 0, Invalid: never,
		Action: "set --tokenizer",
		Doc:    "successful requests with an estimated prompt length / all successful requests. Total token throughput is an estimate too",
		value: func(s *Summary) (float64, bool) {
			if !s.Config.InputEstimated {
				return 0, false
			}
			return ratio(s.Tokens.InputByWorkload, s.Completed)
		},
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the input tokens of %s of the requests are estimated", Percent(v))
		},
	},
	{
		Code: "output-count", Unit: "share", Note: 0, Degraded: 0.01, Invalid: never,
		Action: "check ignore_eos and the context length of the server",
		Doc:    "requests that returned another number of tokens than requested / requests with a fixed number of output tokens. The load differed from the plan",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Tokens.Short+s.Tokens.Long, s.Tokens.Exact) },
		text: func(s *Summary, _ float64) string {
			return fmt.Sprintf("of %d requests with a fixed output length, %d returned fewer tokens and %d more",
				s.Tokens.Exact, s.Tokens.Short, s.Tokens.Long)
		},
	},
	{
		Code: "more-events", Unit: "share", Note: 0, Degraded: 0.01, Invalid: never,
		Action: "check the server's events before trusting ITL or TPOT",
		Doc:    "token events beyond the output tokens of their requests / output tokens. One of the two counts is wrong, so ITL or TPOT is wrong",
		value:  func(s *Summary) (float64, bool) { return ratio(s.Tokens.SurplusEvents, s.Tokens.Output) },
		text: func(s *Summary, v float64) string {
			return fmt.Sprintf("%d requests have more token events than output tokens (%s of all tokens)", s.Tokens.MoreEvents, Percent(v))
		},
	},
	unbuffered(Rule{
		Code: "tokens-per-event", Unit: "tokens", Note: 1.02, Degraded: never, Invalid: never,
		Action: "read TPOT instead, and check the count with --tokenizer",
		Doc:    "mean of output tokens / token events. Above 1 an event has several tokens, so ITL is not the time per token, or the server counts too many, so TPOT is wrong",
		value:  func(s *Summary) (float64, bool) { return s.Classic(TokensPerEvent).Mean, true },
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the server counted %s tokens per event, so ITL is the gap between events", Brief(v))
		},
	}),
	{
		Code: "token-sums", Unit: "runs", Note: never, Degraded: never, Invalid: 0,
		Action: "check the usage in the stored records, or count with --tokenizer",
		Doc:    "1 if a sum of tokens is larger than any server can produce. The server's counts are wrong",
		value:  func(s *Summary) (float64, bool) { return oneIf(s.Tokens.Saturated), true },
		text: func(*Summary, float64) string {
			return "the server's token counts add up to more than 2^53"
		},
	},
	{
		Code: "output-by-events", Unit: "share", Note: never, Degraded: 0.01, Invalid: never,
		Action: "enable usage in the server or set --tokenizer",
		Doc:    "requests with one output token counted for each event / successful requests. The count is a lower bound if events contain several tokens",
		value:  func(s *Summary) (float64, bool) { return ratio(countedBy(s, tacho.FromEvents), s.Completed) },
		text: func(_ *Summary, v float64) string {
			return fmt.Sprintf("the output tokens of %s of the requests are a count of events", Percent(v))
		},
	},
	{
		Code: "few-samples", Unit: "percentiles", Note: 0, Degraded: never, Invalid: never, atEnd: true,
		Action: "run longer or read it as a maximum",
		Doc:    "percentiles shown with an effective sample size below ln 0.025 / ln q (368 for p99). They are little more than the maximum",
		value:  func(s *Summary) (float64, bool) { return float64(len(thinPercentiles(s))), true },
		text:   func(s *Summary, _ float64) string { return thtext(s) },
	},
}

// In less than rateMinSpanS seconds, ordinary jitter of the send times changes the rate by several
// percent.
const rateMinSpanS = 1

// Judge applies all rules to a summary. The result depends on the summary alone.
func Judge(s *Summary) Verdict { return judge(s, func(*Rule) bool { return true }) }

// JudgeSoFar applies the rules to a summary of the requests that have finished so far. It leaves out
// the rules that need the end of the level. A rule does not apply if its input is missing.
func JudgeSoFar(s *Summary) Verdict { return judge(s, func(r *Rule) bool { return !r.atEnd }) }

// JudgeBy applies the rules with the given codes.
func JudgeBy(s *Summary, codes []string) Verdict {
	return judge(s, func(r *Rule) bool { return slices.Contains(codes, r.Code) })
}

func judge(s *Summary, applies func(*Rule) bool) Verdict {
	v := Verdict{Severity: Valid}
	for i := range Rules {
		if !applies(&Rules[i]) {
			continue
		}
		if reason, found := Rules[i].ask(s); found {
			v.Reasons = append(v.Reasons, reason)
		}
	}
	v.Reasons = append(v.Reasons, s.Config.Known...)
	for i := range v.Reasons {
		switch r := v.Reasons[i].Severity; {
		case r == Invalid, r == Degraded && v.Severity == Valid:
			v.Severity = r
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
	do := r.Action
	if s.Config.Predicted && r.PredictedAction != "" {
		do = r.PredictedAction
	}
	if r.actionFor != nil {
		do = cmp.Or(r.actionFor(s), do)
	}
	out := Reason{Code: r.Code, Severity: severity, Text: r.text(s, value), Figures: r.figures(s)}
	if severity == Invalid && len(out.Figures) > 0 {
		out.Severity, out.Unusable = Degraded, true
		out.Text += "; " + usable(out.Figures)
	}
	out.Text += ": " + do
	return out, true
}

// usable says which figures of a level are usable, if some are not.
func usable(doubted []string) string {
	var yes, no []string
	for _, m := range Classic {
		to := &yes
		if slices.Contains(doubted, m.Name) {
			to = &no
		}
		*to = append(*to, strings.ToUpper(m.Name))
	}
	if slices.Contains(doubted, goodputQuantity) {
		no = append(no, "goodput")
	}
	verb := "is"
	if len(no) > 1 {
		verb = "are"
	}
	return fmt.Sprintf("%s %s not usable, %s are", list(no), verb, list(append(yes, "throughput")))
}

// list joins words with commas and "and".
func list(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " and " + words[last]
}

// figures names the figures in doubt, with the share of stalled requests if stalls are in doubt, and
// goodput if a limit is about a metric in doubt.
func (r *Rule) figures(s *Summary) (out []string) {
	for _, m := range r.Figures {
		out = append(out, m.Name)
	}
	if slices.Contains(out, Stalls.Name) {
		out = append(out, stalledShare)
	}
	if slices.ContainsFunc(s.Config.Goodput, func(slo SLO) bool { return slices.Contains(out, slo.Metric) }) {
		out = append(out, goodputQuantity, GoodputShare)
	}
	return out
}

// goodputQuantity is the name of the quantity that counts the requests within the limits of an SLO.
const goodputQuantity = "request_goodput"

// weigh returns the severity of the highest threshold below value, or Valid.
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

// AllAtOnce reports whether neither a schedule nor the limit paced the requests. The lag is then the
// time to send all of them, which is not a fault.
func (s *Summary) AllAtOnce() bool {
	return !s.LimitBound && (s.Rate == nil || s.Rate.ScheduledPerS == nil)
}

func lagAt(s *Summary, p float64) (float64, bool) {
	m := Lag
	if s.LimitBound {
		m = SendLag
	}
	d := s.Dist(m)
	if d.Stats == nil || s.AllAtOnce() {
		return 0, false
	}
	return d.Stats.Percentile(p), true
}

// dialShare is the share of a lag above which the time to connect is the cause.
const dialShare = 0.5

// dialMillis returns the time to connect at a percentile if it causes the lag at this percentile, and 0
// otherwise. Each lag includes the request's own time to connect, so slow connections belong to the
// late requests.
func dialMillis(s *Summary, p float64) float64 {
	lag, ok := lagAt(s, p)
	d := s.Dist(connect)
	if !ok || d.Stats == nil || d.Stats.Percentile(p) < dialShare*lag {
		return 0
	}
	return d.Stats.Percentile(p)
}

// dialAction returns the action if the time to connect causes the lag.
func dialAction(s *Summary, p float64) string {
	if dialMillis(s, p) == 0 {
		return ""
	}
	return "check the server's listen backlog, connection limit and network"
}

func lagWords(s *Summary, who string, p, v float64) string {
	if dial := dialMillis(s, p); dial > 0 {
		return fmt.Sprintf("%s of requests were sent at least %s late, because connecting took %s", who, Duration(v), Duration(dial))
	}
	return fmt.Sprintf("%s of requests were sent at least %s late", who, Duration(v))
}

// A thinPercentile is a percentile shown with too few samples.
type thinPercentile struct {
	p                 float64
	label             string
	effective, needed int // effective sample size, and its minimum
}

func thinPercentiles(s *Summary) (out []thinPercentile) {
	for _, p := range s.Config.Percentiles {
		for i := range Sections {
			section := &Sections[i]
			d, needed := s.Dist(section.Metric), stat.MinSampleSize(p/100)
			if effective := cmp.Or(d.EffectiveSamples(p), d.N); s.Config.Shows(section) && d.N > 0 && effective < needed {
				out = append(out, thinPercentile{p, section.Label, effective, needed})
			}
		}
	}
	return out
}

// maxThinListed is the number of metrics in the text of few-samples.
const maxThinListed = 4

// thtext names the percentile and the metrics with too few samples. If there are several
// percentiles, it names the most demanding one and the metric with the fewest samples.
func thtext(s *Summary) string {
	all := thinPercentiles(s)
	worst := slices.MaxFunc(all, func(a, b thinPercentile) int {
		return cmp.Or(cmp.Compare(a.needed, b.needed), cmp.Compare(b.effective, a.effective))
	})
	others := slices.ContainsFunc(all, func(t thinPercentile) bool { return t.p != worst.p })
	name := "p" + strconv.FormatFloat(worst.p, 'f', -1, 64)
	if others || len(all) > maxThinListed {
		return fmt.Sprintf("%d percentiles have too few samples (%s %s has effective size %d, needs %d)", len(all), name, worst.label, worst.effective, worst.needed)
	}
	list := make([]string, len(all))
	for i, t := range all {
		list[i] = fmt.Sprintf("%s %d", t.label, t.effective)
	}
	return fmt.Sprintf("%s needs an effective sample size of %d (%s)", name, worst.needed, strings.Join(list, ", "))
}

func countedBy(s *Summary, source tacho.CountSource) int {
	for _, c := range s.Tokens.OutputBy {
		if c.Source == source {
			return c.Requests
		}
	}
	return 0
}

// ratio returns part / whole, or false if whole is 0.
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
