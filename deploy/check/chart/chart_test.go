// Package chart renders the chart with Helm's own engine.
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

	"tacho/deploy/check"
)

var update = flag.Bool("update", false, "write the rendered example anew")

// exampleFile is the chart as rendered with the values of example. A test of the
// package cluster runs the commands in it.
const exampleFile = "../testdata/manifests.yaml"

type values = map[string]any

// example has a value for everything that is empty by default.
func example() values {
	return values{
		"agents": 2, "bench": []any{"--base-url=http://vllm:8000", "--seed=1"}, "image": "registry.example.com/tacho:1",
		"imagePullSecrets": []any{values{"name": "registry"}}, "nodeSelector": values{"pool": "bench"}, "data": values{"claim": "datasets"}, "apiKeySecret": "vllm-key",
		"keys": values{
			"natsToken": "token", "coordinatorSeed": "SU" + strings.Repeat("A", 56), "trust": "U" + strings.Repeat("A", 55),
		},
	}
}

// with is the example with other values.
func with(more values) values {
	all := example()
	maps.Copy(all, more)
	return all
}

// render is the chart with these values over its own.
func render(t *testing.T, v values) (string, error) {
	t.Helper()
	c, err := loader.Load("../../helm/tacho")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, v, chartutil.ReleaseOptions{Name: "load", Namespace: "bench"}, nil)
	if err != nil {
		return "", err
	}
	files, err := engine.Render(c, all)
	return files["tacho/templates/run.yaml"], err
}

func TestExample(t *testing.T) {
	text, err := render(t, example())
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
		"quotes":         {values{"bench": []any{`--label=it's: {"quoted"}`}}, `- "--label=it's: {\"quoted\"}"`, "--seed"},
		"whole number":   {values{"agent": values{"cpus": 4, "memory": "8Gi"}}, `cpu: "4"`, `memory: "4Gi"`},
	} {
		text, err := render(t, with(c.change))
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

// Values that cannot work are refused before anything is installed.
func TestRefused(t *testing.T) {
	bench := func(flags ...any) values { return values{"bench": flags} }
	for name, c := range map[string]struct {
		change values
		want   string
	}{
		"no agents":      {values{"agents": 0}, "/agents"},
		"no image":       {values{"image": ""}, "/image"},
		"odd image":      {values{"image": "tacho 1"}, "/image"},
		"no target":      {values{"allowTargets": []any{}}, "/allowTargets"},
		"odd processors": {values{"agent": values{"cpus": "two"}}, "/agent/cpus"},
		"no processors":  {values{"agent": values{"cpus": "0m"}}, "/agent/cpus"},
		"no memory":      {values{"agent": values{"memory": 0}}, "/agent/memory"},
		"odd size":       {values{"results": values{"size": "-1"}}, "/results/size"},
		"no keys":        {values{"keys": values{}}, "/keys/trust"},
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
		if _, err := render(t, with(c.change)); err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: want %q, got %v", name, c.want, err)
		}
	}
}
