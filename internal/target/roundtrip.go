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

// RoundTrip returns the shortest time of a TCP handshake with the server in
// milliseconds. The kernels do the handshake, so the time contains the network
// only. The result is nil for several servers or if a proxy is in between.
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
		port = base.Scheme // net.Dial also accepts port names
	}
	addresses, dial := []string{base.Hostname()}, t.env.Dial
	if dial == nil {
		dial = (&net.Dialer{}).DialContext
		addresses, err = net.DefaultResolver.LookupHost(ctx, base.Hostname()) // name resolution is not part of the round trip
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
