//go:build oracle

package stat_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/stat"
)

const numpyScript = `
import json, sys, numpy as np
out = []
for case in json.load(sys.stdin):
    x = np.array(case["x"])
    out.append([float(np.mean(x)), float(np.median(x)), float(np.std(x))]
               + [float(v) for v in np.percentile(x, case["p"])])
json.dump(out, sys.stdout)
`

// numpyPython returns a Python interpreter with numpy: $PYTHON, or a virtual environment under .cache, which is
// created if it does not exist.
func numpyPython(t *testing.T) string {
	t.Helper()
	if named := os.Getenv("PYTHON"); named != "" {
		return named
	}
	dir := must.Get(filepath.Abs(filepath.Join("..", ".cache", "numpy")))(t)
	python := filepath.Join(dir, "bin", "python")
	if exec.CommandContext(t.Context(), python, "-c", "import numpy").Run() == nil {
		return python
	}
	for _, command := range [][]string{{"python3", "-m", "venv", dir}, {python, "-m", "pip", "install", "--quiet", "numpy"}} {
		if out, err := exec.CommandContext(t.Context(), command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %v\n%s\nSet PYTHON to an interpreter that has numpy.", command, err, out)
		}
	}
	return python
}

// Our statistics equal numpy's: means up to the rounding of a sum, order statistics to the last bit.
func TestOracleNumpy(t *testing.T) {
	type numpyCase struct {
		X []float64 `json:"x"`
		P []float64 `json:"p"`
	}
	rng := rand.New(rand.NewPCG(3, 4))
	var cases []numpyCase
	for _, n := range []int{1, 2, 3, 4, 5, 10, 99, 100, 101, 1000, 10007} {
		for _, draw := range []func() float64{
			rng.ExpFloat64, rng.NormFloat64, rng.Float64,
			func() float64 { return float64(rng.IntN(5)) },
			func() float64 { return float64(rng.IntN(1e9)) / 1e6 },
		} {
			c := numpyCase{P: []float64{0, 1, 25, 50, 75, 90, 95, 99, 99.9, 99.99, 100, 100 * rng.Float64()}}
			for range n {
				c.X = append(c.X, draw())
			}
			cases = append(cases, c)
		}
	}
	input := must.Get(json.Marshal(cases))(t)
	python := numpyPython(t)
	cmd := exec.CommandContext(t.Context(), python, "-c", numpyScript)
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(input)), os.Stderr
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", python, err)
	}
	var want [][]float64
	must.Do(t, json.Unmarshal(output, &want))
	compared := 0
	for i, c := range cases {
		s := stat.New(c.X)
		got := []float64{s.Mean(), s.Median(), s.Std()}
		for _, p := range c.P {
			got = append(got, s.Quantile(p/100))
		}
		for j := range got {
			tolerance := 0.0
			if j == 0 || j == 2 {
				tolerance = 1e-12 * (1 + math.Abs(want[i][j]))
			}
			if !(math.Abs(got[j]-want[i][j]) <= tolerance) {
				t.Errorf("case %d (n=%d), value %d: got %v, numpy %v", i, len(c.X), j, got[j], want[i][j])
			}
			compared++
		}
	}
	t.Logf("%d values compared", compared)
}
