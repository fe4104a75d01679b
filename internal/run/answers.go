package run

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/score"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/stat"
	"github.com/tacho-bench/tacho/workload"
)

// newBook returns a book for the answers of a level.
func (r *Runner) newBook(s *level) *score.Book {
	b := &score.Book{Source: s.plain, Whole: r.Plan.JudgesAnswers(), Text: r.replay == nil && r.Plan.Every(func(k workload.Kind) bool { return k.Chat })}
	if r.Plan.Score != "" {
		b.Scorer, _ = score.Named(r.Plan.Score) // the plan was checked
	}
	return b
}

// judge judges the answers of a level, after its end.
func (r *Runner) judge(b *score.Book) *metric.Answers {
	out := b.Judge()
	if out == nil || r.baseline == nil {
		return out
	}
	out.Paired = r.baseline.Compare(b, len(r.Asked.Levels()))
	for i := range out.Paired.Examples {
		e := &out.Paired.Examples[i]
		e.Alone, e.Load = r.env.Secrets.Sweep(e.Alone), r.env.Secrets.Sweep(e.Load)
	}
	return out
}

// alone sends the prompts of a level one at a time, twice, unless an earlier level had the same prompts. The second
// pass shows how many answers change without load.
func (r *Runner) alone(ctx context.Context, s *level) error {
	if at := fmt.Sprint(opening(s.Coordinates)); r.baseline == nil || at != r.aloneAt {
		r.baseline, r.aloneAt = &score.Baseline{First: r.newBook(s), Second: r.newBook(s)}, at
	}
	n := r.Plan.AlonePrompts
	if s.Prompts > 0 {
		n = min(n, s.Prompts)
	}
	var missing []uint64
	for i := range uint64(n) {
		if !r.baseline.Has(i) {
			missing = append(missing, i)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	r.say("Sending %d prompts alone, twice. Compared with load, they show a loss of %s or more in 8 of 10 runs, if 4 %% of the answers change anyway.",
		len(missing), metric.Points(stat.DetectableLoss(n, 0.04)))
	for _, book := range []*score.Book{r.baseline.First, r.baseline.Second} {
		book.Source = s.plain
		if err := r.sendAlone(ctx, s, missing, book); err != nil {
			return err
		}
		book.Judge()
	}
	if err := r.Target.Flush(ctx); err != nil {
		return err
	}
	return r.Target.Warm(ctx, r.connections(s.Level), r.spares(s.Level)) // the server may have closed idle connections
}

// sendAlone sends sessions one after another.
func (r *Runner) sendAlone(ctx context.Context, s *level, sessions []uint64, book *score.Book) error {
	speed := r.Speed()
	arrivals := iter.Seq2[uint64, time.Duration](func(yield func(uint64, time.Duration) bool) {
		for _, i := range sessions {
			if !yield(i, tacho.ASAP) {
				return
			}
		}
	})
	err := engine.Run(ctx, engine.Stage{
		Index: s.Index, Arrivals: arrivals, Limit: 1, Source: speed.source(r.named(s.plain, s.Level)), Backend: r.Target.Backend,
		Count: r.Target.AnswerCounter(), Timeout: speed.Squeeze(r.Plan.RequestTimeout.Duration()),
	}, &aloneSink{r: r, book: book, all: len(sessions)})
	if err == nil {
		err = ctx.Err()
	}
	return err
}

// An aloneSink keeps the answers of requests sent alone.
type aloneSink struct {
	r         *Runner
	book      *score.Book
	done, all int
}

// Add implements tacho.Sink.
func (a *aloneSink) Add(rec *tacho.Record) error {
	if err := a.r.Target.Recount(rec); err != nil {
		return err
	}
	target.Scrub(a.r.env.Secrets, rec)
	a.book.Add(rec)
	a.done++
	a.r.env.Observer.Progress("alone", int64(a.done), int64(a.all))
	return nil
}

// Close implements tacho.Sink.
func (a *aloneSink) Close() error { return nil }

// answersKnown returns a note about prompts that were sent before, which a prefix cache may have.
func (r *Runner) answersKnown() []metric.Reason {
	if r.baseline == nil || r.Plan.FlushCache {
		return nil
	}
	text := "the prompts were sent alone before this level, so a prefix cache may have them and TTFT may be too good"
	return []metric.Reason{{Code: "answers-cached", Severity: metric.Note, Text: text + ": add --flush-cache, or measure latencies without --check-answers"}}
}
