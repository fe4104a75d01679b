package run_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/internal/replay"
	"github.com/tacho-bench/tacho/internal/run"
	"github.com/tacho-bench/tacho/plan"
	"github.com/tacho-bench/tacho/workload"
)

// A replay sends the same prompts at the same times, including the turns of
// conversations.
func TestReplaySendsTheSame(t *testing.T) {
	for name, change := range map[string]func(*plan.Plan){
		"rate": func(p *plan.Plan) {
			list(p, "request-rate", "100,200")
			p.RandomInputLen, p.NumPrompts = workload.Fixed(30), 12
		},
		"time": func(p *plan.Plan) { list(p, "request-rate", "50,100"); p.NumPrompts, p.MaxSeconds = 1000, 0.2 },
		"conversations": func(p *plan.Plan) {
			list(p, "num-prompts", "1,5")
			p.Backend, p.DatasetName, p.MaxConcurrency = "openai-chat", "conversation", 2
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				url, got := serve(t, nil)
				first := planFor(url, change)
				before := do(t, first)
				l := before.levels[1]
				sent, ids := got.generated()
				var bodies []string
				for i, b := range sent {
					if strings.Contains(ids[i], "L1-") {
						bodies = append(bodies, b)
					}
				}
				records := times(before.records, 1, l.Concurrency > 0)
				one := must.Get(first.With(l.Coordinates))(t)
				env := run.Env{Random: 43, Replay: func(string) (*run.Replay, error) {
					s, err := replay.New(func(yield func(*tacho.Record, error) bool) {
						for i := range before.records {
							if r := &before.records[i]; r.Stage == 1 && !yield(r, nil) {
								return
							}
						}
					}, l.Concurrency > 0)
					return &run.Replay{Sessions: s, Dataset: one.Dataset, Seed: run.LevelSeed(42, 1), Inputs: l.Prompts, Endless: one.MaxSeconds > 0}, err
				}}
				p := plan.Default()
				p.BaseURL, p.NoTrial, p.Replay, p.Backend = []string{url}, true, "it", first.Backend
				after := execute(t.Context(), p, env)
				if after.err != nil {
					t.Fatal(after.err)
				}
				again, _ := got.generated()
				again = again[len(sent):]
				slices.Sort(bodies)
				slices.Sort(again)
				if len(bodies) < 2 || !slices.Equal(bodies, again) {
					t.Errorf("%d bodies, and then %d, the same: %v", len(bodies), len(again), slices.Equal(bodies, again))
				}
				now := times(after.records, 0, false)
				for at := range records {
					if now[at] < records[at] { // a turn starts after the previous answer, and not before its stored time
						t.Errorf("request %v at %v, and then at %v", at, records[at], now[at])
					}
				}
				if name != "conversations" && !maps.Equal(now, records) {
					t.Errorf("times %v, and then %v", records, now)
				}
			})
		})
	}
}

// times returns the due times of requests, or the times they got a slot.
func times(list records, stage int, slot bool) map[[2]uint64]time.Duration {
	out := map[[2]uint64]time.Duration{}
	for _, r := range list {
		at := r.Due
		if slot {
			at = r.Slot
		}
		if r.Stage == stage {
			out[[2]uint64{r.Session, uint64(r.Turn)}] = at
		}
	}
	return out
}

// Changed data is rejected before anything is sent.
func TestReplayOfOtherData(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, got := serve(t, nil)
		before := do(t, planFor(url, nil))
		env := run.Env{Replay: func(string) (*run.Replay, error) {
			s, err := replay.New(func(yield func(*tacho.Record, error) bool) {
				for i := range before.records {
					if !yield(&before.records[i], nil) {
						return
					}
				}
			}, false)
			return &run.Replay{Sessions: s, Dataset: plan.Default().Dataset, Inputs: 6}, err
		}}
		p := plan.Default()
		p.BaseURL, p.Replay = []string{url}, "it"
		sent, _ := got.generated()
		out := execute(t.Context(), p, env)
		after, _ := got.generated()
		if out.err == nil || !strings.Contains(out.err.Error(), "the data or its options changed") || len(after) != len(sent) {
			t.Errorf("%v, %d requests sent", out.err, len(after)-len(sent))
		}
	})
}

// Replaying a run without a number of prompts returns an error if the dataset
// needs the number.
func TestReplayOfARunWithoutANumberOfPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		before := do(t, planFor(url, nil))
		data := plan.Default().Dataset
		data.DatasetName = "prefix_repetition"
		env := run.Env{Replay: func(string) (*run.Replay, error) {
			s, err := replay.New(func(yield func(*tacho.Record, error) bool) {
				for i := range before.records {
					if !yield(&before.records[i], nil) {
						return
					}
				}
			}, false)
			return &run.Replay{Sessions: s, Dataset: data, Endless: true}, err
		}}
		p := plan.Default()
		p.BaseURL, p.Replay = []string{url}, "it"
		out := execute(t.Context(), p, env)
		if out.err == nil || !strings.Contains(out.err.Error(), "--replay it: that run was limited by time") {
			t.Error(out.err)
		}
	})
}
