package run

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// Find runs the probes of a search and reports each to the observer.
func (r *Runner) Find(ctx context.Context, s *search.Search, sink tacho.Sink) error {
	return r.loop(ctx, func(yield func(*levelRun, error) bool) {
		for p, ok := s.Next(); ok; p, ok = s.Next() {
			l, err := r.probeLevel(p)
			if err != nil {
				yield(nil, err)
				return
			}
			judge := &judge{Sink: sink, watch: s.Watch(p), enough: make(chan struct{}), r: r}
			probe := &levelRun{Level: l, sink: judge, enough: judge.enough}
			if !yield(probe, nil) {
				return
			}
			r.say("%s", probeLine(s, s.Add(judge.watch, void(s.Goals, probe.outcome))))
			if usual, known := s.Estimate(); known && !r.Plan.Virtual {
				r.say("%s", estimate(usual, s.Budget))
			}
		}
	})
}

// estimate describes the usual time of a search.
func estimate(usual, budget time.Duration) string {
	text := "The search takes about " + usual.Round(time.Second).String()
	if budget > 0 && usual > budget {
		return fmt.Sprintf("%s on a server this fast, and --budget ends it after %v: it will probably be undecided. --budget %v would do.", text, budget, (usual + usual/2).Round(time.Minute))
	}
	return text + "."
}

// probeLevel converts a probe to a level of the plan.
func (r *Runner) probeLevel(p search.Probe) (plan.Level, error) {
	one := r.Asked
	value := strconv.FormatFloat(p.Load, 'f', -1, 64)
	at := outcome.Coordinates{{Name: "max-concurrency", Value: value}}
	switch {
	case p.Open():
		at = outcome.Coordinates{{Name: "request-rate", Value: value}}
	case p.Kind == search.Rate:
		at = outcome.Coordinates{{Name: "request-rate", Value: "inf"}, {Name: "max-concurrency", Value: "1"}}
	}
	if err := one.Set("num-prompts", strconv.Itoa(p.Ceiling())); err != nil {
		return plan.Level{}, err
	}
	return one.At(p.Number, at)
}

// A judge is a sink that ends a probe when its result is certain.
type judge struct {
	tacho.Sink
	watch  *search.Watch
	enough chan struct{}
	over   bool
	r      *Runner
}

// Add implements tacho.Sink.
func (j *judge) Add(r *tacho.Record) error {
	if j.watch.Add(r, j.r.live.InFlight()) && !j.over {
		j.over = true
		close(j.enough)
	}
	return j.Sink.Add(r)
}

// void explains why a probe is not usable, or returns an empty string: its
// verdict is INVALID for another reason than failed requests, which a probe has
// to detect, or the figure of a goal is not usable.
func void(goals []search.Goal, l *outcome.Level) string {
	v := &l.Summary.Verdict
	for _, r := range v.Reasons {
		if r.Severity == metric.Invalid && r.Code != "failures" && r.Code != "no-success" {
			return r.Text
		}
	}
	for _, g := range goals {
		q := metric.Quantity{Metric: g.Metric}
		if why := q.Unusable(&l.Summary); g.Metric != nil && v.Severity != metric.Invalid && why != "" {
			return why
		}
	}
	return ""
}

// probeLine describes a probe in one line.
func probeLine(s *search.Search, r search.Result) string {
	var values []string
	for i, g := range s.Goals {
		values = append(values, g.Words()+" "+g.Show(r.Goals[i].Value))
	}

	at := metric.Setting(r.Load) + " " + r.Kind.Unit()
	if r.Alone {
		at = "concurrency 1"
	}
	verdict := r.Verdict.String()
	switch r.Verdict {
	case search.Undecided:
		verdict += " on " + r.Why
	case search.Void:
		verdict += ", because " + r.Why + ","
	}
	return fmt.Sprintf("Probe %d, %s: %s after %d requests in %s (%s)", r.Number+1, at, verdict, r.Requests, metric.Duration(1e3*r.Took.Seconds()), strings.Join(values, ", "))
}
