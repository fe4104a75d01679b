package transport

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"

	"tacho/internal/wholefile"
)

// TLSOptions say whom to trust and who we are.
type TLSOptions struct {
	Insecure bool   // do not check the server's certificate
	CAFile   string // PEM certificates to trust instead of the system's
	CertFile string // PEM certificate chain of ours, for mutual TLS
	KeyFile  string // PEM key of CertFile
}

// TLSConfig reads the files that o names.
func TLSConfig(o TLSOptions) (*tls.Config, error) {
	config := &tls.Config{InsecureSkipVerify: o.Insecure}
	if o.CAFile != "" {
		pem, err := wholefile.ReadOnce(o.CAFile)
		if err != nil {
			return nil, fmt.Errorf("read CA file: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("CA file %s has no certificate in it; it should have PEM blocks that begin with -----BEGIN CERTIFICATE-----", o.CAFile)
		}
	}
	switch {
	case o.CertFile == "" && o.KeyFile == "":
		return config, nil
	case o.KeyFile == "":
		return nil, fmt.Errorf("certificate file %s needs its key: name the key file too", o.CertFile)
	case o.CertFile == "":
		return nil, fmt.Errorf("key file %s needs its certificate: name the certificate file too", o.KeyFile)
	}
	pair, err := keyPair(o.CertFile, o.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("client certificate %s with key %s: %w; both should be PEM, and belong together", o.CertFile, o.KeyFile, err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

func keyPair(certFile, keyFile string) (tls.Certificate, error) {
	cert, err := wholefile.ReadOnce(certFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	key, err := wholefile.ReadOnce(keyFile)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(cert, key)
}
