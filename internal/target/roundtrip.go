package target

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"time"
)

const (
	handshakes        = 3
	handshakePatience = 2 * time.Second
)

// RoundTrip is how long a TCP handshake with the server takes at least, in
// milliseconds: the kernels do it, so that it is the way there and back and
// nothing else. It is nil where there are several servers, or something between.
func (t *Target) RoundTrip(ctx context.Context) *float64 {
	urls := t.Plan.BaseURLs()
	base, err := url.Parse(urls[0])
	if err != nil || len(urls) > 1 || base.Port() == "" && base.Scheme != "http" && base.Scheme != "https" {
		return nil
	}
	if t.env.Proxy != nil {
		if between, err := t.env.Proxy(&http.Request{URL: base}); err != nil || between != nil {
			return nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, handshakePatience)
	defer cancel()
	port := base.Port()
	if port == "" {
		port = base.Scheme // a name of a port, too
	}
	addresses, dial := []string{base.Hostname()}, t.env.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
		addresses, err = net.DefaultResolver.LookupHost(ctx, base.Hostname()) // its time is no part of the way
	}
	if err != nil || len(addresses) == 0 {
		return nil
	}
	least := handshakePatience
	for range handshakes {
		began := time.Now()
		nc, err := dial(ctx, "tcp", net.JoinHostPort(addresses[0], port))
		if err != nil {
			return nil
		}
		least = min(least, time.Since(began))
		_ = nc.Close() // nothing was sent
	}
	ms := float64(least) / 1e6
	return &ms
}
