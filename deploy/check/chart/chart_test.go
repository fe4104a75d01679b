// Package chart renders the chart with Helm's engine.
package chart

import (
	"flag"
	"maps"
	"os"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"

	"github.com/tacho-bench/tacho/deploy/check"
)

var update = flag.Bool("update", false, "write the rendered example anew")

// exampleFile is the chart rendered with the values of example. A test of package cluster
// runs the commands in it.
const (
	chartDir    = "../../helm/tacho"
	exampleFile = "../testdata/manifests.yaml"
)

type values = map[string]any

// example returns a value for every setting that is empty by default, except those that
// replace others.
func example() values {
	return values{
		"agents": 2, "bench": []any{"--base-url=http://vllm:8000", "--seed=1"}, "image": "registry.example.com/tacho:1",
		"imagePullSecrets": []any{values{"name": "registry"}}, "nodeSelector": values{"pool": "bench"}, "data": values{"claim": "datasets"}, "apiKeySecret": "vllm-key",
		"tolerations":       []any{values{"key": "bench", "operator": "Exists", "effect": "NoSchedule"}},
		"priorityClassName": "bench-high", "serviceAccountName": "bench", "labels": values{"kueue.x-k8s.io/queue-name": "bench"},
		"server":  values{"podLabels": values{"app": "vllm"}, "namespace": "serving"},
		"results": values{"storageClass": "fast"},
		"networkPolicy": values{
			"egress":  []any{values{"to": []any{values{"ipBlock": values{"cidr": "192.0.2.0/24"}}}}},
			"ingress": []any{values{"from": []any{values{"namespaceSelector": values{"matchLabels": values{"name": "monitoring"}}}}, "ports": []any{values{"port": 9100}}}},
		},
		"keys": values{
			"natsToken": "token", "coordinatorSeed": "SU" + strings.Repeat("A", 56), "trust": "U" + strings.Repeat("A", 55), "pin": strings.Repeat("A", 43),
		},
	}
}

// with returns the example with other values.
func with(more values) values {
	all := example()
	maps.Copy(all, more)
	return all
}

// rendered renders all templates of the chart with these values.
func rendered(v values) (files map[string]string, err error) {
	c, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "load", Namespace: "bench"}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, all)
}

// render returns the manifests that Helm applies with these values.
func render(v values) (string, error) {
	files, err := rendered(v)
	if err != nil {
		return "", err
	}
	text := strings.TrimSpace(files["tacho/templates/run.yaml"]) + "\n"
	if policies := strings.TrimSpace(files["tacho/templates/network.yaml"]); policies != "" {
		text += "---\n" + policies + "\n"
	}
	return text, nil
}

func TestExample(t *testing.T) {
	text, err := render(example())
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(exampleFile, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(exampleFile); err != nil || string(got) != text {
		t.Errorf("%s is out of date: run go test ./chart -update (%v)", exampleFile, err)
	}
}

func TestChoices(t *testing.T) {
	for name, c := range map[string]struct {
		change     values
		has, hasNo string
	}{
		"own claim":      {values{"results": values{"claim": "mine"}}, `claimName: "mine"`, "kind: PersistentVolumeClaim"},
		"no claim":       {values{"results": values{"size": 0}}, "kind: Service", "load-runs"},
		"no data":        {values{"data": values{"claim": ""}}, "kind: Service", "/data"},
		"no key":         {values{"apiKeySecret": ""}, "kind: Service", "OPENAI_API_KEY"},
		"no selector":    {values{"nodeSelector": nil}, "kind: Service", "nodeSelector"},
		"no pull secret": {values{"imagePullSecrets": []any{}}, "kind: Service", "imagePullSecrets"},
		"more agents":    {values{"agents": 32}, "parallelism: 32", "parallelism: 2\n"},
		"quotes":         {values{"allowTargets": []any{"any"}, "bench": []any{`--label=it's: {"quoted"}`}}, `- "--label=it's: {\"quoted\"}"`, "--seed"},
		"whole number":   {values{"agent": values{"cpus": 4, "memory": "8Gi"}}, `cpu: "4"`, `memory: "4Gi"`},
		"own secret":     {values{"keys": values{"existingSecret": "mine"}}, `name: "mine"`, "kind: Secret"},
		"spool":          {values{"agent": values{"spoolGiB": 20}}, "--spool-limit=20GiB", "sizeLimit: 5Gi"},
		"own cores":      {values{"exclusiveCPUs": true}, "limits:\n              cpu: \"2\"", "limits:\n              memory"},
		"no deadline":    {values{"deadlineSeconds": 0}, "ttlSecondsAfterFinished: 604800", "activeDeadlineSeconds"},
		"no end":         {values{"ttlSeconds": -1}, "activeDeadlineSeconds: 86400", "ttlSecondsAfterFinished"},
		"claim may go":   {values{"results": values{"keep": false}}, "load-runs", "resource-policy"},
		"own affinity":   {values{"affinity": values{"nodeAffinity": values{}}}, "nodeAffinity", "podAntiAffinity"},
		"mesh wanted":    {values{"podAnnotations": values{"sidecar.istio.io/inject": "true"}}, `sidecar.istio.io/inject: "true"`, `sidecar.istio.io/inject: "false"`},
		"no policy":      {values{"networkPolicy": values{"enabled": false}}, "kind: Service", "NetworkPolicy"},
		"server outside": {values{"server": values{"podLabels": nil}, "networkPolicy": values{"egress": []any{}}}, "policyTypes: [Ingress]", "egress"},
		"own targets":    {values{"allowTargets": []any{"https://llm.example.com"}}, "--allow-target=https://llm.example.com", "--allow-target=http://vllm"},
		"from the plan":  {values{"bench": []any{"--base-url=http://a:1/v1", "--base-url", "https://b"}}, "--allow-target=http://a:1\"\n            - \"--allow-target=https://b\"", "vllm:8000"},
	} {
		text, err := render(with(c.change))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if _, err := check.Objects([]byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(text, c.has) || strings.Contains(text, c.hasNo) {
			t.Errorf("%s: want %q and no %q in\n%s", name, c.has, c.hasNo, text)
		}
	}
}

// TestRefused checks that invalid values are rejected before installation.
func TestRefused(t *testing.T) {
	bench := func(flags ...any) values { return values{"bench": flags} }
	for name, c := range map[string]struct {
		change values
		want   string
	}{
		"no agents":      {values{"agents": 0}, "/agents"},
		"no image":       {values{"image": ""}, "name the image"},
		"any image":      {values{"image": "registry:5000/tacho"}, "can be another version"},
		"latest image":   {values{"image": "tacho:latest"}, "can be another version"},
		"odd image":      {values{"image": "tacho 1"}, "/image"},
		"no target":      {bench("--seed=1"), "name the server with --base-url"},
		"odd target":     {values{"allowTargets": []any{"vllm:8000"}}, "/allowTargets/0"},
		"password":       {bench("--base-url=http://me:hush@vllm"), "the password"},
		"part of a core": {values{"exclusiveCPUs": true, "agent": values{"cpus": "1500m"}}, "a whole number of CPUs"},
		"odd processors": {values{"agent": values{"cpus": "two"}}, "/agent/cpus"},
		"no processors":  {values{"agent": values{"cpus": "0m"}}, "/agent/cpus"},
		"no memory":      {values{"agent": values{"memory": 0}}, "/agent/memory"},
		"odd size":       {values{"results": values{"size": "-1"}}, "/results/size"},
		"no keys":        {values{"keys": values{}}, "natsToken is empty. Run tacho keys"},
		"no pin":         {values{"keys": values{"natsToken": "t", "coordinatorSeed": "SU" + strings.Repeat("A", 56), "trust": "U" + strings.Repeat("A", 55)}}, "pin is empty"},
		"odd seed":       {values{"keys": values{"coordinatorSeed": "SA"}}, "/keys/coordinatorSeed"},
		"keys twice":     {values{"keys": values{"existingSecret": "mine", "natsToken": "t"}}, "existingSecret has the keys"},
		"odd annotation": {values{"podAnnotations": values{"a/b": true}}, "/podAnnotations"},
		"keys removed":   {values{"keys": nil}, "'keys'"},
		"misspelt":       {values{"agnts": 3}, "agnts"},
		"flag of ours":   {bench("--runs-dir=/x"), "leave --runs-dir out"},
		"flag of NATS":   {bench("--nats-token=x"), "leave --nats-token out"},
		"key":            {bench("--api-key=hush"), "name the secret in apiKeySecret"},
		"this machine":   {bench("--base-url=http://localhost:8000"), "is the pod itself"},
		"loopback":       {bench("--base-url", "http://127.0.0.1"), "is the pod itself"},
		"socket":         {bench("--base-url=unix:///run/vllm.sock"), "is the pod itself"},
		"no volume":      {values{"data": values{"claim": ""}, "bench": []any{"--dataset-path=/data/trace.jsonl"}}, "data.claim"},
	} {
		if _, err := render(with(c.change)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: want %q, got %v", name, c.want, err)
		}
	}
}

// TestLint runs helm lint.
func TestLint(t *testing.T) {
	for _, m := range lint.AllWithKubeVersion(chartDir, example(), "bench", nil).Messages {
		if m.Severity >= support.WarningSev {
			t.Error(m)
		}
	}
}

// TestNotes checks that the notes name the claim, and that the pod they show for
// fetching results is a valid Pod.
func TestNotes(t *testing.T) {
	for claim, size := range map[string]any{"load-runs": "1Gi", "mine": "1Gi", "": 0} {
		files, err := rendered(with(values{"results": values{"claim": map[bool]string{true: claim}[claim == "mine"], "size": size}}))
		if err != nil {
			t.Fatal(err)
		}
		notes := files["tacho/templates/NOTES.txt"]
		_, rest, found := strings.Cut(notes, "<<END\n")
		if found != (claim != "") || found == strings.Contains(notes, "Results are lost") {
			t.Fatalf("claim %q:\n%s", claim, notes)
		}
		if !found {
			continue
		}
		text, _, _ := strings.Cut(rest, "\n  END")
		kinds, err := check.Objects([]byte(strings.ReplaceAll("\n"+text, "\n  ", "\n")))
		if err != nil || kinds["Pod"] != 1 || !strings.Contains(text, `claimName: "`+claim+`"`) {
			t.Errorf("claim %q: %v %v\n%s", claim, kinds, err, notes)
		}
	}
}
