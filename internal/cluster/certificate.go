package cluster

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"net/url"
	"strings"
	"time"
)

// certificate returns the TLS certificate of the embedded NATS server. It depends on
// the identity alone, so agents that pinned it also accept the coordinator of a
// resumed run.
func (i *Identity) certificate() (tls.Certificate, error) {
	seed, err := i.pair.Seed()
	if err != nil {
		return tls.Certificate{}, err
	}
	mac := hmac.New(sha256.New, seed)
	_, _ = mac.Write([]byte("nats tls key")) // never fails
	key := ed25519.NewKeyFromSeed(mac.Sum(nil))
	// Agents check the public key and nothing else, so the dates have no meaning.
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "tacho coordinator"}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		NotBefore: time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC), NotAfter: time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC),
	}
	der, err := x509.CreateCertificate(nil, template, template, key.Public(), key) // Ed25519 signatures need no random numbers
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

// Pin returns the fingerprint of the public key in the certificate of the embedded
// NATS server. Join addresses end with it: tls://host:4222#PIN.
func (i *Identity) Pin() (string, error) {
	c, err := i.certificate()
	if err != nil {
		return "", err
	}
	parsed, err := x509.ParseCertificate(c.Certificate[0])
	if err != nil {
		return "", err
	}
	return pinOf(parsed), nil
}

// pinOf returns the SHA-256 sum of a certificate's public key.
func pinOf(c *x509.Certificate) string {
	sum := sha256.Sum256(c.RawSubjectPublicKeyInfo)
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// pinned returns a TLS configuration that accepts a server with one of the given
// pins, whatever its name.
func pinned(pins []string) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		InsecureSkipVerify: true, //nolint:gosec // the pin replaces the check of names and authorities
		VerifyConnection: func(s tls.ConnectionState) error {
			if len(s.PeerCertificates) > 0 {
				for _, pin := range pins {
					if hmac.Equal([]byte(pinOf(s.PeerCertificates[0])), []byte(pin)) {
						return nil
					}
				}
			}
			return errPin
		},
	}
}

var errPin = errors.New("the server's key does not match the fingerprint after # in the address")

// pins splits the addresses of NATS servers into plain addresses and pins. Either all
// addresses have a pin or none.
func (a *Access) pins() (plain string, pins []string, err error) {
	var addresses []string
	for text := range strings.SplitSeq(a.URL, ",") {
		address, pin, found := strings.Cut(strings.TrimSpace(text), "#")
		if found {
			if sum, err := base64.RawURLEncoding.DecodeString(pin); err != nil || len(sum) != sha256.Size {
				return "", nil, fmt.Errorf("%q is not a fingerprint: copy the whole address that tacho bench --agents printed", pin)
			}
			if u, err := url.Parse(address); err != nil || u.Scheme != "tls" {
				return "", nil, fmt.Errorf("%s has a fingerprint, so it must begin with tls://", address)
			}
			pins = append(pins, pin)
		}
		addresses = append(addresses, address)
	}
	if len(pins) > 0 && len(pins) < len(addresses) {
		return "", nil, errors.New("some of the addresses have a fingerprint and some do not: give all of them one")
	}
	return strings.Join(addresses, ","), pins, nil
}
