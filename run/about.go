package run

import (
	"context"
	"strings"

	"tacho/backend"
	"tacho/instrument"
	"tacho/internal/redact"
	"tacho/plan"
)

// A Server is one of the servers, by what it says of itself.
type Server struct {
	URL string // fit to be shown
	backend.About
}

// describe asks the servers, and their metrics pages, what they are. None has to
// tell.
func (r *Runner) describe(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, limitTimeout)
	defer cancel()
	pages, gpus := instrument.Describe(ctx, r.pages.client, r.pages.targets)
	urls := r.Plan.BaseURLs()
	for i, about := range r.server.About(ctx) {
		for _, page := range r.pages.targets {
			if strings.HasPrefix(page.URL, strings.TrimRight(urls[i], "/")+"/") {
				for key, value := range pages[page.URL] {
					about.Set(key, value)
				}
			}
		}
		for key, value := range about.Settings {
			if text, is := value.(string); is {
				about.Settings[key] = r.env.Secrets.Hide(text)
			}
		}
		r.Servers = append(r.Servers, Server{redact.URL(urls[i]), about})
	}
	r.GPUs = r.Plan.GPUs
	if len(r.GPUs) > 0 {
		return
	}
	for name, n := range gpus {
		r.GPUs = append(r.GPUs, plan.GPU{Count: n, Name: name})
	}
}
