package cli_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
)

// startUI runs tacho ui until stop is called, which returns its exit code.
func startUI(args ...string) (address string, stop func() (code int, said string), err error) {
	out, in := io.Pipe()
	var errs strings.Builder
	interrupt, code := make(chan os.Signal, 1), make(chan int, 1)
	go func() {
		code <- cli.Main(&cli.Env{Args: append([]string{"ui"}, args...), Stdout: in, Stderr: &errs, Getenv: func(string) string { return "" }, Width: func() int { return 80 }, Interrupt: interrupt})
		_ = in.Close()
	}()
	lines := bufio.NewScanner(out)
	for address == "" && lines.Scan() {
		address = regexp.MustCompile(`https?://\S+`).FindString(lines.Text())
	}
	if address == "" {
		return "", nil, fmt.Errorf("it ended with %d and never said where it is", <-code)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	return address, func() (int, string) { interrupt <- os.Interrupt; return <-code, errs.String() }, nil
}

// viewing runs a documented command in the directory of its script.
func viewing(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) == 0 || strings.HasPrefix(args[0], "-") {
		args = append([]string{"runs"}, args...)
	}
	args[0] = ts.MkAbs(args[0])
	if at := slices.Index(args, "--port"); at > 0 {
		args = slices.Delete(args, at, at+2) // the documented port may be taken
	}
	_, stop, err := startUI(append(args, "--port", "0")...)
	ts.Check(err)
	if code, _ := stop(); code != 0 {
		ts.Fatalf("it ended with %d", code)
	}
}

func TestUI(t *testing.T) {
	address, stop, err := startUI("../../testdata/seeds", "--port", "0")
	must.Do(t, err)
	client, at := browserOf(t, address)
	for path, want := range map[string]string{"": "<!doctype html>", "api/runs": "000_902df92d1b3a4732.txt"} {
		if _, body := get(t, client, at+path); !strings.Contains(body, want) {
			t.Errorf("%s says %.200s", path, body)
		}
		if status, body := get(t, http.DefaultClient, at+path); status != http.StatusUnauthorized || strings.Contains(body, want) {
			t.Errorf("%s of another user of the machine: %d %.200s", path, status, body)
		}
	}
	if code, said := stop(); code != 0 || strings.Contains(said, "kept") {
		t.Errorf("Ctrl-C ends it with %d, and says %q", code, said)
	}
	if _, _, err := startUI("../../testdata/seeds", "--host", "0.0.0.0", "--port", "0"); err == nil {
		t.Error("strangers are let in without TLS")
	}
}

// Without a folder of runs, ui says so, shows an empty list, and shows the
// first run when the folder appears. Any other missing folder is an error.
func TestUIWaitsForTheFirstRun(t *testing.T) {
	seeds := must.Get(filepath.Abs("../../testdata/seeds"))(t)
	t.Chdir(t.TempDir())
	address, stop, err := startUI("--port", "0")
	must.Do(t, err)
	defer stop()
	client, at := browserOf(t, address)
	if status, body := get(t, client, at+"api/runs"); status != http.StatusOK || strings.TrimSpace(body) != "[]" {
		t.Errorf("the list without a folder: %d, %.200s", status, body)
	}
	must.Do(t, os.CopyFS("runs", os.DirFS(seeds)))
	if _, body := get(t, client, at+"api/runs"); !strings.Contains(body, "000_902df92d1b3a4732.txt") {
		t.Errorf("the list after the first run: %.200s", body)
	}
	if _, _, err := startUI("elsewhere", "--port", "0"); err == nil {
		t.Error("a folder that does not exist is served")
	}
}

// Remote access requires TLS, a name in the certificate, and the token.
func TestUIForOthers(t *testing.T) {
	cert, key, roots := certificate(t, "tacho.example")
	address, stop, err := startUI("../../testdata/seeds", "--host", "0.0.0.0", "--port", "0", "--tls-cert", cert, "--tls-key", key)
	must.Do(t, err)
	defer stop()
	at, err := url.Parse(address)
	if err != nil || at.Scheme != "https" || at.Hostname() != "tacho.example" || len(at.Query().Get("token")) < 16 {
		t.Fatalf("the address is %s: %v", address, err)
	}
	client := &http.Client{
		Transport:     &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, ServerName: "tacho.example"}, DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	plain := "https://127.0.0.1:" + at.Port() + "/"
	if status, _ := get(t, client, plain); status != http.StatusUnauthorized {
		t.Errorf("without the token: %d", status)
	}
	if status, _ := get(t, client, plain+"?"+at.RawQuery); status != http.StatusOK {
		t.Errorf("with the token: %d", status)
	}
}

// browserOf opens a printed address. It returns a client with the cookie, and the address
// without the token.
func browserOf(t *testing.T, address string) (client *http.Client, at string) {
	t.Helper()
	jar := must.Get(cookiejar.New(nil))(t)
	client = &http.Client{Jar: jar}
	at, query, _ := strings.Cut(address, "?")
	if status, _ := get(t, client, address); status != http.StatusOK || len(strings.TrimPrefix(query, "token=")) < 16 {
		t.Fatalf("%s: %d", address, status)
	}
	return client, at
}

func get(t *testing.T, client *http.Client, address string) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil))(t)
	answer, err := client.Do(r)
	must.Do(t, err)
	defer func() { _ = answer.Body.Close() }()
	b := must.Get(io.ReadAll(answer.Body))(t)
	return answer.StatusCode, string(b)
}

// certificate creates a certificate for a name, and its files.
func certificate(t *testing.T, name string) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	private, err1 := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err2 := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	secret, err3 := x509.MarshalECPrivateKey(private)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	must.Do(t, errors.Join(err1, err2, err3, os.WriteFile(cert, public, 0o600), os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: secret}), 0o600)))
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(public)
	return cert, key, roots
}
