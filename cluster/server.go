package cluster

import (
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

// A Server is NATS with JetStream, in this process.
type Server struct{ server *server.Server }

// startTimeout is how long NATS may take to start.
const startTimeout = 10 * time.Second

// joinTimeout is how long whoever joins may take to say who they are. It is long enough
// for a machine that is short of processors.
const joinTimeout = 30 * time.Second

// Serve starts NATS at an address; port 0 takes any. Whoever joins has to know
// the token. What waits for the coordinator is kept in dir.
func Serve(address, token, dir string) (*Server, error) {
	host, text, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("%s: write HOST:PORT", address)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		return nil, fmt.Errorf("%s: the port is no number", address)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	s, err := server.NewServer(&server.Options{
		ServerName: "tacho", Host: host, Port: port, Authorization: token, JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true,
		MaxPayload: 8 << 20, WriteDeadline: 10 * time.Second, AuthTimeout: joinTimeout.Seconds(),
	})
	if err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	go s.Start()
	if !s.ReadyForConnections(startTimeout) {
		s.Shutdown()
		return nil, errors.New("NATS did not start: is the address taken, or the disk full? (--nats-listen chooses another address)")
	}
	return &Server{s}, nil
}

// URL is where it listens.
func (s *Server) URL() string { return s.server.ClientURL() }

// Close ends it.
func (s *Server) Close() {
	s.server.Shutdown()
	s.server.WaitForShutdown()
}

// Port is that at which it listens.
func (s *Server) Port() string {
	_, port, _ := net.SplitHostPort(s.server.Addr().String())
	return port
}
