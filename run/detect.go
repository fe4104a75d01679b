package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tacho/backend"
	"tacho/internal/redact"
	"tacho/plan"
)

// takeVersion takes a /v1 from the end of the servers' addresses, where the
// clients of OpenAI's protocol have it: here it begins the paths.
func takeVersion(p *plan.Plan) {
	const version = "/v1"
	p.BaseURL = slices.Clone(p.BaseURL)
	for i, base := range p.BaseURL {
		short, had := strings.CutSuffix(strings.TrimRight(base, "/"), version)
		if !had {
			continue
		}
		p.BaseURL[i] = short
		if p.Endpoint != "" && !strings.HasPrefix(p.Endpoint, version+"/") {
			p.Endpoint = version + "/" + strings.TrimLeft(p.Endpoint, "/")
		}
	}
}

// detect asks the server what it is. Where no server is named, those on the
// usual ports of the host are asked.
func (t *Target) detect(ctx context.Context) (backend.Kind, error) {
	p := &t.Plan
	ports := []int{p.Port}
	if len(p.BaseURL) == 0 && p.Port == 0 {
		ports = usualPorts()
	}
	deadline := time.Now().Add(p.ReadyCheck.Duration())
	for {
		var failed error
		for _, port := range ports {
			p.Port = port
			kind, err := t.detectAt(ctx, p.BaseURLs()[0])
			if err == nil {
				return kind, nil
			}
			failed = errors.Join(failed, fmt.Errorf("%s: %w", p.ShownURLs()[0], err))
		}
		if !pause(ctx, deadline) {
			return backend.Kind{}, fmt.Errorf("--backend auto: %s", t.env.Secrets.Hide(failed.Error()))
		}
	}
}

func (t *Target) detectAt(ctx context.Context, base string) (backend.Kind, error) {
	client, err := t.dial(base)
	if err != nil {
		return backend.Kind{}, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, t.askTimeout())
	defer cancel()
	kind, evidence, err := backend.Detect(ctx, backend.Options{Client: client, Header: t.header, APIKey: t.env.APIKey, Secrets: t.env.Secrets})
	if err == nil {
		t.say("The server at %s is taken for %s: %s.", redact.URL(base), kind.Name, evidence)
	}
	return kind, err
}

func usualPorts() []int {
	var ports []int
	for _, k := range backend.Kinds {
		if !slices.Contains(ports, k.Port) && k.Port != 443 {
			ports = append(ports, k.Port)
		}
	}
	return ports
}
