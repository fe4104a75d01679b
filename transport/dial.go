package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tacho-bench/tacho/transport/socket"
)

// A dialer dials connections with times.
type dialer struct {
	beneath   func(ctx context.Context, network, addr string) (net.Conn, error)
	tls       *tls.Config
	secure    bool // the target is https
	h2c       bool
	codec     bool          // TLS is a tlsCodec in our connection, not a tls.Conn above it
	clock     *socket.Clock // nil with the read clock
	keepAlive *serverKeepAlive
	timeout   time.Duration
	dials     atomic.Int64 // number of connections dialled
}

func newDialer(o Options, unixPath string, secure bool, k *serverKeepAlive) *dialer {
	d := &dialer{keepAlive: k, beneath: o.Dial, tls: tlsConfig(o), secure: secure, h2c: o.HTTP2 && !secure, timeout: o.DialTimeout}
	switch {
	case d.beneath != nil:
	case unixPath != "":
		d.beneath = func(ctx context.Context, _, _ string) (net.Conn, error) {
			var nd net.Dialer
			return nd.DialContext(ctx, "unix", unixPath)
		}
	default:
		d.beneath = new(resolver).dial
	}
	return d
}

func tlsConfig(o Options) *tls.Config {
	config := new(tls.Config)
	if o.TLS != nil {
		config = o.TLS.Clone()
	}
	config.NextProtos = []string{"http/1.1"}
	if o.HTTP2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	return config
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	nc, err := d.beneath(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	d.dials.Add(1)
	c, err := newConn(nc, d.clock, !d.secure && !d.h2c)
	if err != nil {
		return nil, err
	}
	c.h2c, c.keepAlive.server = d.h2c, d.keepAlive
	return c, nil
}

func (d *dialer) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	nc, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	config := d.tls
	if config.ServerName == "" {
		host, _, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, errors.Join(err, nc.Close())
		}
		config = config.Clone()
		config.ServerName = host
	}
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	codec := &tlsCodec{Conn: nc}
	if d.codec {
		nc = codec
	}
	tc := tls.Client(nc, config)
	if err := tc.HandshakeContext(ctx); err != nil {
		_ = nc.Close() // the error of the handshake is more informative
		return nil, &handshakeError{err}
	}
	if !d.codec {
		return tc, nil
	}
	return codec.start(tc), nil
}

// dialTarget dials the target as requests do.
func (d *dialer) dialTarget(ctx context.Context, addr string) (net.Conn, error) {
	if d.secure {
		return d.dialTLS(ctx, "tcp", addr)
	}
	return d.dial(ctx, "tcp", addr)
}

// A resolver looks up each name once, so that a run does not wait for the name server
// again. If a name has several addresses, connections rotate among the addresses that
// answer.
type resolver struct {
	dialer net.Dialer // the zero value; a test makes an address fail through Control

	mu    sync.Mutex
	addrs map[string][]netip.Addr
	turn  int
}

func (r *resolver) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return r.dialer.DialContext(ctx, network, addr)
	}
	addrs, err := r.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	var first error
	for i, a := range addrs {
		nc, err := dialOneOf(ctx, &r.dialer, network, net.JoinHostPort(a.String(), port), len(addrs)-i)
		if err == nil {
			r.forget(host, addrs[:i])
			return nc, nil
		}
		if first == nil {
			first = err
		}
	}
	r.forget(host, addrs)
	return nil, fmt.Errorf("%s: %w", host, first)
}

// dialOneOf dials the first of n addresses, with an equal share of the time left in ctx.
func dialOneOf(ctx context.Context, nd *net.Dialer, network, addr string, n int) (net.Conn, error) {
	if deadline, ok := ctx.Deadline(); ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Until(deadline)/time.Duration(n))
		defer cancel()
	}
	return nd.DialContext(ctx, network, addr)
}

// lookup returns the addresses of host, rotated.
func (r *resolver) lookup(ctx context.Context, host string) ([]netip.Addr, error) {
	r.mu.Lock()
	addrs, turn := r.addrs[host], r.turn
	r.turn++
	r.mu.Unlock()
	if len(addrs) == 0 {
		found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		if err != nil {
			return nil, err
		}
		for i := range found {
			found[i] = found[i].Unmap()
		}
		// Servers that listen on 0.0.0.0 only are more common than servers that listen on
		// :: only.
		slices.SortStableFunc(found, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
		r.mu.Lock()
		if r.addrs == nil {
			r.addrs = make(map[string][]netip.Addr)
		}
		r.addrs[host] = found
		r.mu.Unlock()
		addrs, turn = found, 0
	}
	turn %= len(addrs)
	return slices.Concat(addrs[turn:], addrs[:turn]), nil
}

// forget drops addresses that did not answer. A name without addresses is looked up again.
func (r *resolver) forget(host string, dead []netip.Addr) {
	if len(dead) == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addrs[host] = slices.DeleteFunc(slices.Clone(r.addrs[host]), func(a netip.Addr) bool { return slices.Contains(dead, a) })
}
