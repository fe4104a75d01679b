//go:build real

package cluster_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
)

// A lock is a NATS server with one kind of authentication.
type lock struct {
	server *server.Options
	right  cluster.Access
	wrong  cluster.Access
	says   string // the error for wrong credentials
}

// Valid credentials of every kind are accepted by an external NATS server, and a run succeeds.
// The error for wrong credentials names the flags.
func TestRealAccess(t *testing.T) {
	for name, make := range map[string]func(t *testing.T) lock{
		"token": tokenLock, "nkey": nkeyLock, "creds": credsLock, "TLS": tlsLock, "certificates": certificateLock,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := make(t)
			at := startNATS(t, l.server)
			l.right.URL, l.wrong.URL = at, at
			identity, err := cluster.NewIdentity()
			must.Do(t, err)
			p := &pool{access: l.right, identity: identity}
			p.join(t, "agent", nil)
			url, got := p.serve(t)
			checkComplete(t, p.execute(t.Context(), planFor(url, nil), p.lead(t, 1, nil)), got, 42)

			err = cluster.RunAgent(t.Context(), cluster.AgentOptions{Access: l.wrong, Spool: t.TempDir(), Say: func(string) {}})
			if err == nil || !strings.Contains(err.Error(), l.says) {
				t.Errorf("whoever has the wrong key hears: %v", err)
			}
		})
	}
}

// startNATS starts a NATS server and returns its address.
func startNATS(t *testing.T, o *server.Options) string {
	t.Helper()
	o.Host, o.Port, o.NoSigs, o.NoLog = "127.0.0.1", server.RANDOM_PORT, true, true
	o.AuthTimeout, o.TLSTimeout = patient.Seconds(), patient.Seconds()
	s := must.Get(server.NewServer(o))(t)
	go s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patient) {
		t.Fatal("NATS did not start")
	}
	return s.ClientURL()
}

const notLetIn = "NATS rejects "

func tokenLock(*testing.T) lock {
	return lock{&server.Options{Authorization: "right"}, cluster.Access{Token: "right"}, cluster.Access{Token: "wrong"}, notLetIn}
}

// keep writes a secret file.
func keep(t *testing.T, name string, text []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	must.Do(t, os.WriteFile(path, text, 0o600))
	return path
}

// userKey returns a new nkey and the file with its seed.
func userKey(t *testing.T) (pair nkeys.KeyPair, public, file string) {
	t.Helper()
	pair = must.Get(nkeys.CreateUser())(t)
	seed := must.Get(pair.Seed())(t)
	public = must.Get(pair.PublicKey())(t)
	return pair, public, keep(t, "user.nk", seed)
}

func nkeyLock(t *testing.T) lock {
	_, public, file := userKey(t)
	_, _, other := userKey(t)
	return lock{&server.Options{Nkeys: []*server.NkeyUser{{Nkey: public}}}, cluster.Access{NKey: file}, cluster.Access{NKey: other}, notLetIn}
}

// credsLock is a server with users of an operator's account, as with nsc.
func credsLock(t *testing.T) lock {
	operator := must.Get(nkeys.CreateOperator())(t)
	operatorKey := must.Get(operator.PublicKey())(t)
	known := &server.MemAccResolver{}
	account := newAccount(t)
	enter := func(account nkeys.KeyPair) (key string) {
		key = must.Get(account.PublicKey())(t)
		claims := jwt.NewAccountClaims(key)
		words := must.Get(claims.Encode(operator))(t)
		must.Do(t, known.Store(key, words))
		return key
	}
	enter(account)
	return lock{
		&server.Options{
			TrustedOperators: []*jwt.OperatorClaims{jwt.NewOperatorClaims(operatorKey)}, AccountResolver: known,
			SystemAccount: enter(newAccount(t)),
		},
		cluster.Access{Creds: credsOf(t, account)},
		cluster.Access{Creds: credsOf(t, newAccount(t))},
		notLetIn,
	}
}

func newAccount(t *testing.T) nkeys.KeyPair {
	t.Helper()
	return must.Get(nkeys.CreateAccount())(t)
}

// credsOf returns the credentials file of a new user of an account.
func credsOf(t *testing.T, account nkeys.KeyPair) string {
	t.Helper()
	pair, public, _ := userKey(t)
	words := must.Get(jwt.NewUserClaims(public).Encode(account))(t)
	seed := must.Get(pair.Seed())(t)
	text := must.Get(jwt.FormatUserConfig(words, seed))(t)
	return keep(t, "user.creds", text)
}

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour), IsCA: true,
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true,
	}
	var der []byte
	der, a.key = a.sign(t, template)
	a.cert = must.Get(x509.ParseCertificate(der))(t)
	a.file = keep(t, "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}))
	return a
}

func (a *authority) sign(t *testing.T, template *x509.Certificate) ([]byte, *ecdsa.PrivateKey) {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	parent, by := a.cert, a.key
	if parent == nil {
		parent, by = template, key
	}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, parent, &key.PublicKey, by))(t)
	return der, key
}

// issue returns the files of a new certificate and its key.
func (a *authority) issue(t *testing.T, name string) (cert, key string) {
	t.Helper()
	der, private := a.sign(t, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	})
	text := must.Get(x509.MarshalECPrivateKey(private))(t)
	return keep(t, "cert.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), keep(t, "key.pem", pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: text}))
}

// tlsOptions returns the options of a server with a certificate.
func (a *authority) tlsOptions(t *testing.T) *server.Options {
	t.Helper()
	cert, key := a.issue(t, "nats")
	pair := must.Get(tls.LoadX509KeyPair(cert, key))(t)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &server.Options{TLS: true, TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: pool, MinVersion: tls.VersionTLS12}, Authorization: "right"}
}

func tlsLock(t *testing.T) lock {
	a := newAuthority(t)
	return lock{a.tlsOptions(t), cluster.Access{Token: "right", CA: a.file}, cluster.Access{Token: "right", CA: newAuthority(t).file}, "certificate signed by unknown authority"}
}

// certificateLock is a server that accepts clients with a certificate.
func certificateLock(t *testing.T) lock {
	a, other := newAuthority(t), newAuthority(t)
	o := a.tlsOptions(t)
	o.Authorization, o.TLSVerify = "", true
	o.TLSConfig.ClientAuth = tls.RequireAndVerifyClientCert
	cert, key := a.issue(t, "agent")
	wrongCert, wrongKey := other.issue(t, "agent")
	return lock{o, cluster.Access{CA: a.file, Cert: cert, Key: key}, cluster.Access{CA: a.file, Cert: wrongCert, Key: wrongKey}, "check --ca-cert, --cert and --key"}
}
