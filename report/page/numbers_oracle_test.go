//go:build oracle

package page

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/metric"
)

// Pages format every number like the screen, Markdown and comparisons.
func TestOraclePagesFormatNumbersLikeScreens(t *testing.T) {
	values := []float64{
		math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e-10, 0.00004999, 0.0001, 0.0004999, 0.03125, 0.5, 0.9995, 1.125, 1.375, 1.005,
		9.995, 12.25, 12.35, 99.94, 99.95, 99.96, 100.5, 999.4999, 999.5, 1000, 1224.6, 35.32, 123456.5, 1234567.5, 999999999.4, 999999999.5, 1e9, 1.005e9, 2.5e18, math.MaxFloat64, math.SmallestNonzeroFloat64,
	}
	random := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		values = append(values, math.Pow(10, random.Float64()*24-8), math.Round(random.Float64()*8000)/8)
	}
	for _, v := range slices.Clone(values) {
		values = append(values, -v)
	}
	rules := []struct {
		script string
		of     func(float64) string
	}{{"num", metric.Brief}, {"tick", metric.Setting}, {"signed", metric.Signed}, {"time", metric.Duration}, {"percent", metric.Percent}}

	source := must.Get(assets.ReadFile("assets/numbers.js"))(t)
	var numbers []string
	for _, v := range values {
		numbers = append(numbers, strings.ReplaceAll(strings.TrimPrefix(strconv.FormatFloat(v, 'g', -1, 64), "+"), "Inf", "Infinity"))
	}
	script := string(source) + "const values = [" + strings.Join(numbers, ",") + "];\nconsole.log(JSON.stringify([num, tick, signed, time, percent].map((rule) => values.map(rule))));\n"
	node := exec.CommandContext(t.Context(), "node", "-")
	node.Stdin, node.Stderr = strings.NewReader(script), os.Stderr
	out := must.Get(node.Output())(t)
	var texts [][]string
	if err := json.Unmarshal(out, &texts); err != nil || len(texts) != len(rules) {
		t.Fatal(err, len(texts))
	}
	for i, rule := range rules {
		for k, v := range values {
			if want := rule.of(v); texts[i][k] != want {
				t.Errorf("%s(%v) is %q on a page and %q on the screen", rule.script, v, texts[i][k], want)
			}
		}
	}
}
