package cli_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode"

	"github.com/tacho-bench/tacho/internal/cli"
	"github.com/tacho-bench/tacho/internal/must"
)

// evil contains terminal control sequences: a title, a color, the same in C1
// bytes, a deletion, and a change of direction.
const evil = "\x1b]0;owned\x07\x1b[31m\u009b31m\x7f\u202etxt"

// says is a server with OpenAI's protocol and given texts.
type says struct {
	model, finish, refusal string
}

func (s says) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	text := func(words string) string {
		b, _ := json.Marshal(words)
		return string(b)
	}
	switch {
	case r.URL.Path == "/v1/models":
		_, _ = fmt.Fprintf(w, `{"data":[{"id":%s}]}`, text(s.model))
	case r.URL.Path != "/v1/completions":
		http.NotFound(w, r)
	case s.refusal != "":
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprintf(w, `{"error":{"message":%s}}`, text(s.refusal))
	default:
		time.Sleep(10 * time.Millisecond) // virtual time, so that the run has a duration
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprintf(w, "data: {\"choices\":[{\"text\":\" a\"}]}\n\ndata: {\"choices\":[{\"text\":\"\",\"finish_reason\":%s}]}\n\ndata: [DONE]\n\n", text(s.finish))
	}
}

// program runs tacho in this process.
func program(vars map[string]string, args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = cli.Main(&cli.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs,
		Getenv: func(name string) string { return vars[name] }, Width: func() int { return 200 },
	})
	return code, out.String(), errs.String()
}

// No control sequence from a server or a file reaches the terminal.
func TestNothingIsObeyed(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) { nothingIsObeyed(t, dir) })
}

func nothingIsObeyed(t *testing.T, dir string) {
	t.Helper()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		must.Do(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	report := must.Get(os.ReadFile("../../testdata/seeds/000_902df92d1b3a4732.txt"))(t)
	bench := func(s says, more ...string) []string {
		srv := listen(t, s)
		t.Cleanup(srv.Close)
		return append([]string{"bench", "--base-url", srv.URL, "--runs-dir", dir, "--num-prompts", "2", "--random-input-len", "3", "--random-output-len", "1", "--tokenizer", "gpt-4o"}, more...)
	}
	for name, args := range map[string][]string{
		"model":       bench(says{model: "m" + evil}),
		"finish":      bench(says{model: "m", finish: evil}),
		"refusal":     bench(says{model: "m", refusal: "no" + evil}),
		"ready check": bench(says{model: "m", refusal: "no" + evil}, "--ready-check-timeout-sec", "1"),
		"certificate": {"bench", "--base-url", evilTLS(t), "--runs-dir", dir},
		"report":      {"report", write("report.txt", "noise"+evil+"\n"+string(report)+"Mean"+evil+": 3\n")},
		"report json": {"report", "--format", "json", write("report.json.txt", "noise"+evil+"\n"+string(report)+"Mean"+evil+": 3\n")},
		"csv header":  {"data", "--dataset-name", "hf", "--dataset-path", write("x.csv", "a"+evil+",b\n1,2\n"), "--num-prompts", "1"},
		"label":       {"data", "--dataset-name", "custom", "--dataset-path", write("x.jsonl", `{"prompt":"x","labels":{"k":`+quoted(evil)+`}}`+"\n"), "--num-prompts", "1"},
		"prompt":      {"data", "--dataset-name", "custom", "--dataset-path", write("y.jsonl", `{"prompt":`+quoted(evil)+`}`+"\n"), "--num-prompts", "1"},
		"file name":   {"data", "--dataset-name", "custom", "--dataset-path", "nowhere" + evil, "--num-prompts", "1"},
		"flag":        {"bench", "--x" + evil},
		"verb":        {"x" + evil},
	} {
		code, out, errs := inside(nil, args...)
		all := out + errs
		if i := strings.IndexFunc(all, func(r rune) bool {
			return unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Bidi_Control, r)
		}); i >= 0 {
			t.Errorf("%s: a control character in %q", name, all[max(0, i-60):min(len(all), i+60)])
		}
		if !strings.Contains(all, "31m") {
			t.Errorf("%s: exit %d: nobody printed it:\n%s", name, code, all)
		}
		if name == "report json" && !json.Valid([]byte(out)) {
			t.Errorf("no JSON: %s", out)
		}
	}
}

func quoted(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

// evilTLS is a server whose certificate is for other names.
func evilTLS(t *testing.T) string {
	t.Helper()
	key := must.Get(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))(t)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"x\x1b[31m\x7f.test"}, NotAfter: time.Now().Add(time.Hour)}
	der := must.Get(x509.CreateCertificate(rand.Reader, template, template, key.Public(), key))(t)
	l := must.Get(network.Listen(t.Context(), "tcp", "localhost:0"))(t)
	srv := &httptest.Server{Listener: l, Config: &http.Server{Handler: http.NotFoundHandler(), ErrorLog: log.New(io.Discard, "", 0)}}
	srv.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)
}
