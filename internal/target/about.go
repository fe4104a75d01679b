package target

import (
	"context"
	"strings"

	"github.com/tacho-bench/tacho/backend"
	"github.com/tacho-bench/tacho/internal/instrument"
	"github.com/tacho-bench/tacho/internal/redact"
	"github.com/tacho-bench/tacho/plan"
)

// A Server describes one server, as reported by the server.
type Server struct {
	URL string // without secrets
	backend.About
}

// describe asks the servers and their metrics pages for versions and settings.
// Unanswered questions leave fields empty.
func (t *Target) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	defer t.findSimulators(ctx) // last, because a server may never answer an unknown path
	pages, gpus := instrument.Describe(ctx, t.Pages.client, t.Pages.targets)
	urls := t.Plan.BaseURLs()
	for i, about := range t.server.About(ctx) {
		for _, page := range t.Pages.targets {
			if strings.HasPrefix(page.URL, strings.TrimRight(urls[i], "/")+"/") {
				for key, value := range pages[page.URL] {
					about.Set(key, value)
				}
			}
		}
		for key, value := range about.Settings {
			if text, is := value.(string); is {
				about.Settings[key] = t.env.Secrets.Hide(text)
			}
		}
		t.Servers = append(t.Servers, Server{redact.URL(urls[i]), about})
	}
	t.GPUs = t.Plan.GPUs
	if len(t.GPUs) > 0 {
		return
	}
	for name, n := range gpus {
		t.GPUs = append(t.GPUs, plan.GPU{Count: n, Name: name})
	}
}
