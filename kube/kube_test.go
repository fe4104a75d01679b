package kube

import (
	"bytes"
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the chart and the example anew")

const (
	chartFile   = "../deploy/helm/tacho/templates/run.yaml"
	exampleFile = "../deploy/check/testdata/manifests.yaml"
)

func example() Options {
	return Options{
		Name: "load", Namespace: "bench", Image: "registry.example.com/tacho:1", Agents: 32, CPUs: "2", Memory: "4Gi", Size: "10Gi",
		Bench: []string{"--base-url", "http://vllm:8000", "--request-rate", "100"}, Allow: []string{"http://vllm:8000"},
		Token: "token", Seed: "seed", Trust: "UKEY", Data: "datasets", KeySecret: "vllm-key", NodePool: map[string]string{"pool": "bench"}, PullSecrets: []string{"registry"},
	}
}

// The chart and the example that the API's types are held against are as the
// code has them.
func TestWritten(t *testing.T) {
	chart, err := Chart()
	if err != nil {
		t.Fatal(err)
	}
	var manifests bytes.Buffer
	o := example()
	if err := o.Write(&manifests); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{chartFile: chart, exampleFile: manifests.String()} {
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != text {
			t.Errorf("%s is out of date: run go test ./kube -update", path)
		}
	}
}

func TestChoices(t *testing.T) {
	for name, c := range map[string]struct {
		change     func(*Options)
		has, hasNo string
	}{
		"own claim":    {func(o *Options) { o.Claim = "mine" }, "claimName: mine", "kind: PersistentVolumeClaim"},
		"no claim":     {func(o *Options) { o.Size = "0" }, "emptyDir: {}", "kind: PersistentVolumeClaim"},
		"no data":      {func(o *Options) { o.Data = "" }, "kind: Service", "/data"},
		"no namespace": {func(o *Options) { o.Namespace = "" }, "kind: Service", "namespace:"},
	} {
		o := example()
		c.change(&o)
		var b bytes.Buffer
		if err := o.Write(&b); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(b.String(), c.has) || strings.Contains(b.String(), c.hasNo) {
			t.Errorf("%s: want %q and no %q in\n%s", name, c.has, c.hasNo, b.String())
		}
	}
}

func TestCheck(t *testing.T) {
	for want, change := range map[string]func(*Options){
		"--name":         func(o *Options) { o.Name = "Load_1" },
		"--namespace":    func(o *Options) { o.Namespace = "a b" },
		"--agents":       func(o *Options) { o.Agents = 0 },
		"--image":        func(o *Options) { o.Image = "" },
		"--agent-cpus":   func(o *Options) { o.CPUs = "two" },
		"--agent-memory": func(o *Options) { o.Memory = "4 GB" },
		"--results-size": func(o *Options) { o.Size = "-1" },
	} {
		o := example()
		change(&o)
		if err := o.Write(&bytes.Buffer{}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("want an error of %s, got %v", want, err)
		}
	}
}
