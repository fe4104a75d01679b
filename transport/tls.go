package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"github.com/tacho-bench/tacho/internal/atomicfile"
)

// TLSOptions names the certificates to trust and to present.
type TLSOptions struct {
	Insecure bool   // skip the check of the server's certificate
	CAFile   string // PEM certificates to trust instead of the system's
	CertFile string // our PEM certificate chain, for mutual TLS
	KeyFile  string // PEM key of CertFile
}

// TLSConfig reads the files named in o.
func TLSConfig(o TLSOptions) (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: o.Insecure}
	if o.CAFile != "" {
		pem, err := atomicfile.ReadOnce(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s contains no certificate; it needs PEM blocks that begin with -----BEGIN CERTIFICATE-----", o.CAFile)
		}
	}
	switch {
	case o.CertFile == "" && o.KeyFile == "":
		return config, nil
	case o.KeyFile == "":
		return nil, fmt.Errorf("certificate file %s has no key; name its key file, too", o.CertFile)
	case o.CertFile == "":
		return nil, fmt.Errorf("key file %s has no certificate; name its certificate file, too", o.KeyFile)
	}
	pair, err := keyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("client certificate %s with key %s: %w; both must be PEM files and belong together", o.CertFile, o.KeyFile, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

func keyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := atomicfile.ReadOnce(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := atomicfile.ReadOnce(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}
