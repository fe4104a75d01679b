package target

import (
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"tacho/instrument"
	"tacho/internal/limit"
	"tacho/internal/redact"
	"tacho/live"
	"tacho/transport"
)

// noPages is what --metrics-url says for none.
const noPages = "none"

// Pages are the metrics pages that are read while a level runs.
type Pages struct {
	client   *http.Client
	targets  []instrument.Target
	interval time.Duration
	scraper  atomic.Pointer[instrument.Scraper]
	before   []instrument.Sample // what they said before the level began
}

// findPages settles which metrics pages to read: those that the plan names, with
// a word about each that does not answer, else the servers' own, if they have
// any.
func (t *Target) findPages(ctx context.Context) {
	p := &t.Plan
	t.Pages = &Pages{interval: p.MetricsInterval.Duration()}
	if t.Pages.interval <= 0 {
		t.Pages.interval = time.Second
	}
	tlsConfig, err := t.tls()
	if err != nil {
		return // connect has told
	}
	// Connections of their own: the measured ones must not wait for a page.
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
			t.say("The metrics page %s says nothing yet: %s", redact.URL(url), t.env.Secrets.Hide(err.Error()))
		}
		t.Pages.targets = append(t.Pages.targets, page)
	}
}

// ownPages are where the servers themselves may have one.
func (t *Target) ownPages() []instrument.Target {
	if len(t.Plan.MetricsURL) > 0 || t.Kind.MetricsPath == "" {
		return nil
	}
	header := t.header.Clone()
	if key := t.env.APIKey; key != "" && header.Get("Authorization") == "" {
		header.Set("Authorization", "Bearer "+key)
	}
	var out []instrument.Target
	for _, base := range t.Plan.BaseURLs() {
		if strings.HasPrefix(base, "http") {
			out = append(out, instrument.Target{URL: strings.TrimRight(base, "/") + t.Kind.MetricsPath, Header: header, Optional: true})
		}
	}
	return out
}

// ReadFirst reads them before a level begins.
func (p *Pages) ReadFirst(ctx context.Context) {
	p.before = instrument.Before(ctx, p.client, p.targets)
}

// Start reads them again and again while a level runs.
func (p *Pages) Start(ctx context.Context, epoch time.Time) {
	if len(p.targets) > 0 {
		p.scraper.Store(instrument.Start(ctx, p.client, p.targets, p.interval, epoch, p.before))
	}
}

// Now is what they said last of the level that runs; nil is nothing.
func (p *Pages) Now() *live.Server {
	scraper := p.scraper.Load()
	if scraper == nil {
		return nil
	}
	said := live.Server(scraper.Now())
	if said == (live.Server{}) {
		return nil
	}
	return &said
}

// Stop is what was read of the level that is over.
func (p *Pages) Stop() []instrument.Sample {
	scraper := p.scraper.Swap(nil)
	if scraper == nil {
		return nil
	}
	return scraper.Stop()
}
