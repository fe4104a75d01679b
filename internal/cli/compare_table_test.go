package cli_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
)

const (
	fixedLengths  = "--input-len 600 --output-len 150"
	variedLengths = "--input-len lognormal(600,0.8)[16,8000] --output-len lognormal(150,0.6)[4,1500]"
	theGate       = "ttft.p99>+5%,ttft.mean>+5%,tpot.mean>+5%,request_throughput<-5%"
)

// A tableRow describes pairs of runs under one load.
type tableRow struct {
	name  string
	load  string
	slow  float64 // factor of the second engine's step times; 1 means equal
	same  bool    // both runs send the same requests
	found string  // expected finding for a slower engine: any, a metric, or a failed gate on ttft.p99
	least float64 // minimum fraction of pairs with this finding
}

var tableRows = []tableRow{
	{"15/s, 400 fixed", "--request-rate 15 --num-prompts 400 " + fixedLengths, 1, false, "", 0},
	{"15/s, 400 varied", "--request-rate 15 --num-prompts 400 " + variedLengths, 1, false, "", 0},
	{"22/s, 1000 varied", "--request-rate 22 --num-prompts 1000 " + variedLengths, 1, false, "", 0},
	{"closed 32, 400 fixed", "--max-concurrency 32 --num-prompts 400 " + fixedLengths, 1, false, "", 0},
	{"closed 32, 400 varied", "--max-concurrency 32 --num-prompts 400 " + variedLengths, 1, false, "", 0},
	{"closed 32, 2000 varied", "--max-concurrency 32 --num-prompts 2000 " + variedLengths, 1, false, "", 0},
	{"overload 30/s, 600 fixed", "--request-rate 30 --num-prompts 600 " + fixedLengths, 1, false, "", 0},
	{"overload 30/s, 600 varied", "--request-rate 30 --num-prompts 600 " + variedLengths, 1, false, "", 0},
	{"burstiness 0.2, 500", "--request-rate 15 --burstiness 0.2 --num-prompts 500 " + variedLengths, 1, false, "", 0},
	{"15/s, 50 varied", "--request-rate 15 --num-prompts 50 " + variedLengths, 1, false, "", 0},
	{"15/s, 20 varied", "--request-rate 15 --num-prompts 20 " + variedLengths, 1, false, "", 0},
	{"15/s for 60 s", "--request-rate 15 --max-seconds 60 " + variedLengths, 1, false, "", 0},
	{"--repeat 4", "--request-rate 15 --num-prompts 100 --repeat 4 " + variedLengths, 1, false, "", 0},
	{"burst of 200 fixed", "--num-prompts 200 " + fixedLengths, 1, false, "", 0},
	{"burst of 200 varied", "--num-prompts 200 " + variedLengths, 1, false, "", 0},
	{"conversation, 50 users", "--dataset-name conversation --turns 4 --turn-input-len 100 --turn-output-len 100 --think-time-ms 1000 --num-prompts 200 --max-concurrency 50", 1, false, "", 0},

	{"15/s, 400 varied, same work, +10 %", "--request-rate 15 --num-prompts 400 " + variedLengths, 1.1, true, "any", 0.9},
	{"closed 32, 400 varied, same work, +10 %", "--max-concurrency 32 --num-prompts 400 " + variedLengths, 1.1, true, "any", 0.9},
	{"overload 30/s, 600 varied, same work, +10 %", "--request-rate 30 --num-prompts 600 " + variedLengths, 1.1, true, "any", 0}, // informational: a growing queue hides 10 %
	{"closed 32, 400 fixed, +5 %", "--max-concurrency 32 --num-prompts 400 " + fixedLengths, 1.05, false, "request_throughput", 0.95},
	{"closed 32, 400 varied, same work, +5 %", "--max-concurrency 32 --num-prompts 400 " + variedLengths, 1.05, true, "request_throughput", 0.95},
	{"quiet 4/s, 50 fixed, twice", "--request-rate 4 --num-prompts 50 " + fixedLengths, 2, false, "gate", 0.99},
	{"15/s, 50 varied, same work, twice", "--request-rate 15 --num-prompts 50 " + variedLengths, 2, true, "gate", 0.99},
	{"15/s, 400 varied, same work, twice", "--request-rate 15 --num-prompts 400 " + variedLengths, 2, true, "gate", 0.99},
	{"overload 30/s, 50 fixed, twice", "--request-rate 30 --num-prompts 50 " + fixedLengths, 2, false, "gate", 0.99},
	{"overload 30/s, 600 varied, same work, twice", "--request-rate 30 --num-prompts 600 " + variedLengths, 2, true, "gate", 0.99},
	{"overload 30/s, 1000 fixed, twice", "--request-rate 30 --num-prompts 1000 " + fixedLengths, 2, false, "gate", 0.99},
}

// TestCompareTable compares runs of simulated engines with the command: equal
// engines must not differ significantly, slower engines must. PAIRS and FROM
// set the number of pairs and the first seed; make test-compare uses 100 pairs
// and its own seeds. ROW selects rows by a part of their name.
func TestCompareTable(t *testing.T) {
	pairs, from := 1, 7000
	if n, err := strconv.Atoi(os.Getenv("PAIRS")); err == nil {
		pairs = n
	}
	if n, err := strconv.Atoi(os.Getenv("FROM")); err == nil {
		from = n
	}
	alarms, misses := 0, 0
	for _, row := range tableRows {
		if !strings.Contains(row.name, os.Getenv("ROW")) || pairs == 1 && strings.Contains(row.name, "000") {
			continue // long runs
		}
		any, gate, found, which := 0, 0, 0, map[string]int{}
		for i := range pairs {
			differ, failed := comparePair(t, &row, from+2*i)
			if len(differ) > 0 {
				any++
			}
			for _, name := range differ {
				which[name]++
			}
			if failed != "" {
				gate++
			}
			if row.found == "any" && len(differ) > 0 || row.found == "gate" && strings.Contains(failed, " ttft.p99") || strings.Contains(strings.Join(differ, " "), row.found) && row.found != "" {
				found++
			}
		}
		t.Logf("%-44s pairs %d, any %d, gate fails %d, found %s %d, %v", row.name, pairs, any, gate, row.found, found, which)
		switch {
		case row.found == "":
			alarms += any
			if float64(any) > max(0.05*float64(pairs), 1) || float64(gate) > max(0.01*float64(pairs), 1) {
				t.Errorf("%s: %d of %d pairs of equal servers are called different, the gate fails %d", row.name, any, pairs, gate)
			}
		case float64(found) >= row.least*float64(pairs):
		case pairs == 1:
			misses++ // random variation may hide single pairs
		default:
			t.Errorf("%s: %s is found in %d of %d pairs", row.name, row.found, found, pairs)
		}
	}
	if pairs == 1 && (alarms > 2 || misses > 2) {
		t.Errorf("%d pairs of equal servers are called different, %d slower ones are missed", alarms, misses)
	}
}

// comparePair runs two engines. It returns the metrics in which the second
// differs significantly, and the failed lines of the gate.
func comparePair(t *testing.T, row *tableRow, seed int) (differ []string, failed string) {
	t.Helper()
	dir := t.TempDir()
	second := seed + 1
	if row.same {
		second = seed
	}
	for _, side := range []struct {
		name, engine string
		seed         int
	}{{"a", "vllm-8b-h100", seed}, {"b", slowerEngine(t, dir, row.slow), second}} {
		args := append([]string{"bench", "--virtual", "--sim", side.engine, "--seed", strconv.Itoa(side.seed), "--runs-dir", filepath.Join(dir, side.name), "--disable-tqdm"}, strings.Fields(row.load)...)
		if code, _, stderr := inside(nil, args...); code != 0 {
			t.Fatalf("%v: %d %s", args, code, stderr)
		}
	}
	_, stdout, stderr := inside(nil, "compare", filepath.Join(dir, "a"), filepath.Join(dir, "b"), "--format", "json", "--fail-if", theGate)
	var c struct {
		Levels []struct {
			Rows []struct {
				Name   string
				Deltas []*struct {
					Verdict    string
					Low        *float64
					Difference float64
				}
				Values []*float64
			}
		}
	}
	if err := json.Unmarshal([]byte(stdout), &c); err != nil || len(c.Levels) != 1 {
		t.Fatalf("%v in %.200s %s", err, stdout, stderr)
	}
	for _, r := range c.Levels[0].Rows {
		d := r.Deltas[1]
		if d.Verdict == "worse" || d.Verdict == "better" {
			differ = append(differ, r.Name)
		}
		if d.Low != nil && *d.Low < -*r.Values[0] {
			t.Errorf("%s, seed %d: the interval of %s is below -100 %%", row.name, seed, r.Name)
		}
	}
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "FAILED") || row.found == "gate" && strings.HasPrefix(line, "NOT JUDGED") {
			failed += line // the gate passes for neither
		}
	}
	return differ, failed
}

// slowerEngine writes a profile with longer steps.
func slowerEngine(t *testing.T, dir string, factor float64) string {
	t.Helper()
	if factor == 1 {
		return "vllm-8b-h100"
	}
	text := must.Get(os.ReadFile("../../sim/profiles/vllm-8b-h100.yaml"))(t)
	head, cost, _ := strings.Cut(string(text), "\ncost:")
	cost = regexp.MustCompile(`(ms|ns_per_context_token|ns_per_token_and_context): ([0-9.]+)`).ReplaceAllStringFunc(cost, func(s string) string {
		name, value, _ := strings.Cut(s, ": ")
		v := must.Get(strconv.ParseFloat(value, 64))(t)
		return fmt.Sprintf("%s: %g", name, v*factor)
	})
	path := filepath.Join(dir, "slower.yaml")
	must.Do(t, os.WriteFile(path, []byte(head+"\ncost:"+cost), 0o600))
	return path
}
