package backend

import (
	"context"
	"net/http"
)

// A Profiler can have its server profile itself. Every backend made by a Kind
// is one; most servers are not.
type Profiler interface {
	Profile(ctx context.Context, start bool) error
}

// Profile implements Profiler.
func (c *client) Profile(ctx context.Context, start bool) error {
	path := "/stop_profile"
	if start {
		path = "/start_profile"
	}
	return c.ask(ctx, http.MethodPost, path, nil, nil)
}
