package predict

import (
	"encoding/csv"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/sim/step"
)

// h100 are the measured rows behind the costs of the profile vllm-8b-h100: closed
// loops with known time per output token.
func h100(t *testing.T) (levels []*MeasuredLevel) {
	t.Helper()
	f := must.Get(os.Open("testdata/llama-8b-h100.csv"))(t)
	defer f.Close()
	r := csv.NewReader(f)
	r.Comment = '#'
	rows := must.Get(r.ReadAll())(t)
	for _, row := range rows[1:] {
		var x [4]float64
		for i := range x {
			x[i] = must.Get(strconv.ParseFloat(row[i], 64))(t)
		}
		s := &MeasuredLevel{Name: row[0] + " at once, " + row[1] + " in, " + row[2] + " out", Limit: int(x[0]), report: true, distinct: x[0]}
		for range 3 * s.Limit {
			s.sent = append(s.sent, sent{prompt: int(x[1]), output: int(x[2])})
		}
		s.Measured[TPOT] = x[3]
		levels = append(levels, s)
	}
	return levels
}

// The default profile reproduces the times per output token of its source rows.
func TestProfileOfTheH100(t *testing.T) {
	p := must.Get(step.Load("vllm-8b-h100"))(t)
	got := must.Get(Compare(t.Context(), p, h100(t)))(t)
	off, _ := MeanError(got, TPOT)
	t.Logf("TPOT is off by %.1f %% on average", 100*off)
	if len(got) != 42 || off > 0.03 || math.IsNaN(off) {
		t.Errorf("%d rows, TPOT is off by %.1f %% on average", len(got), 100*off)
		for _, e := range got {
			t.Logf("%s: %.2f, %+.1f %%", e.Name, e.Measured[TPOT], 100*e.Predicted.RelativeError(e.Measured)[TPOT])
		}
	}
}
