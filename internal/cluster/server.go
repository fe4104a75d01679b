package cluster

import (
	"crypto/subtle"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"
)

// A Server is a NATS server in this process. It speaks TLS with the certificate of the coordinator's identity.
type Server struct {
	ServerOptions
	server *server.Server

	mu       sync.Mutex
	admitted map[string]bool // keys of agents
}

// ServerOptions configure the embedded NATS server.
type ServerOptions struct {
	Address  string    // HOST:PORT; port 0 takes any
	Identity *Identity // of the coordinator; it has all permissions
	Token    string    // admits agents with keys that are not known yet

	// Known reports whether an agent's key was admitted before; Remember is called when the token admits a new one. Both
	// may be nil.
	Known    func(key string) bool
	Remember func(key string)
}

const (
	startTimeout = 10 * time.Second // of NATS
	// joinTimeout bounds the TLS handshake and the authentication of a client. It is long enough for a machine without
	// free CPU.
	joinTimeout = 30 * time.Second
	// maxStrangers is how many clients may be about to authenticate. If there are more, the oldest are disconnected.
	maxStrangers     = 64
	strangerInterval = 100 * time.Millisecond
	answerTime       = 2 * time.Minute // bounds how long an agent may take to answer a question
)

// Serve starts NATS.
func Serve(o ServerOptions) (*Server, error) {
	host, text, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, fmt.Errorf("%s: write HOST:PORT", o.Address)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s: the port is not a number", o.Address)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	certificate, err := o.Identity.certificate()
	if err != nil {
		return nil, err
	}
	s := &Server{ServerOptions: o, admitted: map[string]bool{}}
	s.server, err = server.NewServer(&server.Options{
		ServerName: "tacho", Host: host, Port: port, NoSigs: true, NoLog: true,
		CustomClientAuthentication: s, AlwaysEnableNonce: true, // clients sign the nonce with their keys
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}, TLSHandshakeFirst: true, TLSTimeout: joinTimeout.Seconds(),
		MaxPayload: 8 << 20, WriteDeadline: 10 * time.Second, AuthTimeout: joinTimeout.Seconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	go s.server.Start()
	if !s.server.ReadyForConnections(startTimeout) {
		s.server.Shutdown()
		return nil, errors.New("NATS did not start: is the address taken? (--nats-listen chooses another address)")
	}
	go s.limitStrangers()
	return s, nil
}

// limitStrangers disconnects clients that do not authenticate.
func (s *Server) limitStrangers() {
	for ; s.server.Running(); time.Sleep(strangerInterval) {
		all, err := s.server.Connz(&server.ConnzOptions{Username: true, Limit: s.server.NumClients()})
		if err != nil {
			continue
		}
		var strangers []uint64 // in the order of their arrival
		for _, c := range all.Conns {
			if c.AuthorizedUser == "" {
				strangers = append(strangers, c.Cid)
			}
		}
		for _, id := range strangers[:max(len(strangers)-maxStrangers, 0)] {
			_ = s.server.DisconnectClientByID(id) // it may have left
		}
	}
}

// Join returns the address that agents on a host join, with the fingerprint of the server's key.
func (s *Server) Join(host string) string {
	_, port, _ := net.SplitHostPort(s.server.Addr().String())
	return "tls://" + net.JoinHostPort(host, port) + "#" + s.Identity.Pin()
}

// URL returns the address for clients on this machine.
func (s *Server) URL() string {
	host, _, _ := net.SplitHostPort(s.server.Addr().String())
	if ip := net.ParseIP(host); ip == nil || ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return s.Join(host)
}

// Admitted reports whether the server admitted an agent with a key.
func (s *Server) Admitted(key string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.admitted[key]
}

// Close stops the server.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// Check implements server.Authentication. Every client proves that it owns a key. An agent may connect if its key was
// admitted before, or if it knows the token.
func (s *Server) Check(c server.ClientAuthentication) bool {
	o := c.GetOpts()
	signature, err := base64.RawURLEncoding.DecodeString(o.Sig)
	if err != nil {
		return false
	}
	key, err := nkeys.FromPublicKey(o.Nkey)
	if err != nil || key.Verify(c.GetNonce(), signature) != nil {
		return false
	}
	if o.Nkey == s.Identity.Public() {
		c.RegisterUser(&server.User{Username: "coordinator"})
		return true
	}
	if !s.admit(o.Nkey, o.Token) {
		return false
	}
	c.RegisterUser(&server.User{Username: o.Nkey, Permissions: agentPermissions(o.Nkey)})
	return true
}

// admit reports whether an agent may connect.
func (s *Server) admit(key, token string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admitted[key] {
		return true
	}
	if s.Known == nil || !s.Known(key) {
		if s.Token == "" || subtle.ConstantTimeCompare([]byte(token), []byte(s.Token)) != 1 {
			return false
		}
		if s.Remember != nil {
			s.Remember(key)
		}
	}
	s.admitted[key] = true
	return true
}

// agentPermissions let an agent receive its own orders, and send answers, its own beats and its own records. It cannot
// read other agents' records or orders.
func agentPermissions(key string) *server.Permissions {
	return &server.Permissions{
		Subscribe: &server.SubjectPermission{Allow: []string{discoverSubject, "tacho.agent." + key + ".>", inboxPrefix(key) + ".>"}},
		Publish:   &server.SubjectPermission{Allow: []string{heartbeatSubject("*", key), "tacho.run.*.records.*." + key + ".*"}},
		Response:  &server.ResponsePermission{MaxMsgs: 1, Expires: answerTime},
	}
}
