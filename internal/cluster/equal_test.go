package cluster_test

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tacho-bench/tacho/internal/cluster"
	"github.com/tacho-bench/tacho/internal/must"
	"github.com/tacho-bench/tacho/plan"
)

// A story is the part of a record that depends on neither the agent nor the speed of the
// answer.
type story struct {
	session     uint64
	turn, turns int
	id          string
	input, out  int
	due         time.Duration // by the schedule; 0 if it depends on an earlier turn
}

func stories(all records, scheduled bool) []story {
	var out []story
	for _, r := range all {
		s := story{session: r.Session, turn: r.Turn, turns: r.Turns, id: r.ID, input: r.Input, out: r.Output}
		if scheduled && r.Turn == 0 {
			s.due = r.Due
		}
		out = append(out, s)
	}
	slices.SortFunc(out, func(a, b story) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.session, b.session), cmp.Compare(a.turn, b.turn))
	})
	return out
}

// The merged records of n agents equal the records of one machine: the same requests, at the
// same scheduled times, with the same prompts.
func TestManyAgentsAreOne(t *testing.T) {
	for name, c := range map[string]struct {
		change    func(*plan.Plan)
		scheduled bool
	}{
		"open loop":   {func(p *plan.Plan) { p.RequestRate = 200 }, true},
		"burst":       {func(*plan.Plan) {}, true},
		"closed loop": {func(p *plan.Plan) { p.MaxConcurrency = 5 }, false},
		"limited":     {func(p *plan.Plan) { p.RequestRate, p.MaxConcurrency = 200, 10 }, true},
		"sessions": {func(p *plan.Plan) {
			p.Backend, p.DatasetName, p.NumPrompts, p.RequestRate = "openai-chat", "conversation", 12, 100
			must.Do(t, p.Set("turns", "3"))
		}, true},
		"sessions of users": {func(p *plan.Plan) {
			p.Backend, p.DatasetName, p.NumPrompts, p.MaxConcurrency = "openai-chat", "conversation", 12, 4
			must.Do(t, p.Set("turns", "3"))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var want records
			var prompts map[string]string
			inBubble(t, func(t *testing.T, p *pool) { want, prompts = p.alone(t, c.change) })
			if len(want) < 12 {
				t.Fatalf("only %d records", len(want))
			}
			for _, n := range []int{1, 2, 3, 7} {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					t.Parallel()
					inBubble(t, func(t *testing.T, p *pool) {
						url, got := p.serve(t)
						out := p.execute(t.Context(), planFor(url, c.change), p.many(t, n))
						must.Do(t, out.err)
						if a, b := stories(want, c.scheduled), stories(out.records, c.scheduled); !slices.Equal(a, b) {
							t.Errorf("%d records, alone %d; first that differ: %v", len(b), len(a), difference(a, b))
						}
						if len(got.duplicates) > 0 || !maps.Equal(got.bodies, prompts) {
							t.Errorf("the server was asked something else: %d requests and not %d, %d of them twice", len(got.bodies), len(prompts), len(got.duplicates))
						}
						usedAll(t, out, min(n, max(out.levels[0].Concurrency, n*oneIf(out.levels[0].Concurrency == 0))))
					})
				})
			}
		})
	}
}

// alone returns what one machine sends.
func (p *pool) alone(t *testing.T, change func(*plan.Plan)) (records, map[string]string) {
	t.Helper()
	url, got := p.serve(t)
	out := p.execute(t.Context(), planFor(url, change), nil)
	must.Do(t, out.err)
	return out.records, got.bodies
}

// usedAll fails the test if an agent sent nothing.
func usedAll(t *testing.T, out result, n int) {
	t.Helper()
	by := map[string]int{}
	for _, r := range out.records {
		by[r.Agent]++
	}
	if len(by) != n || len(out.levels[0].Summary.Config.Agents) != n {
		t.Errorf("%d agents should share the load: %v", n, by)
	}
}

func oneIf(b bool) int {
	if b {
		return 1
	}
	return 0
}

func difference(a, b []story) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return fmt.Sprintf("%+v and %+v", a[i], b[i])
		}
	}
	return "none"
}

// An agent dies in the middle of its sessions. The agent that takes over continues them: the
// prompts are the same and contain the answers that the lost agent received.
func TestSessionsGoOn(t *testing.T) {
	for name, closed := range map[string]bool{"open loop": false, "users": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(t *testing.T, p *pool) {
				change := func(q *plan.Plan) {
					q.Backend, q.DatasetName, q.NumPrompts, q.RequestRate = "openai-chat", "conversation", 20, 20
					if closed {
						q.RequestRate, q.MaxConcurrency = math.Inf(1), 20
					}
					must.Do(t, q.Set("turns", "5"))
					must.Do(t, q.Set("think-time-ms", "300"))
				}
				want, prompts := p.alone(t, change)
				p.join(t, "stays", nil)
				die := p.join(t, "dies", nil)
				c := p.lead(t, 2, func(o *cluster.Options) { o.OnLoss = plan.Reassign })
				url, got := p.serve(t)
				got.between(t, "r-0.1", "r-0.2", die) // it is first by name, and has the even sessions
				out := p.execute(t.Context(), planFor(url, change), c, got.keep)
				must.Do(t, out.err)
				if a, b := stories(want, !closed), stories(out.records, !closed); !slices.Equal(a, b) {
					t.Errorf("%d records, alone %d; first that differ: %v", len(b), len(a), difference(a, b))
				}
				if !maps.Equal(got.bodies, prompts) {
					t.Errorf("the server was asked something else: %d requests and not %d", len(got.bodies), len(prompts))
				}
				by := map[uint64]map[string]bool{}
				both := 0
				for _, r := range out.records {
					if by[r.Session] == nil {
						by[r.Session] = map[string]bool{}
					}
					if by[r.Session][r.Agent] = true; len(by[r.Session]) == 2 {
						both++
					}
				}
				reasons := out.levels[0].Summary.Verdict.Reasons
				if lost := reasonOf(reasons, "agent-lost"); both == 0 || lost == nil || !strings.Contains(lost.Text, "took over") {
					t.Errorf("no session was gone on with: %v", reasons)
				}
			})
		})
	}
}

// Shares are assigned by the agents' names, so the same agents always get the same shares,
// even if one answers late.
func TestSharesGoByName(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "second", nil)
		c := p.lead(t, 2, nil)
		url, _ := p.serve(t)
		done := make(chan result, 1)
		go func() { done <- p.execute(t.Context(), planFor(url, nil), c) }()
		p.said.await(t, "1 joined")
		p.join(t, "first", nil)
		out := <-done
		must.Do(t, out.err)
		var names []string
		for _, a := range out.levels[0].Summary.Config.Agents {
			names = append(names, a.Name)
		}
		if !slices.Equal(names, []string{"first", "second"}) {
			t.Errorf("shares are of %v", names)
		}
	})
}

// An agent that waits for others hears from the coordinator, so it does not abandon it after
// half a minute.
func TestWaitingAgentHears(t *testing.T) {
	inBubble(t, func(t *testing.T, p *pool) {
		p.join(t, "first", nil)
		c := p.lead(t, 2, func(o *cluster.Options) { o.Wait = longest })
		url, got := p.serve(t)
		done := make(chan result, 1)
		go func() { done <- p.execute(t.Context(), planFor(url, nil), c) }()
		p.said.await(t, "1 joined")
		pass(2 * time.Minute)
		if p.said.has("The coordinator does not answer") {
			t.Error("it was given up")
		}
		p.join(t, "second", nil)
		checkComplete(t, <-done, got, 42)
	})
}
