package truth_test

import (
	"bytes"
	"encoding/json"
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
	named, within5, within10, inside, none, undecided, wrong int
	squares, worst                                           float64
	times, requests                                          []float64
}

func (r *row) add(l *search.Limit, limit float64, wrong bool) {
	if wrong {
		r.wrong++
	}
	seconds, requests := 0.0, 0.0
	for _, p := range l.Probes {
		seconds, requests = seconds+p.Seconds, requests+float64(p.Requests)
	}
	r.times, r.requests = append(r.times, seconds), append(r.requests, requests)
	switch {
	case !l.Decided:
		r.undecided++
	case !l.Holds:
		r.none++
	}
	if limit == 0 || !l.Holds {
		return
	}
	r.named++
	off := math.Abs(l.Load/limit - 1)
	if off <= 0.05 {
		r.within5++
	}
	if off <= 0.1 {
		r.within10++
	}
	if l.Low <= limit && (l.High == 0 || limit <= l.High) {
		r.inside++
	}
	r.squares, r.worst = r.squares+off*off, max(r.worst, off)
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
	bad(l.Decided && l.Holds && c.Kind == "" && !(l.Missed > l.Load && l.Missed <= 1.1*l.Load && probed(l.Missed)), "no load near it was seen to miss")
	bad(c.None && (!l.Decided || l.Holds), "no load holds")
	bad(c.Drifts && l.Decided, "the server changed")
	bad(limit > 0 && (l.Low > limit || l.High > 0 && l.High < limit), "the limit is not in the interval")
	return wrong
}

// find reports only measured loads, on servers with known limits. make test-find
// runs all servers, many times, with other parameters.
func TestFind(t *testing.T) {
	const parameters = 77
	for _, c := range truth.Queues(parameters) {
		few := []string{"M/D/c", "random failures, error<0.1%", "leak", "token bucket, error<1%", "finite queue", "cold cache"}
		if testing.Short() {
			few = few[:3]
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
			if wrong := check(&c, &l, limit); wrong != nil || limit > 0 && off > exact {
				t.Errorf("limit %.4g: %s: %v", limit, l.Sentence, wrong)
			}
			want := 0
			switch {
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

// TestFindTable prints the table of docs/find.md: SEEDS searches on each server,
// with parameters and seeds from FIRST on. CASE selects servers, and ENGINES
// selects the simulated engines.
func TestFindTable(t *testing.T) {
	if os.Getenv("SEEDS") == "" {
		t.Skip("make test-find")
	}
	first := env("FIRST", 1000)
	cases := truth.Queues(uint64(env("PARAMETERS", first)))
	if os.Getenv("ENGINES") != "" {
		cases = truth.Engines()
	}
	t.Logf("| server | SLO | limit (req/s) | within 5 %% | within 10 %% | rms | worst | inside | none | undecided | wrong | requests | s | of a sweep |")
	for _, c := range cases {
		if only := os.Getenv("CASE"); only == "" || strings.Contains(c.Name, only) {
			tabulate(t, &c, env("SEEDS", 12), first)
		}
	}
}

// tabulate prints a row of the table.
func tabulate(t *testing.T, c *truth.Case, n, first int) {
	t.Helper()
	limit, most := known(t, c, first)
	limits := make([]search.Limit, n)
	onAllCores(n, func(i int) { limits[i], _ = find(t, c, uint64(first+i)) })
	var r row
	for i := range limits {
		wrong := check(c, &limits[i], limit)
		r.add(&limits[i], limit, len(wrong) > 0)
		t.Logf("   %s %v", limits[i].Sentence, wrong)
	}
	sweep := 0.0 // ten levels of 1,000 requests at 10 %, 20 %, ... and 100 % of its capacity
	for i := range 10 {
		sweep += 1000 / (most * float64(i+1) / 10)
	}
	t.Logf("| %s | %s | %.4g | %d | %d | %.1f %% | %.1f %% | %d | %d | %d | %d | %.0f | %.0f | %.2f |", c.Name, c.SLO, limit, r.within5, r.within10,
		100*math.Sqrt(r.squares/float64(max(r.named, 1))), 100*r.worst, r.inside, r.none, r.undecided, r.wrong, median(r.requests), median(r.times), median(r.times)/sweep)
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
