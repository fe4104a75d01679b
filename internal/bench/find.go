package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// A Goal describes a search for the highest load that meets an SLO.
type Goal struct {
	SLO      string        // as ttft:p99<500ms,error<0.1%
	Load     string        // rate, concurrency or users
	Within   string        // precision of the limit, as 5%
	From, To float64       // first and highest load; 0 is chosen
	Budget   time.Duration // most time for all probes; 0 is chosen
}

// Search returns the search for a goal. It removes the load from the plan
// and adds the SLO per request.
func (g *Goal) Search(p *plan.Plan) (*search.Search, error) {
	goals, err := g.goals(p)
	if err != nil {
		return nil, err
	}
	kind := search.Kind(g.Load)
	if !slices.Contains(search.Kinds, kind) {
		return nil, fmt.Errorf("load %q: want one of %v", g.Load, search.Kinds)
	}
	s := search.New(kind, goals)
	if s.Within, err = search.ParseShare(g.Within); err != nil {
		return nil, fmt.Errorf("--within: %w", err)
	}
	s.From, s.To, s.Budget = g.From, g.To, g.Budget
	if s.Budget == 0 && !p.Virtual {
		s.Budget = search.RealBudget
	}
	if s.Budget < 0 {
		return nil, fmt.Errorf("--budget %v: want a value above 0", g.Budget)
	}
	if s.From < 0 || s.To < 0 || s.To > 0 && s.From > s.To {
		return nil, fmt.Errorf("--from %v --to %v: --from must be lower than --to", g.From, g.To)
	}
	if p.Varies() != "" {
		return nil, fmt.Errorf("find does not accept lists (%s), set one value and run find once per value", p.Varies())
	}
	if err := checkLoad(p, kind); err != nil {
		return nil, err
	}
	if p.Given("num-prompts") {
		s.Size = p.NumPrompts
	}
	if len(p.Goodput) == 0 {
		for _, one := range goals {
			if slo, ok := one.PerRequest(); ok {
				p.Goodput = append(p.Goodput, slo.Metric+":"+strconv.FormatFloat(slo.LimitMillis, 'g', -1, 64))
			}
		}
	}
	return s, nil
}

// goals returns the goals of the SLO. A goal on goodput has the limits of the plan.
func (g *Goal) goals(p *plan.Plan) ([]search.Goal, error) {
	var limits []metric.SLO
	for _, text := range p.Goodput {
		some, err := metric.ParseSLOs(text)
		if err != nil {
			return nil, fmt.Errorf("--goodput: %w", err)
		}
		limits = append(limits, some...)
	}
	goals, err := search.ParseSLO(g.SLO, limits...)
	if err != nil {
		return nil, fmt.Errorf("--slo: %w", err)
	}
	return goals, nil
}

// checkLoad rejects options that set the load.
func checkLoad(p *plan.Plan, kind search.Kind) error {
	if p.Given("max-seconds") {
		return errors.New("--max-seconds cannot be combined with find, which ends each probe itself (--num-prompts limits the requests of a probe)")
	}
	found := []string{"request-rate", "ramp-up-strategy"}
	if kind != search.Rate {
		found = append(found, "max-concurrency")
	}
	for _, name := range found {
		if p.Given(name) {
			return fmt.Errorf("--%s cannot be combined with find, which chooses the load (--from and --to limit it)", name)
		}
	}
	if p.OwnTimes() {
		return fmt.Errorf("--dataset-name %s has its own arrival times, so find cannot choose the load", p.DatasetName)
	}
	return nil
}

// Find runs the probes of a search. Probes have no result files.
func (b *Bench) Find(ctx context.Context, s *search.Search) error {
	b.terse = true
	return b.stoppable(ctx, func(ctx context.Context) error { return b.Runner.Find(ctx, s, b) })
}

// Limit stores the result of a search. done is false if the search was stopped.
func (b *Bench) Limit(s *search.Search, done bool) search.Limit {
	limit := s.Limit(done)
	if b.Runner.Plan.Virtual {
		limit.Sentence = metric.PredictedWord + limit.Sentence
	}
	b.Outcome.Notes, b.Outcome.HeldProbe = append(b.Outcome.Notes, outcome.LimitNote(limit.Sentence)), limit.Probe
	b.Note(b.Keep.Limit(limit))
	return limit
}
