package cli

import (
	"context"
	"net"
	"net/http"
)

// A Network opens and accepts the connections of a command.
type Network interface {
	Listen(ctx context.Context, network, address string) (net.Listener, error)
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// listen listens on an address.
func (env *Env) listen(ctx context.Context, address string) (net.Listener, error) {
	if env.Network != nil {
		return env.Network.Listen(ctx, "tcp", address)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// dial returns the value of run.Env.Dial.
func (env *Env) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	if env.Network == nil {
		return nil
	}
	return env.Network.Dial
}

// client returns an HTTP client for servers that are not measured. done closes
// its connections.
func (env *Env) client() (client *http.Client, done func()) {
	if env.Network == nil {
		return http.DefaultClient, func() {}
	}
	client = &http.Client{Transport: &http.Transport{DialContext: env.Network.Dial}}
	return client, client.CloseIdleConnections
}
