package publish

import (
	"crypto/ed25519"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/memnet"
	"github.com/tacho-bench/tacho/internal/must"
)

// An authority signs certificates and writes them to files.
type authority struct {
	cert *x509.Certificate
	key  ed25519.PrivateKey
	file string
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{file: filepath.Join(t.TempDir(), "ca.pem")}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "authority"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	_, a.key, _ = ed25519.GenerateKey(nil) // never fails
	der := must.Get(x509.CreateCertificate(nil, template, template, a.key.Public(), a.key))(t)
	a.cert = must.Get(x509.ParseCertificate(der))(t)
	writePEM(t, a.file, "CERTIFICATE", der)
	return a
}

// sign returns the files of a certificate and its key.
func (a *authority) sign(t *testing.T, name string) (cert, key string) {
	t.Helper()
	public, private, _ := ed25519.GenerateKey(nil) // never fails
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der := must.Get(x509.CreateCertificate(nil, template, a.cert, public, a.key))(t)
	pkcs8 := must.Get(x509.MarshalPKCS8PrivateKey(private))(t)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	writePEM(t, cert, "CERTIFICATE", der)
	writePEM(t, key, "PRIVATE KEY", pkcs8)
	return cert, key
}

func writePEM(t *testing.T, path, kind string, der []byte) {
	t.Helper()
	must.Do(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
}

// collectorWithTLS serves a collector that requires certificates of clients. It sends the names in them to names.
func collectorWithTLS(t *testing.T, servers, clients *authority, names chan<- string) *memnet.Listener {
	t.Helper()
	pair := must.Get(tls.LoadX509KeyPair(servers.sign(t, "collector.example")))(t)
	pool := x509.NewCertPool()
	pool.AddCert(clients.cert)
	server := &http.Server{
		ReadHeaderTimeout: time.Minute, ErrorLog: log.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			names <- r.TLS.PeerCertificates[0].Subject.CommonName
		}),
	}
	l := memnet.Listen()
	go func() { _ = server.ServeTLS(l, "", "") }()
	t.Cleanup(func() { _ = server.Close() })
	return l
}

// TestMutualTLS sends metrics to a collector that requires a certificate. A collector gets nothing if it does not accept the client's certificate, or if the client does not accept the collector's.
func TestMutualTLS(t *testing.T) {
	const prefix = "OTEL_EXPORTER_OTLP_"
	const refused = ":" // the error depends on how much of the request the client has sent
	servers, clients, others := newAuthority(t), newAuthority(t), newAuthority(t)
	names := make(chan string, 10)
	l := collectorWithTLS(t, servers, clients, names)
	cert, key := clients.sign(t, "load-generator")
	otherCert, otherKey := others.sign(t, "stranger")
	for name, c := range map[string]struct {
		ca, cert, key string
		want          string // in the error
	}{
		"accepted":             {servers.file, cert, key, ""},
		"without certificate":  {servers.file, "", "", refused},
		"stranger":             {servers.file, otherCert, otherKey, refused},
		"unknown collector":    {others.file, cert, key, "signed by unknown authority"},
		"without an authority": {"", cert, key, "signed by unknown authority"},
	} {
		t.Run(name, func(t *testing.T) {
			s := Settings{Getenv: lookup(map[string]string{
				prefix + "ENDPOINT": "https://collector.example:4318", prefix + "CERTIFICATE": c.ca,
				prefix + "CLIENT_CERTIFICATE": c.cert, prefix + "CLIENT_KEY": c.key, prefix + "TIMEOUT": "60000",
			})}
			to := must.Get(s.Collector())(t)
			to.Now = time.Now
			to.Connect(&http.Client{Transport: &http.Transport{DialContext: l.Dial}})
			defer to.Close()
			switch err := filledFor(t, to).pushOnce(t.Context()); {
			case c.want == "" && err == nil:
				if got := <-names; got != "load-generator" {
					t.Errorf("the collector saw the certificate of %q", got)
				}
			case c.want == "" || err == nil || !strings.Contains(err.Error(), c.want):
				t.Errorf("%v, want %q", err, c.want)
			}
			if len(names) > 0 {
				t.Errorf("the collector got a request of %q", <-names)
			}
		})
	}
}

// TestCertificateWithoutKey checks that a certificate without its key is an error, and a key without its certificate.
func TestCertificateWithoutKey(t *testing.T) {
	cert, key := newAuthority(t).sign(t, "load-generator")
	for variable, value := range map[string]string{"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE": cert, "OTEL_EXPORTER_OTLP_METRICS_CLIENT_KEY": key} {
		s := Settings{Getenv: lookup(map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "https://c", variable: value})}
		if _, err := s.Collector(); err == nil || !strings.Contains(err.Error(), variable+" without ") {
			t.Errorf("%s: %v", variable, err)
		}
	}
}
