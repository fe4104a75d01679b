//go:build oracle

package publish

import (
	"bytes"
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tacho-bench/tacho/internal/must"
)

// readers installs Prometheus' own client in a virtual environment below .cache, if missing.
func readers(t *testing.T) string {
	t.Helper()
	dir := must.Get(filepath.Abs(filepath.Join("../..", ".cache", "monitoring")))(t)
	python := filepath.Join(dir, "bin", "python")
	if exec.CommandContext(t.Context(), python, "-c", "import prometheus_client").Run() == nil {
		return python
	}
	for _, command := range [][]string{{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "--quiet", "prometheus_client"}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s", command, err, out)
		}
	}
	return python
}

func ask(t *testing.T, script string, input []byte) map[string]any {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), readers(t), "-c", script)
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s\n%s", err, stderr.String(), input)
	}
	var got map[string]any
	must.Do(t, json.Unmarshal(out, &got))
	return got
}

const parsePages = `
import json, sys
from prometheus_client.PARSER import text_string_to_metric_families as parse
out = {}
for f in parse(sys.stdin.read()):
    for s in f.samples:
        out[s.name + json.dumps(sorted(s.labels.items()))] = s.value
json.dump(out, sys.stdout)
`

// Prometheus' own parsers accept both formats of the page and read the same values.
func TestOraclePrometheus(t *testing.T) {
	b := filled(t)
	_, _, plain := get(t, b, "/metrics", "")
	_, _, open := get(t, b, "/metrics", "application/openmetrics-text")
	first := ask(t, strings.ReplaceAll(parsePages, "PARSER", "parser"), []byte(plain))
	second := ask(t, strings.ReplaceAll(parsePages, "PARSER", "openmetrics.parser"), []byte(open))
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]float64{
		`tacho_run[["model", "a\"b\\c\nd"], ["run", "r1"]]`:                                                 1,
		`tacho_requests_total[["level", "rate 2"], ["number", "2"], ["outcome", "timeout"], ["run", "r1"]]`: 1,
		`tacho_ttft_seconds_bucket[["le", "0.05"], ["level", "rate 1"], ["number", "1"], ["run", "r1"]]`:    1,
	} {
		if first[name] != want {
			t.Errorf("%s is %v, not %v", name, first[name], want)
		}
	}
}
