package run

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"tacho/backend"
	"tacho/instrument"
)

// What to do when a run can no longer be written down.
const (
	waitOnFullDisk = "memory"
	StopOnFullDisk = "stop"
)

// A GPU is a sort of GPU, and how many there are.
type GPU struct {
	Count int
	Name  string
}

// GPUs are what a server runs on.
type GPUs []GPU

// UnmarshalText reads 8xMI300X, H100 or 4xH100,4xA100.
func (g *GPUs) UnmarshalText(b []byte) error {
	*g = nil
	for part := range strings.SplitSeq(string(b), ",") {
		gpu := GPU{1, strings.TrimSpace(part)}
		if count, name, found := strings.Cut(gpu.Name, "x"); found {
			if n, err := strconv.Atoi(count); err == nil {
				gpu = GPU{n, strings.TrimSpace(name)}
			}
		}
		if gpu.Count < 1 || gpu.Name == "" {
			return errors.New("write how many and which, as in 8xMI300X or 4xH100,4xA100")
		}
		*g = append(*g, gpu)
	}
	return nil
}

// MarshalText implements encoding.TextMarshaler.
func (g GPUs) MarshalText() ([]byte, error) {
	parts := make([]string, len(g))
	for i, gpu := range g {
		parts[i] = fmt.Sprintf("%dx%s", gpu.Count, gpu.Name)
	}
	return []byte(strings.Join(parts, ",")), nil
}

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
	urls := r.Plan.baseURLs()
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
		r.Servers = append(r.Servers, Server{publicURL(urls[i]), about})
	}
	r.GPUs = r.Plan.GPUs
	if len(r.GPUs) > 0 {
		return
	}
	for name, n := range gpus {
		r.GPUs = append(r.GPUs, GPU{n, name})
	}
}
