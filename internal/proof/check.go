package proof

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tacho"
	"tacho/stat"
)

// What the server of a check is to do, as its flags say it.
const (
	FirstToken    = 100 * time.Millisecond
	BetweenTokens = 50 * time.Millisecond
)

// An Effort is the two loads of a check: streams, whose tokens are timed, and an
// open loop, whose arrivals are.
type Effort struct{ Streams, Open Load }

// The efforts. At the end of the first second all streams run.
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

// String says what the effort is, and how long it takes.
func (e Effort) String() string {
	lasts := func(l Load) time.Duration {
		return time.Duration(float64(l.Requests)/l.Rate*float64(time.Second)) + FirstToken + time.Duration(l.Tokens-1)*BetweenTokens
	}
	return fmt.Sprintf("%d streams of %.0f tokens a second for %.0f s, then %.0f requests a second for %.0f s",
		e.Streams.Requests, 1/BetweenTokens.Seconds(), lasts(e.Streams).Seconds(), e.Open.Rate, lasts(e.Open).Seconds())
}

// A rule is one question, answered by a number that must not be above a limit.
type rule struct {
	Name  string
	Title string
	Unit  string
	Limit float64
	Doc   string                            // what the number is
	Do    string                            // when it is above the limit
	value func(streams, open *Seen) float64 // NaN is nothing to tell
}

// Advice that several rules share.
const (
	makeRoom = "stop what else runs on this machine, or give tacho more cores, and check again"
	tellUs   = "if the machine is idle and it stays so, this is a bug of tacho: report it with what --format json prints"
)

// rules are all that is asked.
var rules = []rule{
	{
		Name: "missing_tokens", Title: "tokens missing", Unit: "tokens", Limit: 0,
		Doc:   "tokens asked for, less those that tacho saw as the server sent them",
		Do:    "see that nothing between two processes of this machine meddles with connections (a firewall, a proxy, a limit on descriptors); " + tellUs,
		value: func(streams, open *Seen) float64 { return float64(streams.Missing + open.Missing) },
	},
	timing("ttft_error_p50", "TTFT error, median", 200, "median of |TTFT as reported - as the server had it|", .5, ttftOf),
	timing("ttft_error_p99", "TTFT error, p99", 1000, "99th percentile of |TTFT as reported - as the server had it|", .99, ttftOf),
	timing("itl_error_p50", "ITL error, median", 100, "median of |time from token to token as reported - as the server had it|, coalesced tokens too", .5, itlOf),
	timing("itl_error_p99", "ITL error, p99", 1000, "99th percentile of |time from token to token as reported - as the server had it|, coalesced tokens too", .99, itlOf),
	timing("send_lag_p50", "send lag, median", 500, "median time from when a request of the open loop was due to when it was sent", .5, lagOf),
	timing("send_lag_p99", "send lag, p99", 5000, "99th percentile of the time from when a request of the open loop was due to when it was sent", .99, lagOf),
	{
		Name: "arrivals_distance", Title: "arrivals, distance from Poisson", Limit: 0.1,
		Doc:   "Kolmogorov-Smirnov distance of the gaps between requests, as the server received them, from those of the process that was asked for",
		Do:    makeRoom,
		value: func(_, open *Seen) float64 { return open.distance() },
	},
	{
		Name: "arrivals_dispersion", Title: "arrivals, dispersion off by", Limit: 0.5,
		Doc:   "variance over mean of the number of requests that the server received in windows of ten gaps, less the 1 of a Poisson process: bunches or a clock show in it",
		Do:    makeRoom,
		value: func(_, open *Seen) float64 { return open.bunching() },
	},
	{
		Name: "cpu_per_token", Title: "processor time of a token", Unit: "us", Limit: 150,
		Doc: "processor time of the client while the streams ran / tokens",
		Do:  "ask for less from this machine at once; " + tellUs,
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

// timing is a rule about a quantile of times in microseconds.
func timing(name, title string, limit float64, doc string, q float64, of func(streams, open *Seen) stat.Sample) rule {
	return rule{Name: name, Title: title, Unit: "us", Limit: limit, Doc: doc, Do: makeRoom + "; " + tellUs, value: func(streams, open *Seen) float64 {
		if s := of(streams, open); len(s) > 0 {
			return s.Quantile(q)
		}
		return math.NaN()
	}}
}

// distance is how far the gaps between arrivals are from those of the process
// that was asked for.
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

// bunching is how far the dispersion of the arrivals is from 1.
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

// A Check is a rule and what came of it.
type Check struct {
	Name  string   `json:"name"`
	Title string   `json:"title"`
	Unit  string   `json:"unit,omitempty"`
	Doc   string   `json:"doc"`
	Value *float64 `json:"value"` // null is nothing to tell
	Limit float64  `json:"limit"`
	OK    bool     `json:"ok"`
	Do    string   `json:"do,omitempty"` // what to do, where it does not hold
}

// A Result is what a check of tacho on this machine came to.
type Result struct {
	OK       bool     `json:"ok"`
	Text     string   `json:"text"` // in a sentence
	Checks   []Check  `json:"checks"`
	Machine  []string `json:"machine,omitempty"` // what kept tacho from its work
	Failure  string   `json:"failure,omitempty"` // of a request, in its own words
	Clock    string   `json:"clock"`             // what stamped the arrivals
	Tokens   int      `json:"tokens"`            // compared
	Together int      `json:"coalesced_tokens"`  // of them, read together with a later one
	Requests int      `json:"requests"`          // of the open loop
}

// Run checks tacho against the simulator at url.
func Run(ctx context.Context, url string, e Effort) (*Result, error) {
	return runOver(ctx, nil, url, e)
}

// runOver is Run over a network; nil is the kernel's.
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

// judge asks all the rules.
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

// busyPause is how long the client's heartbeat may fail to come, in milliseconds,
// before the machine is called busy. On an idle one it is a few.
const busyPause = 20

// busy is what kept the client from its work, by its heartbeat and by the
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
		out = append(out, fmt.Sprintf("tacho got no processor for %.0f ms at a time: stop what else runs here", longest))
	}
	return out
}

func (r *Result) sentence() string {
	value := func(name string) string {
		i := slices.IndexFunc(r.Checks, func(c Check) bool { return c.Name == name })
		if c := r.Checks[i]; c.Value != nil {
			return fmt.Sprintf("%.0f us", *c.Value)
		}
		return "an unknown time"
	}
	clock := "the clock of the read"
	switch r.Clock {
	case tacho.WireClock.String():
		clock = "the wire clock"
	case tacho.KernelClock.String():
		clock = "the kernel's clock"
	}
	text := fmt.Sprintf("On this machine, at p99, tacho's times from token to token were within %s of the truth, its TTFT within %s, by %s, and it sent within %s of the schedule.",
		value("itl_error_p99"), value("ttft_error_p99"), clock, value("send_lag_p99"))
	if !r.OK {
		text += " That is not as good as it should be: do what is said for each check that failed."
	}
	if len(r.Machine) > 0 {
		text += " The machine was busy, so it may do better than this: " + strings.Join(r.Machine, "; ") + "."
	}
	return text
}
