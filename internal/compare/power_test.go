package compare_test

import (
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/compare"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/sim/step"
)

// asked draws requests of random lengths.
type asked struct {
	n    int
	seed uint64
}

func (a asked) Session(i uint64) (tacho.Session, error) {
	if i >= uint64(a.n) {
		return tacho.Session{}, io.EOF
	}
	r := rand.New(rand.NewPCG(a.seed, i))
	ids := make([]int32, 100+r.IntN(900))
	for k := range ids {
		ids[k] = r.Int32()
	}
	request := tacho.Request{Session: i, Input: tacho.Input{IDs: ids}, InputTokens: len(ids), MaxTokens: 10 + r.IntN(60), IgnoreEOS: true}
	return tacho.Session{ID: i, Turns: []tacho.Turn{{Request: request}}}, nil
}

// A trial is one load of the simulated engine.
type trial struct {
	name     string
	rate     float64 // 0 means no pacing
	limit    int
	requests int
	blind    bool // one run cannot detect 10 %
}

var trials = []trial{{"rate", 12, 0, 400, false}, {"limit", 0, 16, 400, false}, {"overload", 60, 0, 400, true}, {"burst", 0, 0, 200, true}}

func (tr *trial) arrivals(seed uint64) iter.Seq2[uint64, time.Duration] {
	r := rand.New(rand.NewPCG(seed, 7))
	return func(yield func(uint64, time.Duration) bool) {
		at := 0.0
		for i := uint64(0); ; i++ {
			due := tacho.ASAP
			if tr.rate > 0 {
				at += r.ExpFloat64() / tr.rate
				due = time.Duration(at * 1e9)
			}
			if !yield(i, due) {
				return
			}
		}
	}
}

type sink struct {
	metric.Accumulator
	records []*tacho.Record
}

func (s *sink) Add(r *tacho.Record) error {
	s.records = append(s.records, r)
	return s.Accumulator.Add(r)
}

// virtual returns a run of a trial on an engine slowed down by a factor.
func virtual(t *testing.T, tr *trial, seed uint64, slower float64) outcome.Run {
	return computed(t, tr, seed, seed, slower)
}

// computed is virtual with separate seeds for the work and the engine.
func computed(t *testing.T, tr *trial, seed, engine uint64, slower float64) outcome.Run {
	t.Helper()
	p := must.Get(step.Load("vllm-8b-h100"))(t)
	slow(&p, slower)
	server := must.Get(step.NewServer(p, engine))(t)
	return served(t, tr, seed, server)
}

// served returns a run of a trial on a server.
func served(t *testing.T, tr *trial, seed uint64, server predict.Server) outcome.Run {
	t.Helper()
	var s sink
	stage := predict.Stage{Arrivals: tr.arrivals(seed), Limit: tr.limit, Source: asked{tr.requests, seed}, Server: server}
	must.Do(t, predict.Run(t.Context(), stage, &s))
	c := metric.DefaultConfig()
	c.RequestRate, c.MaxConcurrency = tr.rate, tr.limit
	level := outcome.Level{Setting: outcome.Setting{Prompts: tr.requests, Rate: tr.rate, Concurrency: tr.limit}, Summary: s.Summary(c)}
	level.Records = func() iter.Seq2[*tacho.Record, error] {
		return func(yield func(*tacho.Record, error) bool) {
			for _, r := range s.records {
				if !yield(r, nil) {
					return
				}
			}
		}
	}
	return outcome.Run{About: outcome.About{Tool: "tacho"}, Levels: []outcome.Level{level}}
}

// TestPower compares runs of the same work on equal engines, and on an engine 10 % slower. Equal
// engines must be called "~" in all quantities, and the slower engine must be found. TRIES is the
// number of repetitions; make test-compare uses 100.
func TestPower(t *testing.T) {
	tries := tries(12)
	for _, tr := range trials {
		for _, repeats := range []int{1, 4} {
			t.Run(fmt.Sprintf("%s, %d runs each", tr.name, repeats), func(t *testing.T) {
				same, found := 0, 0
				for try := range tries {
					seed := uint64(try*100 + 1)
					var a, b, slower []outcome.Run
					for i := range uint64(repeats) {
						a = append(a, computed(t, &tr, seed+i, seed+i, 1))
						b = append(b, computed(t, &tr, seed+i, seed+20+i, 1))
						slower = append(slower, computed(t, &tr, seed+i, seed+40+i, 1.1))
					}
					if verdicts(t, a, b) == 0 {
						same++
					}
					if verdicts(t, a, slower) > 0 {
						found++
					}
				}
				t.Logf("equal runs called equal: %d of %d; 10 %% found: %d", same, tries, found)
				// With 12 tries, random variation may add one.
				if least := int(0.95*float64(tries)) - slack(tries); same < least {
					t.Errorf("equal runs were called equal in %d of %d", same, tries)
				}
				share := 0.9
				if tr.blind {
					share = 0.7 // of four runs each; one run each shows almost nothing
				}
				if least := int(share*float64(tries)) - slack(tries); found < least && (!tr.blind || repeats > 1) {
					t.Errorf("10 %% apart was found in %d of %d", found, tries)
				}
			})
		}
	}
}

// tries returns TRIES, or usual if TRIES is not set. Short tests have a third of them.
func tries(usual int) int {
	if n, err := strconv.Atoi(os.Getenv("TRIES")); err == nil {
		return n
	}
	if testing.Short() {
		return usual / 3
	}
	return usual
}

func slack(tries int) int {
	if tries < 100 {
		return 1
	}
	return 0
}

// verdicts counts the quantities in which b differs from a.
func verdicts(t *testing.T, a, b []outcome.Run) int {
	t.Helper()
	c := must.Get(compare.Compare([]compare.Side{{Name: "a", Runs: a}, {Name: "b", Runs: b}}, compare.Options{Quantities: defaults(t)}))(t)
	n := 0
	for _, row := range c.Levels[0].Rows {
		if v := row.Deltas[1].Verdict; v != compare.Same && v != compare.Untold {
			n++
		}
	}
	return n
}

func defaults(t *testing.T) []metric.Quantity {
	t.Helper()
	var out []metric.Quantity
	for _, name := range compare.Quantities {
		q := must.Get(metric.ParseQuantity(name))(t)
		out = append(out, q)
	}
	return out
}

// slow makes every step of an engine longer.
func slow(p *step.Profile, factor float64) {
	for _, knots := range []*[]step.Knot{&p.Cost.Step, &p.Cost.Prefill, &p.Cost.Decode} {
		slower := make([]step.Knot, 0, len(*knots))
		for _, k := range *knots {
			slower = append(slower, step.Knot{Tokens: k.Tokens, Ms: k.Ms * factor})
		}
		*knots = slower
	}
	p.Cost.DecodeNsPerContextToken *= factor
	p.Cost.PrefillNsPerTokenAndContext *= factor
}
