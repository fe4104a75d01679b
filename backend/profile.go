package backend

import (
	"context"
	"net/http"
)

// A Profiler can start and stop the server's profiler. Every backend made by a Kind implements Profiler, but few
// servers support it.
type Profiler interface {
	Profile(ctx context.Context, start bool) error
}

// Profile implements Profiler.
func (c *client) Profile(ctx context.Context, start bool) error {
	path := "/stop_profile"
	if start {
		path = "/start_profile"
	}
	return c.query(ctx, http.MethodPost, path, nil, nil)
}
