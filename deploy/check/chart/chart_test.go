// Package chart renders the chart with Helm's own engine.
package chart

import (
	"maps"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"tacho/deploy/check"
)

// render is the chart with these values over its own.
func render(t *testing.T, values map[string]any) string {
	t.Helper()
	c, err := loader.Load("../../helm/tacho")
	if err != nil {
		t.Fatal(err)
	}
	all, err := chartutil.ToRenderValues(c, values, chartutil.ReleaseOptions{Name: "load", Namespace: "bench"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(c, all)
	if err != nil {
		t.Fatal(err)
	}
	return files["tacho/templates/run.yaml"]
}

func TestChart(t *testing.T) {
	usual := map[string]int{"Secret": 1, "Service": 1, "PersistentVolumeClaim": 1, "Job": 2}
	text := render(t, nil)
	kinds, err := check.Objects([]byte(text))
	if err != nil || !maps.Equal(kinds, usual) {
		t.Error(kinds, err)
	}
	text = render(t, map[string]any{
		"agents": 32, "results": map[string]any{"claim": "mine"}, "nodeSelector": map[string]any{"pool": "bench"}, "imagePullSecrets": []any{map[string]any{"name": "registry"}},
		"bench": []any{"--label", "it's: {\"quoted\"}"},
	})
	kinds, err = check.Objects([]byte(text))
	if err != nil || kinds["PersistentVolumeClaim"] != 0 {
		t.Error(kinds, err)
	}
	for _, want := range []string{"parallelism: 32", `claimName: "mine"`, "pool: bench", "- name: registry", `- "it's: {\"quoted\"}"`, "load-$(JOB_COMPLETION_INDEX)"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s in\n%s", want, text)
		}
	}
}
