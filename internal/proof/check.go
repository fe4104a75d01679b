package proof

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// Settings of the server of a check, in the form of its flags.
const (
	FirstToken    = 100 * time.Millisecond
	BetweenTokens = 50 * time.Millisecond
)

// An Effort contains the two loads of a check: streams for token times, and an
// open loop for send times.
type Effort struct{ Streams, Open Load }

// The efforts. After the first second all streams are active.
var (
	Full = Effort{
		Streams: Load{Requests: 200, Rate: 200, Burstiness: math.Inf(1), Tokens: 100},
		Open:    Load{Requests: 2000, Rate: 500, Burstiness: 1, Tokens: 1},
	}
	Quick = Effort{
		Streams: Load{Requests: 100, Rate: 200, Burstiness: math.Inf(1), Tokens: 20},
		Open:    Load{Requests: 500, Rate: 500, Burstiness: 1, Tokens: 1},
	}
)

// String describes the effort and its duration.
func (e Effort) String() string {
	lasts := func(l Load) time.Duration {
		return time.Duration(float64(l.Requests)/l.Rate*float64(time.Second)) + FirstToken + time.Duration(l.Tokens-1)*BetweenTokens
	}
	return fmt.Sprintf("%d streams of %.0f tokens/s for %.0f s, then %.0f requests/s for %.0f s",
		e.Streams.Requests, 1/BetweenTokens.Seconds(), lasts(e.Streams).Seconds(), e.Open.Rate, lasts(e.Open).Seconds())
}

// A rule compares one value with an upper limit.
type rule struct {
	Name  string
	Title string
	Unit  string
	Limit float64
	Doc   string                            // definition of the value
	Do    string                            // advice if the value is above the limit
	value func(streams, open *Seen) float64 // NaN if unknown
}

// Advice shared by several rules.
const (
	makeRoom = "stop other programs on this machine or give tacho more cores, and check again"
	tellUs   = "if the machine is idle, report this as a bug of tacho with the output of --format json"
)

// rules are all rules of a check.
var rules = []rule{
	{
		Name: "missing_tokens", Title: "tokens missing", Unit: "tokens", Limit: 0,
		Doc:   "tokens requested - tokens that tacho saw as the server sent them",
		Do:    "check for a firewall, a proxy or a limit on file descriptors on this machine; " + tellUs,
		value: func(streams, open *Seen) float64 { return float64(streams.Missing + open.Missing) },
	},
	timing("ttft_error_p50", "TTFT error, median", 200, "median of |reported TTFT - true TTFT|", .5, ttftOf),
	timing("ttft_error_p99", "TTFT error, p99", 1000, "99th percentile of |reported TTFT - true TTFT|", .99, ttftOf),
	timing("itl_error_p50", "ITL error, median", 100, "median of |reported ITL - true ITL|, including coalesced tokens", .5, itlOf),
	timing("itl_error_p99", "ITL error, p99", 1000, "99th percentile of |reported ITL - true ITL|, including coalesced tokens", .99, itlOf),
	timing("send_lag_p50", "send lag, median", 500, "median of the time from due to sent, open loop", .5, lagOf),
	timing("send_lag_p99", "send lag, p99", 5000, "99th percentile of the time from due to sent, open loop", .99, lagOf),
	{
		Name: "arrivals_distance", Title: "arrivals, distance from Poisson", Limit: 0.1,
		Doc:   "Kolmogorov-Smirnov distance between the gaps of requests received by the server and the requested distribution",
		Do:    makeRoom,
		value: func(_, open *Seen) float64 { return open.distance() },
	},
	{
		Name: "arrivals_dispersion", Title: "arrivals, dispersion error", Limit: 0.5,
		Doc:   "variance / mean of the number of requests received in windows of ten gaps, minus 1 (Poisson): shows bursts or regular gaps",
		Do:    makeRoom,
		value: func(_, open *Seen) float64 { return open.bunching() },
	},
	{
		Name: "cpu_per_token", Title: "CPU time per token", Unit: "us", Limit: 150,
		Doc: "CPU time of the client during the streams / tokens",
		Do:  "use a lower load on this machine; " + tellUs,
		value: func(streams, _ *Seen) float64 {
			if streams.CPU == 0 {
				return math.NaN()
			}
			return streams.CPU
		},
	},
}

func ttftOf(streams, open *Seen) stat.Sample { return stat.New(slices.Concat(streams.TTFT, open.TTFT)) }

func itlOf(streams, _ *Seen) stat.Sample { return streams.ITL }

func lagOf(_, open *Seen) stat.Sample { return stat.New(slices.Clone(open.Lag)) }

// timing returns a rule for a quantile of times in microseconds.
func timing(name, title string, limit float64, doc string, q float64, of func(streams, open *Seen) stat.Sample) rule {
	return rule{Name: name, Title: title, Unit: "us", Limit: limit, Doc: doc, Do: makeRoom + "; " + tellUs, value: func(streams, open *Seen) float64 {
		if s := of(streams, open); len(s) > 0 {
			return s.Quantile(q)
		}
		return math.NaN()
	}}
}

// distance returns the distance of the arrival gaps from the requested
// distribution.
func (s *Seen) distance() float64 {
	if len(s.Arrivals) < 2 {
		return math.NaN()
	}
	gaps := Gaps(s.Arrivals)[1:]
	for i := range gaps {
		gaps[i] *= s.Rate
	}
	return KolmogorovSmirnov(gaps, func(x float64) float64 { return GammaCDF(s.Burstiness, x) })
}

// bunching returns the difference of the arrivals' dispersion from 1.
func (s *Seen) bunching() float64 {
	if len(s.Arrivals) == 0 {
		return math.NaN()
	}
	times := slices.Clone(s.Arrivals)
	for i := range times {
		times[i] -= s.Arrivals[0]
	}
	return math.Abs(Dispersion(times, 10/s.Rate) - 1)
}

// A Check is the result of one rule.
type Check struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Unit  string   `json:"unit,omitempty"`
	Doc   string   `json:"doc"`
	Value *float64 `json:"value"` // null if unknown
	Limit float64  `json:"limit"`
	OK    bool     `json:"ok"`
	Do    string   `json:"do,omitempty"` // advice if the check failed
}

// A Result is the result of all checks on this machine.
type Result struct {
	OK       bool     `json:"ok"`
	Text     string   `json:"text"` // one sentence
	Checks   []Check  `json:"checks"`
	Machine  []string `json:"machine,omitempty"` // disturbances of tacho
	Failure  string   `json:"failure,omitempty"` // message of a failed request
	Clock    string   `json:"clock"`             // source of arrival timestamps
	Tokens   int      `json:"tokens"`            // tokens compared
	Together int      `json:"coalesced_tokens"`  // tokens read together with a later one
	Requests int      `json:"requests"`          // requests of the open loop
}

// Run checks tacho against the simulator at url.
func Run(ctx context.Context, url string, e Effort) (*Result, error) {
	return runOver(ctx, nil, url, e)
}

// runOver is Run over a given network; nil uses the kernel's network.
func runOver(ctx context.Context, network dialFunc, url string, e Effort) (*Result, error) {
	streams, err := measureOver(ctx, network, url, e.Streams)
	if err != nil {
		return nil, err
	}
	open, err := measureOver(ctx, network, url, e.Open)
	if err != nil {
		return nil, err
	}
	return judge(streams, open), nil
}

// judge applies all rules.
func judge(streams, open *Seen) *Result {
	r := &Result{
		OK: true, Machine: busy(streams, open), Failure: streams.Example + open.Example, Clock: streams.Stamped.String(),
		Tokens: len(streams.TTFT) + len(streams.ITL), Together: streams.Coalesced, Requests: len(open.Lag),
	}
	for _, rule := range rules {
		c := Check{Name: rule.Name, Title: rule.Title, Unit: rule.Unit, Doc: rule.Doc, Limit: rule.Limit}
		if v := rule.value(streams, open); !math.IsNaN(v) {
			c.Value, c.OK = &v, v <= rule.Limit
		}
		if !c.OK {
			c.Do, r.OK = rule.Do, false
		}
		r.Checks = append(r.Checks, c)
	}
	r.Text = r.sentence()
	return r
}

// busyPause is the longest heartbeat pause on a machine that is not busy, in
// milliseconds. On an idle machine it is a few milliseconds.
const busyPause = 20

// busy describes disturbances of the client, found by its heartbeat and by the
// verdicts of its runs.
func busy(seen ...*Seen) (out []string) {
	longest := 0.0
	for _, s := range seen {
		if c := s.Summary.Config.Client; c != nil {
			longest = max(longest, c.Pauses.LongestMillis)
		}
		for _, reason := range s.Summary.Verdict.Reasons {
			if strings.HasPrefix(reason.Code, "client-") && !slices.Contains(out, reason.Text) {
				out = append(out, reason.Text)
			}
		}
	}
	if len(out) == 0 && longest > busyPause {
		out = append(out, fmt.Sprintf("tacho was not scheduled for up to %.0f ms; stop other programs", longest))
	}
	return out
}

func (r *Result) sentence() string {
	value := func(name string) string {
		i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
		if c := r.Checks[i]; c.Value != nil {
			return fmt.Sprintf("%.0f us", *c.Value)
		}
		return "unknown"
	}
	clock := "user-space clock"
	switch r.Clock {
	case tacho.WireClock.String():
		clock = "wire clock"
	case tacho.KernelClock.String():
		clock = "kernel clock"
	}
	text := fmt.Sprintf("p99 errors on this machine: ITL %s, TTFT %s (%s), send time %s.",
		value("itl_error_p99"), value("ttft_error_p99"), clock, value("send_lag_p99"))
	if !r.OK {
		text += " This is worse than expected, follow the advice of each failed check."
	}
	if len(r.Machine) > 0 {
		text += " The machine was busy, so results may improve: " + strings.Join(r.Machine, "; ") + "."
	}
	return text
}
