package target

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/limit"
	"github.com/tacho-bench/tacho/internal/live"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/transport"
)

// noPages is the value of --metrics-url that disables metrics pages.
const noPages = "none"

// Pages are the metrics pages read during a level.
type Pages struct {
	client   *http.Client
	targets  []instrument.Target
	interval time.Duration
	scraper  atomic.Pointer[instrument.Scraper]
	before   []instrument.Sample // values before the level
}

// findPages chooses the metrics pages: the plan's pages, with a message for
// each page that does not answer, otherwise the servers' own pages if they
// exist.
func (t *Target) findPages(ctx context.Context) {
	p := &t.Plan
	t.Pages = &Pages{interval: p.MetricsInterval.Duration()}
	if t.Pages.interval <= 0 {
		t.Pages.interval = time.Second
	}
	tlsConfig, err := t.tls()
	if err != nil {
		return // connect reports the error
	}
	// Separate connections, because measured requests must not wait for a page.
	t.Pages.client = &http.Client{
		Transport:     &http.Transport{TLSClientConfig: tlsConfig, Proxy: t.env.Proxy, DialContext: t.env.Dial, MaxResponseHeaderBytes: limit.Header},
		CheckRedirect: transport.SameServer,
	}
	t.Pages.targets = t.ownPages()
	for _, url := range append(p.MetricsURL, p.GPUMetricsURL...) {
		if url == noPages {
			continue
		}
		page := instrument.Target{URL: url}
		if err := instrument.Probe(ctx, t.Pages.client, page); err != nil {
			t.say("Metrics page %s does not answer yet: %s", redact.URL(url), t.env.Secrets.Hide(err.Error()))
		}
		t.Pages.targets = append(t.Pages.targets, page)
	}
}

// pageHeader returns the header of requests to the servers' own pages.
func (t *Target) pageHeader() http.Header {
	header := t.header.Clone()
	if header == nil {
		header = http.Header{}
	}
	if key := t.env.APIKey; key != "" && header.Get("Authorization") == "" {
		header.Set("Authorization", "Bearer "+key)
	}
	return header
}

// ownPages returns the usual metrics pages of the servers.
func (t *Target) ownPages() []instrument.Target {
	if len(t.Plan.MetricsURL) > 0 || t.Kind.MetricsPath == "" {
		return nil
	}
	header := t.pageHeader()
	var out []instrument.Target
	for _, base := range t.Plan.BaseURLs() {
		if strings.HasPrefix(base, "http") {
			out = append(out, instrument.Target{URL: strings.TrimRight(base, "/") + t.Kind.MetricsPath, Header: header, Optional: true})
		}
	}
	return out
}

// ReadFirst reads the pages before a level.
func (p *Pages) ReadFirst(ctx context.Context) {
	p.before = instrument.Before(ctx, p.client, p.targets)
}

// Start reads the pages repeatedly during a level.
func (p *Pages) Start(ctx context.Context, epoch time.Time) {
	if len(p.targets) > 0 {
		p.scraper.Store(instrument.Start(ctx, p.client, p.targets, p.interval, epoch, p.before))
	}
}

// Now returns the latest values of the current level, or nil.
func (p *Pages) Now() *live.Server {
	scraper := p.scraper.Load()
	if scraper == nil {
		return nil
	}
	said := live.Server(scraper.Now())
	if said.Running == nil && said.Queued == nil && said.KVShare == nil {
		return nil
	}
	return &said
}

// Stop ends the reading and returns all samples of the level.
func (p *Pages) Stop() []instrument.Sample {
	scraper := p.scraper.Swap(nil)
	if scraper == nil {
		return nil
	}
	return scraper.Stop()
}
