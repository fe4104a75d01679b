package cluster

import (
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"strings"
	"time"
)

// certificate returns the TLS certificate of the embedded NATS server. It depends on the identity alone, so agents that
// pinned it also accept the coordinator of a resumed run.
func (i *Identity) certificate() (tls.Certificate, error) {
	key := i.tlsKey()
	// Agents check the public key and nothing else, so the dates have no meaning.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tacho coordinator"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key) // Ed25519 signatures need no random numbers
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

// Pin returns the fingerprint of the public key in the certificate of the embedded NATS server. Join addresses end with
// it: tls://host:4222#PIN.
func (i *Identity) Pin() string {
	key, _ := x509.MarshalPKIXPublicKey(i.tlsKey().Public()) // knows this kind of key
	return pinOf(key)
}

func (i *Identity) tlsKey() ed25519.PrivateKey { return ed25519.NewKeyFromSeed(i.mac("nats tls key")) }

// pinOf returns the SHA-256 sum of a public key.
func pinOf(key []byte) string {
	sum := sha256.Sum256(key)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// pinned returns a TLS configuration that accepts a server with a pin, whatever its name.
func pinned(pin string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, //nolint:gosec // the pin replaces the check of names and authorities
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) == 0 || pinOf(s.PeerCertificates[0].RawSubjectPublicKeyInfo) != pin {
				return errPin
			}
			return nil
		},
	}
}

var errPin = errors.New("the server's key does not match the fingerprint after # in the address")

// pin splits the address of a NATS server into the plain address and the pin, if it has one.
func (a *Access) pin() (plain, pin string, err error) {
	plain, pin, found := strings.Cut(a.URL, "#")
	if sum, err := base64.RawURLEncoding.DecodeString(pin); found && (err != nil || len(sum) != sha256.Size) {
		return "", "", fmt.Errorf("%q is not a fingerprint: copy the whole address that tacho bench --agents printed", pin)
	}
	if found && !strings.HasPrefix(plain, "tls://") {
		return "", "", fmt.Errorf("%s has a fingerprint, so it must begin with tls://", plain)
	}
	return plain, pin, nil
}
