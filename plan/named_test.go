package plan_test

import (
	"math"
	"regexp"
	"strconv"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/search"
	"github.com/tacho-bench/tacho/plan"
)

// TestNamedWorkloads fills a plan with each workload: given options keep their
// values, and a filled plan is read back unchanged.
func TestNamedWorkloads(t *testing.T) {
	for _, w := range plan.NamedWorkloads {
		p := plan.Default()
		for name, value := range map[string]string{"workload": w.Name, w.Options[1][0]: "7"} {
			must.Do(t, p.Set(name, value))
		}
		must.Get(p.FillWorkload())(t)
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
		for i, o := range w.Options {
			got := p.Values(o[0])[0]
			if i == 1 && got != "7" || i != 1 && got != o[1] {
				t.Errorf("%s: --%s is %s", w.Name, o[0], got)
			}
		}
		text := must.Get(p.YAML())(t)
		again := plan.Default()
		must.Do(t, again.Read(text, nil))
		if _, err := again.FillWorkload(); err != nil || again.Workload != w.Name || again.Values(w.Options[1][0])[0] != "7" {
			t.Errorf("%s: read back as %s %v, %v", w.Name, again.Workload, again.Values(w.Options[1][0]), err)
		}
		if _, err := search.ParseSLO(w.SLO); w.SLO != "" && err != nil {
			t.Errorf("%s: %v", w.Name, err)
		}
	}
	p := plan.Default()
	p.Workload = "chat"
	must.Do(t, p.Set("dataset-name", "sonnet"))
	if _, err := p.FillWorkload(); err == nil {
		t.Error("another dataset was accepted")
	}
	p = plan.Default()
	if p.Workload = "chats"; p.Validate() == nil {
		t.Error("an unknown workload was accepted")
	}
}

// TestNamedWorkloadsConvertLognormal compares the medians and sigmas in the
// table with the published means and standard deviations.
func TestNamedWorkloadsConvertLognormal(t *testing.T) {
	published := map[string][2]float64{ // mean and standard deviation
		"chat turns": {4, 2.5}, "chat first-turn-input-len": {4000, 2500}, "chat turn-input-len": {50, 40}, "chat think-time-ms": {45_000, 40_000},
		"agent first-turn-input-len": {45_000, 35_000}, "agent turn-input-len": {3000, 2500},
	}
	written := regexp.MustCompile(`^lognormal\(([\d.]+),([\d.]+)\)`)
	found := 0
	for _, w := range plan.NamedWorkloads {
		for _, o := range w.Options {
			m := written.FindStringSubmatch(o[1])
			if m == nil {
				continue
			}
			found++
			p, ok := published[w.Name+" "+o[0]]
			ratio := 1 + (p[1]/p[0])*(p[1]/p[0])
			median, _ := strconv.ParseFloat(m[1], 64)
			sigma, _ := strconv.ParseFloat(m[2], 64)
			const rounding = 0.005
			if want := p[0] / math.Sqrt(ratio); !ok || math.Abs(median/want-1) > rounding || math.Abs(sigma/math.Sqrt(math.Log(ratio))-1) > rounding {
				t.Errorf("%s --%s %s: want lognormal(%.0f,%.3f)", w.Name, o[0], o[1], want, math.Sqrt(math.Log(ratio)))
			}
		}
	}
	if found != len(published) {
		t.Errorf("%d lognormal lengths, want %d", found, len(published))
	}
}
