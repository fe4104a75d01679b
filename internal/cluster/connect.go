package cluster

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
)

// Access configures the connection to NATS.
type Access struct {
	URL   string // one address, or several separated by commas
	Name  string // name of the connection, shown by NATS
	Creds string // credentials file
	NKey  string // seed file
	Token string
	CA    string // certificate authority file
	Cert  string // client certificate file
	Key   string // client key file

	// Identity authenticates this process to the NATS server of a coordinator.
	Identity *Identity

	// Dial opens the connections to NATS; nil uses the network.
	Dial func(network, address string) (net.Conn, error)
}

// A dialer opens the connections of the NATS client.
type dialer func(network, address string) (net.Conn, error)

// Dial implements nats.CustomDialer.
func (d dialer) Dial(network, address string) (net.Conn, error) { return d(network, address) }

// Authenticated reports whether the client presents credentials to NATS.
func (a *Access) Authenticated() bool { return cmp.Or(a.Creds, a.NKey, a.Token, a.Cert) != "" }

// errNoServer means that no NATS server is listening, possibly not yet.
var errNoServer = errors.New("no NATS server answers")

var schemes = regexp.MustCompile(`[A-Za-z0-9+.-]*://`)

var userInfo = regexp.MustCompile(`//[^/,]*@`)

// redacted returns the address without passwords.
func (a *Access) redacted() string { return userInfo.ReplaceAllString(a.URL, "//") }

// connectTimeout bounds one attempt to connect.
const connectTimeout = 5 * time.Second

// connect opens a connection that reconnects automatically.
func (a *Access) connect() (*nats.Conn, error) {
	options := []nats.Option{
		nats.Name(a.Name), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond), nats.ReconnectJitter(50*time.Millisecond, 50*time.Millisecond),
		nats.PingInterval(2 * time.Second), nats.MaxPingsOutstanding(3), nats.Timeout(connectTimeout), nats.ReconnectBufSize(-1),
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
	plain, pin, err := a.pin()
	if err != nil {
		return nil, err
	}
	for _, scheme := range schemes.FindAllString(plain, -1) {
		if !slices.Contains([]string{"nats://", "tls://", "ws://", "wss://"}, scheme) {
			return nil, fmt.Errorf("%s is not an address of a NATS server: write nats://host:4222, or tls://host:4222", a.redacted())
		}
	}
	switch {
	case pin != "": // embedded server of a coordinator
		options = append(options, nats.Secure(pinned(pin)), nats.TLSHandshakeFirst(), nats.CustomInboxPrefix(inboxPrefix(a.Identity.Public())),
			nats.Nkey(a.Identity.Public(), a.Identity.pair.Sign))
	case a.CA != "":
		options = append(options, nats.RootCAs(a.CA))
	}
	if a.Cert != "" {
		options = append(options, nats.ClientCert(a.Cert, a.Key))
	}
	if a.Dial != nil {
		options = append(options, nats.SetCustomDialer(dialer(a.Dial)))
	}
	nc, err := nats.Connect(plain, options...)
	var dial *net.OpError
	switch {
	case errors.Is(err, errPin):
		err = fmt.Errorf("join NATS at %s: %w: another program listens there, or the coordinator has a new key; copy the address that it prints", a.redacted(), err)
	case errors.Is(err, nats.ErrNoServers), errors.As(err, &dial) && dial.Op == "dial":
		err = fmt.Errorf("%w at %s: check that it runs and that the address is right", errNoServer, a.redacted())
	case errors.Is(err, nats.ErrAuthorization) && a.Authenticated():
		err = fmt.Errorf("NATS rejects %s: check that the server at %s accepts it", cmp.Or(a.Creds, a.NKey, a.Cert, "this token"), a.redacted())
	case errors.Is(err, nats.ErrAuthorization):
		err = errors.New("NATS requires credentials: add --creds, --nkey or --token (for bench: --nats-creds, --nats-nkey or --nats-token)")
	case err != nil && (a.CA != "" || a.Cert != ""):
		err = fmt.Errorf("join NATS with TLS: %w: check --ca-cert, --cert and --key (for bench: --nats-ca-cert, --nats-cert and --nats-key)", err)
	case err != nil:
		err = fmt.Errorf("join NATS at %s: %w: check that a NATS server listens there", a.redacted(), err)
	}
	return nc, err
}
