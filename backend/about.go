package backend

import (
	"context"
	"net/http"

	"github.com/tacho-bench/tacho/internal/redact"
)

// An About holds a server's description of itself. Any field may be missing.
type About struct {
	Name     string
	Version  string
	MaxLen   int            // context length: tokens of prompt and output together
	Settings map[string]any // numbers, strings and booleans
}

const (
	maxSettings  = 500
	longestValue = 500
)

// Set adds a setting, unless the name suggests a secret.
func (a *About) Set(key string, value any) {
	if redact.NamesSecret(key) {
		return
	}
	switch v := value.(type) {
	case bool, float64:
	case string:
		if v == "" || len(v) > longestValue {
			return
		}
	default:
		return // not a setting but a state or a list
	}
	if a.Settings == nil {
		a.Settings = map[string]any{}
	}
	if len(a.Settings) < maxSettings {
		a.Settings[key] = value
	}
}

// About implements Server. In most servers, the owner of a listed model is the server's own name. The owner
// identifies the server if the user named only a protocol.
func (c *client) About(ctx context.Context) []About {
	var a About
	describer := c.Kind
	models, _ := c.models(ctx, c) // best effort
	for _, m := range models {
		if m.ID == c.Model {
			a.MaxLen = m.MaxLen
			for _, k := range Kinds {
				if k.about != "" && m.Owner != "" && (m.Owner == k.Name || m.Owner == k.owner) {
					describer, a.Name = k, k.Name
				}
			}
		}
	}
	if describer.about == "" {
		return []About{a}
	}
	var page map[string]any
	if c.query(ctx, http.MethodGet, describer.about, nil, &page) != nil {
		return []About{a}
	}
	a.Name = describer.Name
	for key, value := range page {
		text, _ := value.(string)
		switch key {
		case "version", "build_info": // build_info is llama.cpp's
			a.Version = text
		default:
			a.Set(key, value)
		}
	}
	return []About{a}
}

// About implements Server.
func (s *spread) About(ctx context.Context) (all []About) {
	for _, c := range s.clients {
		all = append(all, c.About(ctx)...)
	}
	return all
}
