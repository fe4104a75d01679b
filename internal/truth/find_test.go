package truth_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/predict"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/internal/truth"
)

// find runs the command on a case and returns the stored limit and the exit code.
func find(t testing.TB, c *truth.Case, seed uint64) (limit search.Limit, code int) {
	t.Helper()
	dir := t.TempDir()
	defer func() { _ = os.RemoveAll(dir) }() // tables have hundreds of runs
	profile := c.Profile
	if profile == "" {
		profile = "vllm-8b-h100" // for a tokenizer and a model name; Server answers
	}
	args := []string{
		"find", "--slo", c.SLO, "--virtual", "--sim", profile, "--input-len", c.Input, "--output-len", c.Output,
		"--seed", strconv.FormatUint(seed, 10), "--runs-dir", dir, "--label", "truth",
	}
	if c.Kind != "" {
		args = append(args, "--find", c.Kind)
	}
	if c.Bursty > 0 {
		args = append(args, "--burstiness", fmt.Sprint(c.Bursty))
	}
	var out, errs bytes.Buffer
	env := &cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(string) string { return "" }, Width: func() int { return 200 }, Network: new(memnet.Network),
	}
	if c.Servers != nil {
		servers := c.Servers()
		env.Server = func(level uint64) predict.Server { return servers(level ^ seed<<32) }
	}
	code = cli.Main(env)
	if os.Getenv("TRACE") != "" {
		t.Log(out.String())
	}
	files, err := filepath.Glob(filepath.Join(dir, "*", "limit.json"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%s: exit %d: %s%s", c.Name, code, out.String(), errs.String())
	}
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = json.Unmarshal(text, &limit)
	}
	must.Do(t, err)
	return limit, code
}

// A row summarizes the searches of a case.
type row struct {
	named, none, undecided, within5, within10, above5, above10, worst float64
	ends, inside, wrong                                               float64
	seconds, requests                                                 []float64
}

func one(is bool) float64 {
	if is {
		return 1
	}
	return 0
}

// add takes an answer. An interval counts if it was printed: with two ends.
func (r *row) add(l *search.Limit, limit float64, wrong bool) {
	seconds, requests := 0.0, 0.0
	for _, p := range l.Probes {
		seconds, requests = seconds+p.Seconds, requests+float64(p.Requests)
	}
	r.seconds, r.requests, r.wrong = append(r.seconds, seconds), append(r.requests, requests), r.wrong+one(wrong)
	r.undecided, r.none = r.undecided+one(!l.Decided), r.none+one(l.Decided && !l.Holds)
	if l.Decided && l.Holds && limit > 0 {
		r.name(l.Load, limit)
		if l.Low > 0 && l.High > 0 {
			r.ends, r.inside = r.ends+1, r.inside+one(l.Low <= limit && limit <= l.High)
		}
	}
}

// name takes a named load.
func (r *row) name(load, limit float64) {
	off := load/limit - 1
	r.named++
	r.within5, r.within10 = r.within5+one(math.Abs(off) <= 0.05), r.within10+one(math.Abs(off) <= 0.1)
	r.above5, r.above10, r.worst = r.above5+one(off > 0.05), r.above10+one(off > 0.1), max(r.worst, off)
}

func median(xs []float64) float64 { return slices.Sorted(slices.Values(xs))[len(xs)/2] }

func env(name string, usual int) int {
	if n, err := strconv.Atoi(os.Getenv(name)); err == nil {
		return n
	}
	return usual
}

// check returns the errors of a result that would be wrong for any search.
func check(c *truth.Case, l *search.Limit, limit float64) (wrong []string) {
	probed := func(load float64) bool {
		return slices.ContainsFunc(l.Probes, func(p search.Tried) bool { return p.Load == load && !p.Alone })
	}
	bad := func(is bool, what string) {
		if is {
			wrong = append(wrong, what)
		}
	}
	bad(l.Holds && !probed(l.Load), "the load was not measured")
	bad((l.Low > 0) != (l.High > 0), "the interval has one end")
	bad(l.Decided && l.Holds && c.Kind == "" && !(l.Missed > l.Load && l.Missed <= 1.1*l.Load && probed(l.Missed)), "no load near it was seen to miss")
	bad(c.None && (!l.Decided || l.Holds), "no load holds")
	bad(c.Drifts && l.Decided, "the server changed")
	bad(limit > 0 && l.High > 0 && (l.Low > limit || l.High < limit), "the limit is not in the interval")
	return wrong
}

// find reports only measured loads, on servers with known limits. make test-find
// runs all servers, many times, with other parameters.
func TestFind(t *testing.T) {
	const parameters = 77
	for _, c := range append(truth.Queues(parameters), truth.Rhythms(parameters)...) {
		few := []string{
			"random failures, error<0.1%", "leak", "pauses each 25 s, p99", "quota, burst of 120",
			"M/D/c", "token bucket, error<1%", "finite queue", "cold cache", "pauses each 12 s, p90",
		}
		if testing.Short() {
			few = few[:4]
		}
		if !slices.Contains(few, c.Name) {
			continue
		}
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			limit := 0.0
			if !c.None && !c.Drifts {
				limit = must.Get(c.Limit(20_000, parameters))(t)
			}
			l, code := find(t, &c, parameters)
			const exact = 0.1 // one search of one server, and its limit from 20,000 requests
			off := math.Abs(l.Load/limit - 1)
			if wrong := check(&c, &l, limit); wrong != nil || limit > 0 && l.Decided && off > exact {
				t.Errorf("limit %.4g: %s: %v", limit, l.Sentence, wrong)
			}
			want := 0
			switch {
			case c.Rhythm && !c.None && !l.Decided:
				want = 6
			case c.Drifts:
				want = 6
			case c.None:
				want = 3
			}
			if code != want {
				t.Errorf("exit code %d, want %d: %s", code, want, l.Sentence)
			}
		})
	}
}

// TestFindTable prints the tables of docs/log/find.md: SEEDS searches on each server, with parameters and seeds from
// FIRST on, beside plain bisections and sweeps. CASE selects servers, and SERVERS is quiet, rhythms, queues or engines.
func TestFindTable(t *testing.T) {
	if os.Getenv("SEEDS") == "" {
		t.Skip("make test-find")
	}
	first := env("FIRST", 1000)
	cases := map[string]func() []truth.Case{
		"quiet":   func() []truth.Case { return truth.Quiet(uint64(first)) },
		"rhythms": func() []truth.Case { return truth.Rhythms(uint64(first)) },
		"queues":  func() []truth.Case { return truth.Queues(uint64(first)) },
		"engines": truth.Engines,
	}[os.Getenv("SERVERS")]
	t.Logf("| server | limit | named | none | undecided | 5 %% | 10 %% | > +5 %% | > +10 %% | highest | intervals | hold | wrong | requests | s | bisection 5 %%, > +10 %% | sweep 5 %%, > +10 %% |")
	var sum row
	for _, c := range cases() {
		if only := os.Getenv("CASE"); only == "" || strings.Contains(c.Name, only) {
			tabulate(t, &c, env("SEEDS", 10), first, &sum)
		}
	}
	t.Logf("| all | | %v | %v | %v | %v | %v | %v | %v | %+.0f %% | %v | %v | %v |", sum.named, sum.none, sum.undecided, sum.within5, sum.within10, sum.above5,
		sum.above10, 100*sum.worst, sum.ends, sum.inside, sum.wrong)
}

// tabulate prints a row of the table.
func tabulate(t *testing.T, c *truth.Case, n, first int, sum *row) {
	t.Helper()
	limit, most := known(t, c, first)
	limits, plain, swept := make([]search.Limit, n), make([]float64, n), make([]float64, n)
	onAllCores(n, func(i int) {
		seed := uint64(first + 100*i)
		limits[i], _ = find(t, c, uint64(first+i))
		var err, bad error
		plain[i], err = c.Bisection(size(c), seed)
		swept[i], bad = c.Sweep(size(c), most, seed)
		if err := errors.Join(err, bad); err != nil {
			t.Error(err)
		}
	})
	var r, bisected, levels row
	for i := range limits {
		wrong := check(c, &limits[i], limit)
		r.add(&limits[i], limit, len(wrong) > 0)
		sum.add(&limits[i], limit, len(wrong) > 0)
		t.Logf("   %s %v", limits[i].Sentence, wrong)
		if limit > 0 {
			bisected.name(plain[i], limit)
			levels.name(swept[i], limit)
		}
	}
	t.Logf("| %s, %s | %.4g | %v | %v | %v | %v | %v | %v | %v | %+.0f %% | %v | %v | %v | %.0f | %.0f | %v, %v | %v, %v |", c.Name, c.SLO, limit, r.named, r.none, r.undecided,
		r.within5, r.within10, r.above5, r.above10, 100*r.worst, r.ends, r.inside, r.wrong, median(r.requests), median(r.seconds),
		bisected.within5, bisected.above10, levels.within5, levels.above10)
}

// size returns the requests that a bisection or a sweep takes for a load: 2,000 for a p99.
func size(c *truth.Case) int {
	if strings.Contains(c.SLO, "p99") {
		return 2000
	}
	return 1000
}

// known returns the limit of a case, or 0 if there is none, and its capacity.
func known(t *testing.T, c *truth.Case, first int) (limit, most float64) {
	t.Helper()
	const seeds = 2
	for seed := range uint64(seeds) {
		if c.None || c.Drifts {
			break
		}
		one := must.Get(c.Limit(env("TRUTH", 100_000), uint64(first)+seed))(t)
		limit += one / seeds
	}
	most = must.Get(c.Most(uint64(first)))(t)
	return limit, most
}

// onAllCores calls do for 0 to n-1 on all cores.
func onAllCores(n int, do func(i int)) {
	var next atomic.Int64
	var group sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		group.Go(func() {
			for i := next.Add(1) - 1; i < int64(n); i = next.Add(1) - 1 {
				do(int(i))
			}
		})
	}
	group.Wait()
}
