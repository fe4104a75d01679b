package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"tacho/engine"
	"tacho/internal/exposition"
	"tacho/internal/visible"
	"tacho/publish"
)

// pushPeriod is how often a collector gets the figures.
const pushPeriod = 10 * time.Second

func otlpHeaders(pairs []string) (http.Header, error) {
	out := http.Header{}
	for _, pair := range pairs {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return nil, errors.New("--otlp-header: write NAME=VALUE")
		}
		out.Add(name, value)
	}
	return out, nil
}

// Publish opens the outlets that the plan asks for, once for all levels.
func (b *Bench) Publish(ctx context.Context) error {
	p := &b.Runner.Plan
	if b.board != nil || (p.MetricsListen == "" && p.OTLP == "") {
		return nil
	}
	b.board = publish.New(time.Now(),
		exposition.Label{Name: "version", Value: Version()}, exposition.Label{Name: "backend", Value: p.Backend},
		exposition.Label{Name: "model", Value: b.o.Env.Secrets.Sweep(b.Runner.Target.ModelID)},
		exposition.Label{Name: "url", Value: strings.Join(p.ShownURLs(), " ")}, exposition.Label{Name: "label", Value: b.o.Env.Secrets.Sweep(p.Label)})
	if p.OTLP != "" {
		if err := b.push(ctx); err != nil {
			return err
		}
	}
	if p.MetricsListen != "" {
		return b.servePage(ctx)
	}
	return nil
}

// servePage opens the page for Prometheus. It closes last, because a scraper may have
// to read it once more.
func (b *Bench) servePage(ctx context.Context) error {
	l, err := b.o.Listen(ctx, b.Runner.Plan.MetricsListen)
	if err != nil {
		return fmt.Errorf("--metrics-listen: %w", err)
	}
	at, stop := b.board.Serve(l)
	b.outlets = append(b.outlets, func(ctx context.Context) {
		if b.board.Scraped() && ctx.Err() == nil {
			b.say(fmt.Sprintf("Waiting up to %v for the last scrape of %s (Ctrl-C ends it)", publish.LastScrape, at))
		}
		stop(ctx)
	})
	b.say("Figures while it runs: " + at)
	return nil
}

// push begins to send figures to the collector.
func (b *Bench) push(ctx context.Context) error {
	p := &b.Runner.Plan
	address, err := publish.CollectorURL(p.OTLP)
	if err != nil {
		return err
	}
	headers, err := otlpHeaders(p.OTLPHeaders)
	if err != nil {
		return err
	}
	client, done := b.o.Client()
	stop := b.board.Push(ctx, publish.Collector{
		URL: address, Headers: headers, Every: pushPeriod, Now: time.Now, Client: client,
		Trouble: func(err error) {
			b.say("The figures did not reach the collector; the run goes on: " + visible.Line(b.o.Env.Secrets.Sweep(err.Error())))
		},
	})
	b.outlets = append(b.outlets, func(context.Context) {
		stop()
		done()
	})
	return nil
}

// Unpublish closes the outlets; the collector and the scraper get the last figures.
func (b *Bench) Unpublish(ctx context.Context) {
	for _, stop := range b.outlets {
		stop(ctx)
	}
	b.outlets = nil
}

// showLevel opens a level on the board.
func (b *Bench) showLevel(name string, live *engine.Live) {
	if b.board != nil {
		b.board.Begin(strings.TrimLeft(name, "-"), func() publish.Counts {
			return publish.Counts{Started: live.Started.Load(), Finished: live.Finished.Load(), OutputTokens: live.Tokens.Load()}
		})
	}
}
