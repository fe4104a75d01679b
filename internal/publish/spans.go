package publish

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/exposition"
	"github.com/tacho-bench/tacho/internal/traceid"
)

const (
	maxSpans   = 20_000      // pending spans, about 20 MB; further spans are dropped and counted
	spanBatch  = 512         // spans in one export, as in OpenTelemetry's own exporters
	spanPeriod = time.Second // interval between exports of spans
)

// A spanQueue holds spans until they are exported.
type spanQueue struct {
	pending []exposition.Span
	dropped int
}

// startOf returns the time at which a request was sent, or the time at which sending started if it failed before.
func startOf(r *tacho.Record) time.Duration {
	for _, at := range []time.Duration{r.Sent, r.Start, r.Slot} {
		if at >= 0 {
			return at
		}
	}
	return tacho.Never
}

// trace adds the span of a request, if the request belongs to the sample.
func (b *Exporter) trace(l *level, r *tacho.Record) {
	id, from := traceid.Of(l.Trace, r.ID), startOf(r)
	if r.ID == "" || from < 0 || r.End < from || !id.Sampled(b.to.Sample) {
		return
	}
	q := &b.spans
	if len(q.pending) >= maxSpans {
		q.dropped++
		return
	}
	q.pending = append(q.pending, b.span(l, r, id, from))
}

// span returns the span of a request. Its times are the times of the record: the kernel's receive times if the kernel
// is the clock.
func (b *Exporter) span(l *level, r *tacho.Record, id traceid.ID, from time.Duration) exposition.Span {
	group := b.about.seriesOf(r)
	s := exposition.Span{
		Trace: id.Trace, ID: id.Span, Name: b.about.Operation, Start: l.Epoch.Add(from), End: l.Epoch.Add(r.End),
		Attributes: append(b.about.attributes(group), l.attributes()...),
	}
	if group.model != "" {
		s.Name += " " + group.model
	}
	add := func(key string, value any) {
		s.Attributes = append(s.Attributes, exposition.Attribute{Key: key, Value: value})
	}
	add("tacho.request.id", r.ID)
	add("tacho.clock", r.Clock.String())
	if r.Turns > 1 {
		add("gen_ai.conversation.id", strconv.FormatUint(r.Session, 10))
	}
	if r.Asked > 0 {
		add("gen_ai.request.max_tokens", r.Asked)
	}
	if n := promptTokens(r); n > 0 {
		add("gen_ai.usage.input_tokens", n)
	}
	if r.Output > 0 {
		add("gen_ai.request.stream", true)
		add("gen_ai.usage.output_tokens", r.Output)
	}
	if first := r.First(); first >= from {
		add("gen_ai.response.time_to_first_chunk", (first - from).Seconds())
	}
	if u := r.Usage; u != nil {
		if u.TellsCached {
			add("gen_ai.usage.cache_read.input_tokens", u.Cached)
		}
		if u.Reasoning > 0 {
			add("gen_ai.usage.reasoning.output_tokens", u.Reasoning)
		}
	}
	if r.Finish != "" {
		add("gen_ai.response.finish_reasons", []string{r.Finish})
	}
	if r.Failure != nil {
		s.Error = r.Failure.Error()
	}
	return s
}

// exportSpans sends the pending spans. A batch that could not be sent stays pending, unless the collector rejects it.
func (b *Exporter) exportSpans(ctx context.Context) error {
	for {
		b.mu.Lock()
		batch := b.spans.pending[:min(len(b.spans.pending), spanBatch)]
		b.mu.Unlock()
		if len(batch) == 0 {
			return nil
		}
		err := b.to.Traces.send(ctx, exposition.TracesRequest(b.resource(), batch))
		rejected := errors.As(err, new(rejection))
		if err != nil && !rejected {
			return err
		}
		b.mu.Lock()
		b.spans.pending = b.spans.pending[len(batch):]
		if rejected {
			b.spans.dropped += len(batch)
		}
		b.mu.Unlock()
		if rejected {
			return err
		}
	}
}

// lostSpans returns an error if spans were not exported.
func (b *Exporter) lostSpans() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	lost := b.spans.dropped + len(b.spans.pending)
	if lost == 0 {
		return nil
	}
	return fmt.Errorf("%d spans were not sent, because the collector failed or was too slow: lower --otlp-spans", lost)
}
