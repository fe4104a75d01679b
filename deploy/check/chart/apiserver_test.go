//go:build apiserver

package chart

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"
)

// binaries is the variable with the directory of etcd and kube-apiserver.
const binaries = "KUBE_BIN"

// startLimit is the time in which both programs must answer. A busy machine needs
// seconds.
const startLimit = 3 * time.Minute

// An apiServer is a running kube-apiserver.
type apiServer struct {
	t      *testing.T
	url    string
	client *http.Client
}

const adminToken = "admin"

// startAPI starts etcd and kube-apiserver. They end with the test.
func startAPI(t *testing.T) *apiServer {
	t.Helper()
	bin := os.Getenv(binaries)
	if bin == "" {
		t.Fatalf("set %s, or run make test-apiserver", binaries)
	}
	dir := t.TempDir()
	store, peer, secure := freePort(t), freePort(t), freePort(t)
	startProgram(t, filepath.Join(bin, "etcd"), "--data-dir="+filepath.Join(dir, "etcd"), "--unsafe-no-fsync", "--log-level=error",
		"--listen-client-urls=http://"+store, "--advertise-client-urls=http://"+store, "--listen-peer-urls=http://"+peer,
		"--initial-advertise-peer-urls=http://"+peer, "--initial-cluster=default=http://"+peer)
	tokens, key := filepath.Join(dir, "tokens.csv"), filepath.Join(dir, "sa.key")
	write(t, tokens, []byte(adminToken+`,admin,admin,"system:masters"`+"\n"))
	write(t, key, signingKey(t))
	_, port, _ := net.SplitHostPort(secure)
	startProgram(t, filepath.Join(bin, "kube-apiserver"), "--etcd-servers=http://"+store, "--cert-dir="+filepath.Join(dir, "certs"),
		"--bind-address=127.0.0.1", "--secure-port="+port, "--token-auth-file="+tokens, "--authorization-mode=RBAC",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--service-cluster-ip-range=10.0.0.0/24")
	a := &apiServer{t: t, url: "https://" + secure, client: &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // it has just made its certificate
	}}}
	for end := time.Now().Add(startLimit); ; time.Sleep(100 * time.Millisecond) {
		if code, _, _, err := a.do(http.MethodGet, "/readyz", "", nil); err == nil && code == http.StatusOK {
			return a
		}
		if time.Now().After(end) {
			t.Fatalf("kube-apiserver is not ready after %v", startLimit)
		}
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// signingKey returns a key for tokens of service accounts.
func signingKey(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})
}

// startProgram starts a program that ends with the test. Its output is logged if the
// test fails.
func startProgram(t *testing.T, path string, args ...string) {
	t.Helper()
	var out bytes.Buffer
	cmd := exec.Command(path, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if text := out.String(); t.Failed() {
			t.Logf("%s:\n%s", path, text[max(0, len(text)-4000):])
		}
	})
}

// do sends a request and returns the status, the body and the warnings.
func (a *apiServer) do(method, path, kind string, body []byte) (code int, text string, warnings []string, err error) {
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, bytes.NewReader(body))
	if err != nil {
		return 0, "", nil, err
	}
	req.Header.Set("Authorization", "Bearer "+adminToken)
	req.Header.Set("Content-Type", kind)
	res, err := a.client.Do(req)
	if err != nil {
		return 0, "", nil, err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	return res.StatusCode, string(b), res.Header.Values("Warning"), err
}

// post creates an object from JSON or YAML.
func (a *apiServer) post(path, text string) (code int, answer string, warnings []string) {
	a.t.Helper()
	code, answer, warnings, err := a.do(http.MethodPost, path, "application/yaml", []byte(text))
	if err != nil {
		a.t.Fatal(err)
	}
	return code, answer, warnings
}

// head is what all objects have.
type head struct {
	APIVersion string                `json:"apiVersion"`
	Kind       string                `json:"kind"`
	Metadata   struct{ Name string } `json:"metadata"`
	Spec       struct {
		Template json.RawMessage `json:"template"`
	} `json:"spec"`
}

// collections are the paths of the kinds in the chart.
var collections = map[string]string{
	"Secret": "/api/v1/namespaces/bench/secrets", "Service": "/api/v1/namespaces/bench/services", "Pod": "/api/v1/namespaces/bench/pods",
	"PersistentVolumeClaim": "/api/v1/namespaces/bench/persistentvolumeclaims", "Job": "/apis/batch/v1/namespaces/bench/jobs",
	"NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/bench/networkpolicies",
}

// apply does what kubectl apply --server-side does with one document.
func (a *apiServer) apply(doc, options string) (h head, problem string) {
	a.t.Helper()
	if err := yaml.Unmarshal([]byte(doc), &h); err != nil {
		a.t.Fatal(err)
	}
	path := collections[h.Kind] + "/" + h.Metadata.Name + "?fieldManager=test&force=true&fieldValidation=Strict" + options
	code, text, warnings, err := a.do(http.MethodPatch, path, "application/apply-patch+yaml", []byte(doc))
	if err != nil {
		a.t.Fatal(err)
	}
	if code != http.StatusOK && code != http.StatusCreated || len(warnings) > 0 {
		return h, fmt.Sprintf("%s %s: %d %s %q", h.Kind, h.Metadata.Name, code, text, warnings)
	}
	return h, ""
}

// podOf creates the pod of a Job in a dry run, because Pod Security is enforced for pods.
func (a *apiServer) podOf(h head, change func(string) string) string {
	a.t.Helper()
	var pod map[string]any
	if err := json.Unmarshal(h.Spec.Template, &pod); err != nil {
		a.t.Fatal(err)
	}
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	pod["metadata"].(map[string]any)["name"] = h.Metadata.Name
	text, err := json.Marshal(pod)
	if err != nil {
		a.t.Fatal(err)
	}
	code, answer, warnings := a.post(collections["Pod"]+"?dryRun=All&fieldValidation=Strict", change(string(text)))
	if code != http.StatusCreated || len(warnings) > 0 {
		return fmt.Sprintf("%d %s %q", code, answer, warnings)
	}
	return ""
}

func same(text string) string { return text }

// setUp creates the namespace, with the strictest pod security, and the objects that the
// example refers to.
func (a *apiServer) setUp() {
	a.t.Helper()
	for path, texts := range map[string][]string{
		"/apis/scheduling.k8s.io/v1/priorityclasses": {`{apiVersion: scheduling.k8s.io/v1, kind: PriorityClass, metadata: {name: bench-high}, value: 1000}`},
		"/api/v1/namespaces":                         {`{apiVersion: v1, kind: Namespace, metadata: {name: bench, labels: {pod-security.kubernetes.io/enforce: restricted, pod-security.kubernetes.io/warn: restricted}}}`},
	} {
		for _, text := range texts {
			if code, answer, _ := a.post(path, text); code != http.StatusCreated {
				a.t.Fatal(code, answer)
			}
		}
	}
	for _, name := range []string{"default", "bench"} {
		if code, answer, _ := a.post("/api/v1/namespaces/bench/serviceaccounts", "{apiVersion: v1, kind: ServiceAccount, metadata: {name: "+name+"}}"); code != http.StatusCreated && code != http.StatusConflict {
			a.t.Fatal(code, answer)
		}
	}
}

// TestAPIServer applies the chart to a real API server, in a namespace that enforces the
// restricted Pod Security standard. An unknown field or a warning is an error.
func TestAPIServer(t *testing.T) {
	a := startAPI(t)
	a.setUp()
	only := values{"image": "registry.example.com/tacho:1", "keys": example()["keys"]}
	pods := 0
	for name, v := range map[string]values{
		"example": example(), "only what must be set": only,
		"own secret": with(values{"keys": values{"existingSecret": "mine"}}), "no claim": with(values{"results": values{"size": 0}}),
		"own cores": with(values{"exclusiveCPUs": true}), "server outside": with(values{"server": values{"podLabels": nil}, "networkPolicy": values{"egress": []any{}}}),
	} {
		text, err := render(v)
		if err != nil {
			t.Fatal(err)
		}
		for doc := range strings.SplitSeq(text, "\n---\n") {
			h, problem := a.apply(doc, "&dryRun=All")
			if problem != "" {
				t.Errorf("%s: %s", name, problem)
			}
			if h.Kind != "Job" {
				continue
			}
			pods++
			if problem := a.podOf(h, same); problem != "" {
				t.Errorf("%s: pod of %s: %s", name, h.Metadata.Name, problem)
			}
		}
	}
	t.Logf("%d pods accepted", pods)
	a.refuses(t)
	a.creates(t)
	a.fetches(t)
}

// creates applies the example without a dry run. It is the last, because an existing Job
// refuses other pods.
func (a *apiServer) creates(t *testing.T) {
	text, err := render(example())
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		if _, problem := a.apply(doc, ""); problem != "" {
			t.Error(problem)
		}
	}
}

// refuses checks that the API server finds faults, so that its silence means something.
func (a *apiServer) refuses(t *testing.T) {
	text, err := render(with(values{"keys": values{"existingSecret": "mine"}}))
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(text, "\n---\n") {
		if !strings.Contains(doc, "kind: Job") {
			continue
		}
		if _, problem := a.apply(strings.Replace(doc, "parallelism:", "paralelism:", 1), "&dryRun=All"); strings.Contains(doc, "parallelism:") && problem == "" {
			t.Error("a misspelt field was accepted")
		}
		h, _ := a.apply(doc, "&dryRun=All")
		for from, to := range map[string]string{`"runAsNonRoot":true`: `"runAsNonRoot":false`, `"drop":["ALL"]`: `"drop":[]`, `"allowPrivilegeEscalation":false`: `"allowPrivilegeEscalation":true`} {
			if problem := a.podOf(h, func(text string) string { return strings.Replace(text, from, to, 1) }); !strings.Contains(problem, "violates PodSecurity") {
				t.Errorf("%s: pod with %s: %q", h.Metadata.Name, to, problem)
			}
		}
	}
}

// fetches creates the pod of the notes that fetches results.
func (a *apiServer) fetches(t *testing.T) {
	files, err := rendered(example())
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(files["tacho/templates/NOTES.txt"], "<<END\n")
	text, _, _ := strings.Cut(rest, "\n  END")
	text = strings.ReplaceAll("\n"+text, "\n  ", "\n")
	if code, answer, warnings := a.post(collections["Pod"]+"?fieldValidation=Strict", text); code != http.StatusCreated || len(warnings) > 0 {
		t.Errorf("pod of the notes: %d %s %q", code, answer, warnings)
	}
}
