package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/engine"
	"github.com/tacho-bench/tacho/internal/exposition"
	"github.com/tacho-bench/tacho/internal/publish"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/internal/sanitize"
	"github.com/tacho-bench/tacho/internal/target"
	"github.com/tacho-bench/tacho/outcome"
	"github.com/tacho-bench/tacho/plan"
)

// collector returns the receiver of metrics, or nil if neither the plan nor a variable names one.
func (b *Bench) collector(p *plan.Plan) (*publish.Collector, error) {
	if p.Virtual {
		return nil, nil
	}
	s := publish.Settings{Endpoint: p.OTLP, Headers: p.OTLPHeaders, Getenv: b.o.Getenv}
	to, err := s.Collector()
	switch {
	case errors.Is(err, publish.ErrNotSent):
		b.Message(err.Error() + ".")
		return nil, nil
	case err != nil:
		return nil, err
	case to == nil && len(p.OTLPHeaders) > 0:
		return nil, errors.New("--otlp-header needs --otlp-endpoint")
	case to == nil:
		return nil, nil
	}
	for name, values := range to.Headers {
		for _, v := range values {
			b.o.Env.Secrets.Header(name, v)
		}
	}
	to.Now = time.Now
	return to, nil
}

// Publish starts the metrics page and the OTLP exporter, once for all levels.
func (b *Bench) Publish(ctx context.Context) error {
	p := &b.Runner.Plan
	if b.board != nil || (p.MetricsListen == "" && b.to == nil) {
		return nil
	}
	b.board = publish.New(time.Now(), b.about(), b.to)
	if b.to != nil {
		b.push(ctx)
	}
	if p.MetricsListen != "" {
		return b.servePage(ctx)
	}
	return nil
}

// about describes the run to monitoring systems.
func (b *Bench) about() publish.About {
	p, t := &b.Runner.Plan, b.Runner.Target
	about := publish.About{
		Version: Version(), Operation: operation(&t.Kind), Provider: provider(p.BaseURLs(), t), Model: b.o.Env.Secrets.Sweep(t.ModelID),
		Labels: []exposition.Label{
			{Name: "version", Value: Version()},
			{Name: "backend", Value: p.Backend},
			{Name: "model", Value: b.o.Env.Secrets.Sweep(t.ModelID)},
			{Name: "url", Value: strings.Join(p.ShownURLs(), " ")},
			{Name: "label", Value: b.o.Env.Secrets.Sweep(p.Label)},
		},
	}
	if urls := p.ShownURLs(); len(urls) == 1 {
		about.Server = urls[0]
	}
	return about
}

// operation returns the operation of a protocol in the GenAI conventions of OpenTelemetry. The conventions have no
// names for reranking and transcription.
func operation(k *backend.Kind) string {
	switch {
	case strings.HasSuffix(k.Name, "rerank"):
		return "rerank"
	case k.Pools:
		return "embeddings"
	case k.Takes.Audio:
		return "transcription"
	case k.Name == "gemini":
		return "generate_content"
	case k.Takes.Messages:
		return "chat"
	}
	return "text_completion"
}

// provider returns the provider in the GenAI conventions. OpenAI is also the provider of unknown servers with its
// protocol.
func provider(urls []string, t *target.Target) string {
	switch name := t.Kind.Name; {
	case name == "anthropic":
		return name
	case name == "gemini":
		return "gcp.gemini"
	case len(t.Servers) > 0 && t.Servers[0].Name != "" && !strings.Contains(urls[0], "api.openai.com"):
		return t.Servers[0].Name
	case strings.HasPrefix(name, "openai"):
		return "openai"
	default:
		return name
	}
}

// servePage starts the metrics page for Prometheus. It closes last, because a
// scraper may have to read it once more.
func (b *Bench) servePage(ctx context.Context) error {
	l, err := b.o.Listen(ctx, b.Runner.Plan.MetricsListen)
	if err != nil {
		return fmt.Errorf("--metrics-listen: %w", err)
	}
	at, stop := b.board.Serve(l, machineNames(b.Runner.Plan.MetricsListen)...)
	b.outlets = append(b.outlets, func(ctx context.Context) {
		if b.board.Scraped() && ctx.Err() == nil {
			b.Message(fmt.Sprintf("Waiting up to %v for the last scrape of %s (Ctrl-C skips it)", publish.LastScrape, at))
		}
		stop(ctx)
	})
	b.Message("Metrics during the run: " + at)
	return nil
}

// machineNames returns the names of this machine: its host name, and the name in the listen address.
func machineNames(address string) (names []string) {
	if name, err := os.Hostname(); err == nil {
		names = append(names, name)
	}
	if host, _, err := net.SplitHostPort(address); err == nil && host != "" && net.ParseIP(host) == nil {
		names = append(names, host)
	}
	return names
}

// push starts sending metrics to the collector.
func (b *Bench) push(ctx context.Context) {
	client, done := b.o.Client()
	b.to.Connect(client)
	if strings.HasPrefix(b.to.From, "OTEL_") {
		b.Message(fmt.Sprintf("Sending metrics to %s, because %s is set (OTEL_SDK_DISABLED=true disables it)", redact.URL(b.to.URL), b.to.From))
	}
	stop := b.board.Push(ctx, func(err error) {
		b.Message("The collector does not get everything; the run continues: " + sanitize.Line(b.o.Env.Secrets.Sweep(err.Error())))
	})
	b.outlets = append(b.outlets, func(context.Context) {
		stop()
		b.to.Close()
		done()
	})
}

// Unpublish sends the last metrics and stops publishing.
func (b *Bench) Unpublish(ctx context.Context) {
	for _, stop := range b.outlets {
		stop(ctx)
	}
	b.outlets = nil
}

// showLevel adds a level to the published metrics.
func (b *Bench) showLevel(l *outcome.Level, live *engine.Live) {
	if b.board != nil {
		b.board.Begin(publish.Level{
			Name: strings.TrimLeft(l.Name, "-"),
			Now: func() publish.Counts {
				return publish.Counts{Started: live.Started.Load(), Finished: live.Finished.Load(), OutputTokens: live.Tokens.Load()}
			},
		})
	}
}
