package cli

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/report/conclusion"
)

// replicasKind is a search of predict that find does not support.
const replicasKind = "replicas"

// mostReplicas is the maximum number of replicas to try.
const mostReplicas = 10_000

// A sizing searches for the smallest number of replicas that meets an SLO at a
// load.
type sizing struct {
	*benchRun
	plan  plan.Plan
	goals []search.Goal
	tried []sized
}

// A sized is a fleet that was tried.
type sized struct {
	replicas int
	level    *outcome.Level
	values   []float64
	missed   string // description; empty if all goals are met
}

// findReplicas runs the search and prints the result.
func findReplicas(ctx context.Context, env *Env, p plan.Plan, slo string, dry bool) error {
	goals, err := search.ParseSLO(slo)
	if err != nil {
		return usage(fmt.Errorf("--slo: %w", err))
	}
	if p.Varies() != "" {
		return usage(fmt.Errorf("--find replicas does not accept lists (%s), set one value and run it once per value", p.Varies()))
	}
	for _, name := range []string{"autoscale-max", "replicas"} {
		if p.Given(name) {
			return usage(fmt.Errorf("--%s cannot be combined with --find replicas, which chooses the number", name))
		}
	}
	if strings.Contains(p.Sim, "+") {
		return usage(errors.New("--find replicas needs engines of one kind"))
	}
	if dry {
		return dryRun(env, p)
	}
	return measure(ctx, env, p, nil, func(ctx context.Context, b *benchRun) error {
		b.Terse = true
		s := &sizing{benchRun: b, plan: p, goals: goals}
		found, err := s.search(ctx, 1)
		low, high := found, found
		if err == nil && found > 0 {
			low, high, err = s.drawn(ctx, found)
		}
		return s.conclude(ctx, found, low, high, err)
	})
}

// search returns the smallest number of replicas.
func (s *sizing) search(ctx context.Context, first int) (int, error) {
	most := mostReplicas
	if n := s.plan.NumPrompts; n > 0 {
		most = min(most, n) // more replicas would be idle
	}
	f := search.NewFewest(first, most)
	for n, ok := f.Next(); ok; n, ok = f.Next() {
		one, err := s.try(ctx, n)
		if err != nil {
			return 0, err
		}
		f.Add(n, one.missed == "")
	}
	return f.Found(), nil
}

// drawn searches with parameters drawn from their standard errors and returns
// the range of results.
func (s *sizing) drawn(ctx context.Context, found int) (low, high int, err error) {
	low, high = found, found
	if !s.Runner.Fitted() {
		return low, high, nil
	}
	defer func() { s.Runner.Drawn = 0 }()
	for k := range s.plan.Draws {
		s.Runner.Drawn = k + 1
		n, err := s.search(ctx, low)
		if err != nil {
			return low, high, err
		}
		low, high = min(low, n), max(high, n)
	}
	return low, high, nil
}

// try computes the load on n replicas.
func (s *sizing) try(ctx context.Context, n int) (*sized, error) {
	at := outcome.Coordinates{{Name: "replicas", Value: strconv.Itoa(n)}}
	level, err := s.plan.At(len(s.tried), at)
	if err != nil {
		return nil, err
	}
	level.Plan.Draws = 0 // the search draws parameters itself
	enough := make(chan struct{})
	s.Runner.Enough = enough
	sink := &tallying{Sink: s.benchRun, tally: search.NewTally(s.goals), enough: enough, of: level.Prompts}
	out, err := s.Runner.Measure(ctx, level, sink)
	if out == nil {
		return nil, err
	}
	s.End(out)
	if err != nil {
		return nil, err
	}
	one := sized{replicas: n, level: out}
	for i, g := range s.goals {
		one.values = append(one.values, sink.tally.Value(i))
		s.say(fmt.Sprintf("%s: %s %s", counted(n, "replica"), g.Words(), g.Show(one.values[i])))
	}
	if g, value, missed := sink.tally.Missed(); missed {
		one.missed = g.Words() + " " + g.Show(value)
	}
	s.tried = append(s.tried, one)
	return &s.tried[len(s.tried)-1], nil
}

// tallying is a sink that stops a level when it cannot meet the SLO anymore.
type tallying struct {
	tacho.Sink
	tally  *search.Tally
	enough chan struct{}
	of     int // number of requests
	over   bool
}

// Add implements tacho.Sink.
func (t *tallying) Add(r *tacho.Record) error {
	t.tally.Add(r)
	if !t.over && t.of > 0 && t.tally.Lost(t.of) {
		t.over = true
		close(t.enough)
	}
	return t.Sink.Add(r)
}

// conclude prints all attempts and the result.
func (s *sizing) conclude(ctx context.Context, found, low, high int, err error) error {
	s.progress.stop()
	if s.Keep == nil {
		return errors.Join(ctx.Err(), err)
	}
	sentence := s.sentence(found, low, high)
	s.Outcome.Notes = append(s.Outcome.Notes, outcome.LimitNote(sentence))
	s.answer = func() error {
		if err := s.table(); err != nil {
			return err
		}
		_, err := fmt.Fprintln(s.env.Stdout, strings.Join(conclusion.Of(&s.Outcome).Text, "\n"))
		return err
	}
	if err = s.benchRun.conclude(ctx, err); err != nil {
		return err
	}
	if found == 0 {
		return &exitError{code: exitMissed}
	}
	return nil
}

// sentence describes the result.
func (s *sizing) sentence(found, low, high int) string {
	var goals []string
	for _, g := range s.goals {
		goals = append(goals, g.String())
	}
	slo := strings.Join(goals, ", ")
	if found == 0 {
		last := s.tried[len(s.tried)-1]
		return fmt.Sprintf("No number of replicas meets %s: with %d, %s.", slo, last.replicas, last.missed)
	}
	best := s.last(found)
	text := fmt.Sprintf("%s meet %s at %s", counted(found, "replica"), slo, s.load())
	if found == 1 {
		text = fmt.Sprintf("1 replica meets %s at %s", slo, s.load())
	}
	if low < high {
		text = fmt.Sprintf("%s (%d to %d, by the standard errors of the engine)", text, low, high)
	}
	if fewer := s.last(found - 1); fewer != nil {
		text += fmt.Sprintf("; %d do not: %s", found-1, fewer.missed)
		if found == 2 {
			text = strings.Replace(text, "; 1 do not", "; 1 does not", 1)
		}
	}
	return text + s.cost(best) + "."
}

// last returns the first attempt with n replicas, or nil.
func (s *sizing) last(n int) *sized {
	for i := range s.tried {
		if s.tried[i].replicas == n {
			return &s.tried[i] // the first attempt uses the parameters of the file
		}
	}
	return nil
}

// cost describes the cost of the replicas if the price is known.
func (s *sizing) cost(best *sized) string {
	price := s.plan.GPUPrice
	if price == 0 || best == nil {
		return ""
	}
	text := fmt.Sprintf(". They cost %.2f per hour", price*best.level.Summary.Config.GPUs)
	if best.replicas == 1 {
		text = strings.Replace(text, "They cost", "It costs", 1)
	}
	if v, known := best.level.Summary.Figures["cost_output"]; known {
		text += fmt.Sprintf(" and %.3g per million output tokens", v)
	}
	return text
}

// load describes the load.
func (s *sizing) load() string {
	rate, limit := s.plan.RequestRate, s.plan.MaxConcurrency
	switch {
	case !math.IsInf(rate, 1) && rate > 0 && !s.plan.OwnTimes():
		return search.Number(rate) + " req/s"
	case limit > 0:
		return fmt.Sprintf("concurrency %d", limit)
	}
	return "this load"
}

// counted formats a number of things.
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// table prints all attempts, fewest replicas first.
func (s *sizing) table() error {
	w := tabwriter.NewWriter(s.env.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	head := []string{"replicas", "requests"}
	for _, g := range s.goals {
		head = append(head, g.Words())
	}
	_, _ = fmt.Fprintln(w, strings.Join(append(head, "SLO", ""), "\t")) // Flush returns the error
	rows := slices.Clone(s.tried)
	slices.SortStableFunc(rows, func(a, b sized) int { return a.replicas - b.replicas })
	for _, one := range rows {
		row := []string{strconv.Itoa(one.replicas), strconv.Itoa(one.level.Summary.Completed + one.level.Summary.Failed)}
		for i, g := range s.goals {
			value := g.Show(one.values[i])
			if math.IsInf(one.values[i], 0) {
				value = "never"
			}
			row = append(row, value)
		}
		verdict := "holds"
		if one.missed != "" {
			verdict = "misses"
		}
		_, _ = fmt.Fprintln(w, strings.Join(append(row, verdict, ""), "\t"))
	}
	return w.Flush()
}
