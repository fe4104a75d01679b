package metric

import (
	"cmp"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/spelling"
	"github.com/tacho-bench/tacho/stat"
)

// A Dialect applies the definitions of another tool to our records, to show the numbers that tool would
// report for the same requests.
type Dialect struct {
	Name    string
	Owner   string // the tool and version with these definitions
	Metrics []Term
	Totals  []Total
	Step    bool // percentiles are observed values, without interpolation
}

// A Term is the definition of a metric in another tool.
type Term struct {
	Name, Doc string
	Unit      Unit
	Of        func(r *tacho.Record, emit func(float64)) // successful requests only
	Weight    func(r *tacho.Record) float64             // nil means equal weights
}

// A Total is one number of a whole level.
type Total struct {
	Name, Doc string
	Unit      Unit
	Of        func(t *Tally) float64
}

// A Tally holds the sums of a level.
type Tally struct {
	Completed, Input, Output int
	DurationS                float64 // as ours: from the start of the schedule to the last end
	SpanS                    float64 // from the first start of a successful request to the last token
	EndS                     float64 // from the first start of a successful request to the last end
	LatencyS                 float64 // sum over all successful requests, from start to last token
}

// Dialects are all dialects in the order of the help text.
var Dialects = []Dialect{tachoDialect, vllmDialect, sglangDialect, aiperfDialect, guidellmDialect}

// DialectNamed returns the dialect with the given name.
func DialectNamed(name string) (*Dialect, error) {
	var names []string
	for i := range Dialects {
		if Dialects[i].Name == name {
			return &Dialects[i], nil
		}
		names = append(names, Dialects[i].Name)
	}
	return nil, spelling.Unknown("dialect", name, names)
}

// tachoDialect contains our own definitions.
var tachoDialect = Dialect{Name: "tacho", Owner: "tacho", Metrics: ourTerms(), Totals: servedTotals(func(t *Tally) float64 { return t.DurationS }, "duration")}

func ourTerms() []Term {
	var out []Term
	for _, m := range Classic {
		out = append(out, Term{Name: m.Name, Doc: m.Doc, Unit: m.Unit, Of: m.Of})
	}
	return out
}

// servedTotals returns throughputs computed with the tool's definition of duration.
func servedTotals(duration func(*Tally) float64, words string) []Total {
	per := func(n func(*Tally) int) func(*Tally) float64 {
		return func(t *Tally) float64 { return float64(n(t)) / duration(t) }
	}
	return []Total{
		{"request_throughput", "successful requests / " + words, RequestsPerSec, per(func(t *Tally) int { return t.Completed })},
		{"output_throughput", "output tokens / " + words, TokensPerSec, per(func(t *Tally) int { return t.Output })},
		{"total_token_throughput", "input and output tokens / " + words, TokensPerSec, per(func(t *Tally) int { return t.Input + t.Output })},
	}
}

// DialectSummary is the summary of a level in a dialect.
type DialectSummary struct {
	*Dialect `json:"-"`
	Dists    []Dist    `json:"metrics"`
	Totals   []float64 `json:"totals"`
	Names    []string  `json:"total_names"`
}

// Summarize summarizes records with the definitions of the dialect.
func (d *Dialect) Summarize(records iter.Seq2[*tacho.Record, error], percentiles []float64) (*DialectSummary, error) {
	values := make([][]weighted, len(d.Metrics))
	t := Tally{}
	first, last, end := time.Duration(math.MaxInt64), time.Duration(0), time.Duration(0)
	for r, err := range records {
		if err != nil {
			return nil, err
		}
		t.DurationS = max(t.DurationS, r.End.Seconds())
		if !r.OK() {
			continue
		}
		t.Completed++
		t.Input, t.Output = t.Input+InputTokens(r), t.Output+r.Output
		first, last, end = min(first, atAsked(r)), max(last, atLast(r)), max(end, r.End)
		t.LatencyS += (atLast(r) - atAsked(r)).Seconds()
		for i, term := range d.Metrics {
			w := 1.0
			if term.Weight != nil {
				w = term.Weight(r)
			}
			term.Of(r, func(v float64) { values[i] = append(values[i], weighted{v, w}) })
		}
	}
	t.SpanS, t.EndS = (last - first).Seconds(), (end - first).Seconds()
	out := &DialectSummary{Dialect: d}
	for i, term := range d.Metrics {
		out.Dists = append(out.Dists, Dist{Name: term.Name, Unit: term.Unit, N: len(values[i]), Stats: d.stats(values[i], percentiles)})
	}
	for _, total := range d.Totals {
		v := 0.0
		if t.Completed > 0 {
			v = total.Of(&t)
		}
		out.Totals, out.Names = append(out.Totals, v), append(out.Names, total.Name)
	}
	return out, nil
}

type weighted struct{ value, weight float64 }

// stats returns the statistics of weighted values.
func (d *Dialect) stats(values []weighted, percentiles []float64) *Stats {
	sum, total := 0.0, 0.0
	for _, v := range values {
		sum, total = sum+v.value*v.weight, total+v.weight
	}
	if total == 0 {
		return nil
	}
	slices.SortFunc(values, func(a, b weighted) int { return cmp.Compare(a.value, b.value) })
	s := &Stats{Mean: sum / total, Min: values[0].value, Max: values[len(values)-1].value}
	for _, v := range values {
		s.Std += v.weight * (v.value - s.Mean) * (v.value - s.Mean)
	}
	s.Std = math.Sqrt(s.Std / total)
	at := quantiles(values, total, d.Step)
	s.Median = at(0.5)
	for _, p := range percentiles {
		s.Percentiles = append(s.Percentiles, Percentile{P: p, Value: at(p / 100)})
	}
	return s
}

// quantiles returns the function for percentiles: interpolated, or the first observed value with at
// least the share q of the weight at or below it.
func quantiles(values []weighted, total float64, step bool) func(q float64) float64 {
	if !step {
		sample := make(stat.Sample, len(values))
		for i, v := range values {
			sample[i] = v.value
		}
		return sample.Quantile
	}
	return func(q float64) float64 {
		below := 0.0
		for _, v := range values {
			if below += v.weight / total; below >= q {
				return v.value
			}
		}
		return values[len(values)-1].value
	}
}

// atAsked returns the start time as other tools define it: before the connection is ready.
func atAsked(r *tacho.Record) time.Duration {
	if r.Start != tacho.Never {
		return r.Start
	}
	return r.Sent
}

// term is the time between two timestamps of successful requests.
func term(name string, from, to mark, doc string) Term {
	return Term{Name: name, Doc: doc, Unit: Millis, Of: ofSuccess(from, to)}
}

// perToken is the time from the first token to the last, per token after the first.
func perToken(name, doc string) Term {
	return Term{Name: name, Doc: doc, Unit: Millis, Of: TPOT.Of}
}
