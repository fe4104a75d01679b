//go:build oracle

package score

import (
	"bufio"
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/stat"
)

// Scorers and p-values equal those of bfcl-eval, lm-eval and statsmodels, from PyPI. $WHEELS is the folder in which
// make test-answers unpacks them.
func TestOracleScorers(t *testing.T) {
	wheels := os.Getenv("WHEELS")
	if wheels == "" {
		t.Fatal("set WHEELS: use make test-answers")
	}
	command := exec.CommandContext(t.Context(), filepath.Join(wheels, "bin", "python"), "testdata/oracle.py", wheels, wheels)
	command.Stderr = os.Stderr
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	seen, right, wrong := map[string]int{}, map[string]int{}, map[string]int{}
	lines := bufio.NewScanner(out)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var c struct {
			Scorer, Reference, Text, Missing string
			Right                            bool
			Lost, Gained                     int
			P                                float64
		}
		if err := json.Unmarshal(lines.Bytes(), &c); err != nil {
			t.Fatal(err)
		}
		if c.Missing != "" {
			t.Errorf("%s is missing", c.Missing)
			continue
		}
		if c.Scorer == "" {
			c.Scorer = "mcnemar"
			p := stat.Paired{Lost: c.Lost, Gained: c.Gained}.McNemarP()
			c.Right = true
			if math.Abs(p-c.P) > 1e-9 {
				wrong[c.Scorer]++
				t.Errorf("McNemar of %d and %d: %v, want %v", c.Lost, c.Gained, p, c.P)
			}
		} else {
			s, _ := Named(c.Scorer)
			a := Answer{Text: c.Text, Content: c.Text, Finish: "stop"}
			if got := s.Score(&a, &tacho.Request{Reference: c.Reference}).Mark == Right; got != c.Right {
				if wrong[c.Scorer]++; wrong[c.Scorer] < 10 {
					t.Errorf("%s of %.300q with %.900q: %v, want %v", c.Scorer, c.Text, c.Reference, got, c.Right)
				}
			}
		}
		if seen[c.Scorer]++; c.Right {
			right[c.Scorer]++
		}
	}
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	for name, n := range seen {
		t.Logf("%s: %d verdicts, %d of them right; %d differ", name, n, right[name], wrong[name])
	}
	if seen["bfcl"] < 10_000 || seen["gsm8k-strict"] < 4_500 || seen["mcnemar"] != 1000 {
		t.Errorf("too few verdicts: %v", seen)
	}
}

// TestFoundShare prints how often faults are found, by their share and the number of prompts, in 100 runs each. Answers of
// runs without a fault are called bad in at most 5 %.
func TestFoundShare(t *testing.T) {
	for _, floor := range []float64{0, 0.11} {
		for _, n := range []int{200, 500, 1000} {
			for _, share := range []float64{0, 0.005, 0.02, 0.1} {
				tr := trial{prompts: n, accuracy: 0.9, floor: floor, fault: share}
				swapped := tr.found(uint64(n), 100)
				tr = trial{prompts: n, accuracy: 0.9, floor: floor, digits: share}
				digits := tr.found(uint64(n)+1, 100)
				t.Logf("floor %v, %d prompts, fault %v: swapped answers found in %v, wrong digits in %v", floor, n, share, swapped, digits)
				if share == 0 && (swapped > 0.05 || digits > 0.05) {
					t.Errorf("floor %v, %d prompts: false alarms in %v and %v of the runs", floor, n, swapped, digits)
				}
			}
		}
	}
}

func BenchmarkScore(b *testing.B) {
	for _, name := range []string{"gsm8k-flexible", "choice", "bfcl"} {
		b.Run(name, func(b *testing.B) {
			s, _ := Named(name)
			q := &tacho.Request{Reference: "10"}
			text := "I multiply 10 by 20 first, which makes 200. Then the answer is (B), or [f(a=1)].\n#### 10"
			if name == "bfcl" {
				text = "[f(a=1)]"
				q.Reference = `{"category":"simple","function":[{"name":"f","parameters":{"properties":{"a":{"type":"integer"}},"required":["a"]}}],"ground_truth":[{"f":{"a":[1]}}]}`
			}
			for b.Loop() {
				a := Answer{Text: text, Content: text, Finish: "stop"}
				s.Score(&a, q)
			}
		})
	}
}
