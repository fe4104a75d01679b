package run

import (
	"context"
	"fmt"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/metric"
)

// probes are small sequential requests during the load. They show the wait of a
// new request.
type probes struct {
	r       *Runner
	stage   int
	cancel  context.CancelFunc
	done    chan struct{}
	records []*tacho.Record
	sum     metric.Accumulator
}

func (p *probes) start(ctx context.Context, epoch time.Time) {
	if p.r.Plan.ProbeRate <= 0 {
		return
	}
	ctx, p.cancel = context.WithCancel(ctx)
	p.done = make(chan struct{})
	go func() {
		defer close(p.done)
		pause := p.r.Speed().Squeeze(time.Duration(float64(time.Second) / p.r.Plan.ProbeRate))
		for i := 0; ctx.Err() == nil; i++ {
			p.send(ctx, epoch, i)
			select {
			case <-time.After(pause):
			case <-ctx.Done():
			}
		}
	}()
}

func (p *probes) send(ctx context.Context, epoch time.Time, i int) {
	q := &tacho.Request{ID: p.r.requestID(fmt.Sprintf("probe-%d", i)), Input: tacho.Input{Text: "Hi"}, MaxTokens: 1}
	call, err := p.r.Target.Backend.Prepare(q)
	if err != nil {
		return
	}
	at := time.Since(epoch)
	rec := &tacho.Record{Stage: p.stage, ID: q.ID, Asked: 1, Timeline: tacho.NewTimeline(at), Probe: true}
	rec.Slot, rec.Start = at, at
	call.Do(ctx, epoch, rec, tacho.CallOptions{})
	if rec.Failure != nil && rec.Failure.Cause == tacho.Canceled {
		return // the run has ended
	}
	p.records = append(p.records, rec)
}

// stop ends the probes and forwards their records.
func (p *probes) stop(sink tacho.Sink) error {
	if p.cancel == nil {
		return nil
	}
	p.cancel()
	<-p.done
	for _, rec := range p.records {
		target.Scrub(p.r.env.Secrets, rec)
		rec = p.r.Speed().record(rec)
		_ = p.sum.Add(rec) // in memory, cannot fail
		if err := sink.Add(rec); err != nil {
			return err
		}
	}
	return nil
}
