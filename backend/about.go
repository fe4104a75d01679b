package backend

import (
	"context"
	"net/http"

	"tacho/internal/redact"
)

// An About is what a server says of itself. All may be missing.
type About struct {
	Name     string
	Version  string
	MaxLen   int            // tokens of prompt and output together
	Settings map[string]any // numbers, texts and switches
}

const (
	mostSettings = 500
	longestValue = 500
)

// Set adds a setting, unless its name is that of a secret.
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
		return // more than a setting: a state, or a list
	}
	if a.Settings == nil {
		a.Settings = map[string]any{}
	}
	if len(a.Settings) < mostSettings {
		a.Settings[key] = value
	}
}

// About implements Server. The owner of a listed model is mostly the server
// itself. That tells which server it is where only a protocol was named.
func (c *client) About(ctx context.Context) []About {
	var a About
	teller := c.Kind
	models, _ := c.models(ctx, c) // what cannot be asked is not known
	for _, m := range models {
		if m.ID == c.Model {
			a.MaxLen = m.MaxLen
			for _, k := range Kinds {
				if k.about != "" && m.Owner != "" && (m.Owner == k.Name || m.Owner == k.owner) {
					teller, a.Name = k, k.Name
				}
			}
		}
	}
	if teller.about == "" {
		return []About{a}
	}
	var page map[string]any
	if c.ask(ctx, http.MethodGet, teller.about, nil, &page) != nil {
		return []About{a}
	}
	a.Name = teller.Name
	for key, value := range page {
		text, _ := value.(string)
		switch key {
		case "version", "build_info": // the latter is llama.cpp's
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
