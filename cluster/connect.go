package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"

	"tacho/internal/wholefile"
)

// Access is how NATS is reached.
type Access struct {
	URL   string // of one server or several, with commas between
	Name  string // that NATS shows for the connection
	Creds string // file
	NKey  string // file with a seed
	Token string
	CA    string // file
	Cert  string // file
	Key   string // file

	// Dial makes the connections to NATS; nil uses the network.
	Dial func(network, address string) (net.Conn, error)
}

// A dialer makes the connections of NATS' client.
type dialer func(network, address string) (net.Conn, error)

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// Known says whether NATS is told who this is.
func (a *Access) Known() bool {
	return a.Creds != "" || a.NKey != "" || a.Token != "" || a.Cert != ""
}

// errNobody is a NATS server that is not there, or not yet.
var errNobody = errors.New("no NATS server answers")

// shown is the address as it may be printed.
func (a *Access) shown() string {
	var all []string
	for text := range strings.SplitSeq(a.URL, ",") {
		if u, err := url.Parse(strings.TrimSpace(text)); err == nil && u.User != nil {
			u.User = nil // it may be a secret
			text = u.String()
		}
		all = append(all, text)
	}
	return strings.Join(all, ",")
}

// by is what NATS is shown.
func (a *Access) by() string {
	switch {
	case a.Creds != "":
		return "the credentials of " + a.Creds
	case a.NKey != "":
		return "the nkey of " + a.NKey
	case a.Token != "":
		return "this token"
	}
	return "the certificate of " + a.Cert
}

// connect opens a connection that comes back by itself.
func (a *Access) connect() (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name(a.Name), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(3), nats.Timeout(5 * time.Second), nats.ReconnectBufSize(-1),
	}
	switch {
	case a.Creds != "":
		if _, err := os.Stat(a.Creds); err != nil {
			return nil, fmt.Errorf("the credentials for NATS cannot be read: %w", err)
		}
		options = append(options, nats.UserCredentials(a.Creds))
	case a.NKey != "":
		o, err := nats.NkeyOptionFromSeed(a.NKey)
		if err != nil {
			return nil, fmt.Errorf("the nkey of %s cannot be read: %w", a.NKey, err)
		}
		options = append(options, o)
	case a.Token != "":
		options = append(options, nats.Token(a.Token))
	}
	if a.CA != "" || a.Cert != "" {
		c, err := a.tls()
		if err != nil {
			return nil, err
		}
		options = append(options, nats.Secure(c))
	}
	if a.Dial != nil {
		options = append(options, nats.SetCustomDialer(dialer(a.Dial)))
	}
	if err := a.spoken(); err != nil {
		return nil, err
	}
	nc, err := nats.Connect(a.URL, options...)
	var dial *net.OpError
	switch {
	case errors.Is(err, nats.ErrNoServers), errors.As(err, &dial) && dial.Op == "dial":
		return nil, fmt.Errorf("%w at %s: see that it runs, and that the address is right", errNobody, a.shown())
	case errors.Is(err, nats.ErrAuthorization) && a.Known():
		return nil, fmt.Errorf("NATS does not let us in with %s: see that the server at %s knows it", a.by(), a.shown())
	case errors.Is(err, nats.ErrAuthorization):
		return nil, errors.New("NATS does not let us in: give --creds, --nkey or --token (of bench: --nats-creds, --nats-nkey or --nats-token)")
	case err != nil && (a.CA != "" || a.Cert != ""):
		return nil, fmt.Errorf("join NATS by TLS: %w: see that --ca-cert, --cert and --key (of bench: --nats-ca-cert, --nats-cert and --nats-key) are those that the server knows", err)
	case err != nil:
		return nil, fmt.Errorf("join NATS at %s: %w: is it a NATS server that listens there?", a.shown(), err)
	}
	return nc, nil
}

// spoken says of an address in another protocol than NATS' own that nobody will
// answer there.
func (a *Access) spoken() error {
	for text := range strings.SplitSeq(a.shown(), ",") {
		scheme, _, has := strings.Cut(strings.TrimSpace(text), "://")
		if has && !slices.Contains([]string{"nats", "tls", "ws", "wss"}, scheme) {
			return fmt.Errorf("%s is no address of a NATS server: write it as nats://host:4222, or tls://host:4222", text)
		}
	}
	return nil
}

func (a *Access) tls() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		text, err := wholefile.ReadOnce(a.CA)
		if err != nil {
			return nil, err
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(text) {
			return nil, fmt.Errorf("%s holds no certificate", a.CA)
		}
	}
	if a.Cert != "" {
		pair, err := tls.LoadX509KeyPair(a.Cert, a.Key)
		if err != nil {
			return nil, err
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c, nil
}
