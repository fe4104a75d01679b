package plan_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

// Flags of vllm-bench have the same meaning in tacho.
func TestFlagsOfVLLMBench(t *testing.T) {
	p := plan.Default()
	set(t, &p, "multi-turn=true", "multi-turn-min-turns=2", "multi-turn-max-turns=5", "multi-turn-delay-ms=40", "multi-turn-concurrency=7",
		"random-input-len=100,200", "per-turn-input-len=30", "random-output-len=9", "num-runs=1", "reset-prefix-cache=true")
	must.Do(t, p.Validate())
	for i, l := range p.Levels() {
		q := &l.Plan
		first, _ := q.FirstInputLen.Constant()
		each, _ := q.TurnInputLen.Constant()
		out, _ := q.TurnOutputLen.Constant()
		think, _ := q.ThinkMS.Constant()
		turns, err := q.Turns.MarshalText()
		if q.DatasetName != "conversation" || first != 100*(i+1) || each != 30 || out != 9 || think != 40 || string(turns) != "uniform(2,5)" || err != nil || l.Concurrency != 7 || !q.FlushCache {
			t.Errorf("level %d: %s, first turn %d, then %d, answers %d, pause %d, turns %s, %d at once", i, q.DatasetName, first, each, out, think, turns, l.Concurrency)
		}
	}
	p = plan.Default()
	set(t, &p, "multi-turn=true", "random-input-len=64")
	q := p.Levels()[0].Plan
	each, _ := q.TurnInputLen.Constant()
	if turns, _ := q.Turns.Constant(); turns != 3 || each != 64 {
		t.Errorf("by default %d turns of %d tokens", turns, each)
	}
	p = plan.Default()
	set(t, &p, "random-cache-hit-fraction=0.75,1", "random-cache-ratio=0.9", "random-input-len=1000")
	levels := p.Levels()
	want := []string{"label=warm weight=0.75 random-prefix-len=900 random-input-len=100", "label=cold weight=0.25 random-input-len=1000"}
	if err := p.Validate(); err != nil || !slices.Equal(levels[0].Plan.Mix, want) || len(levels[1].Plan.Mix) != 1 {
		t.Errorf("%v, %q", err, levels[0].Plan.Mix)
	}
	p = plan.Default()
	set(t, &p, "metric-percentiles=99,95", "sweep-summary-percentiles=90,95", "no-steady-state=true", "steady-state-min-window=0")
	c, err := p.Config(p.Levels()[0])
	if err != nil || !slices.Equal(c.Percentiles, []float64{99, 95, 90}) || !slices.Equal(c.TablePercentiles, []float64{90, 95}) || !c.NoSteady || c.SteadyMinS == nil {
		t.Errorf("%v, %+v", err, c)
	}
	for words, want := range map[string]string{
		"profile-batch-threshold=3":                                                    "needs --profile",
		"profile=true profile-duration=3":                                              "needs --profile-batch-threshold",
		"profile=true profile-batch-threshold=3 profile-duration=0":                    "above 0",
		"profile=true profile-batch-threshold=3 metrics-url=none":                      "remove --metrics-url none",
		"prompt-token-ids=true backend=openai-chat":                                    "does not accept token ids",
		"prompt-token-ids=true prompt-text=true":                                       "cannot be combined with --prompt-text",
		"prompt-token-ids=true dataset-name=sonnet":                                    "prompts of sonnet are text",
		"sweep-summary-percentiles=90,x":                                               "not a number",
		"sweep-summary-percentiles=101":                                                "101",
		"multi-turn-max-turns=4":                                                       "need --multi-turn",
		"multi-turn-prefix-global-ratio=0.1":                                           "need --multi-turn",
		"multi-turn=true multi-turn-prefix-global-ratio=-0.1":                          "from 0 to 1",
		"multi-turn=true multi-turn-prefix-global-ratio=0.5 per-turn-input-len=500":    "too short for 512 shared tokens",
		"multi-turn=true multi-turn-prefix-global-ratio=0.5 random-input-len=U(9,20)":  "needs constant --random-input-len",
		"multi-turn=true multi-turn-prefix-conversation-ratio=0.5 sub-agents=2":        "needs the earlier turns",
		"multi-turn=true dataset-name=sharegpt multi-turn-prefix-global-ratio=0.5":     "--dataset-name random",
		"multi-turn=true dataset-name=sonnet":                                          "not sonnet",
		"multi-turn=true multi-turn-min-turns=5":                                       "from 5 to 3 turns",
		"random-cache-ratio=0.5":                                                       "must both be set",
		"random-cache-ratio=0.5 random-cache-hit-fraction=2":                           "at most 1",
		"random-cache-ratio=0.5 random-cache-hit-fraction=0.5 random-input-len=U(1,9)": "needs a constant --random-input-len",
		"random-cache-ratio=0.5 random-cache-hit-fraction=0.5 dataset-name=sonnet":     "another dataset",
	} {
		p := plan.Default()
		set(t, &p, strings.Fields(words)...)
		if err := p.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", words, err, want)
		}
	}
}
