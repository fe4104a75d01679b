package run_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tacho-bench/tacho/metric"
	"github.com/tacho-bench/tacho/plan"
)

// A level with another endpoint or protocol opens the server again. A level
// with another load or other lengths does not.
func TestLevelsOfAnyOption(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, got := serve(t, nil)
		out := do(t, planFor(url, func(p *plan.Plan) {
			p.NumPrompts = 2
			list(p, "backend", "openai,openai-chat")
			list(p, "random-input-len", "20,40")
			list(p, "burstiness", "1,2")
		}))
		if len(out.levels) != 8 || len(out.records) != 16 {
			t.Fatalf("%d levels, %d records", len(out.levels), len(out.records))
		}
		for _, r := range out.records {
			at := out.levels[r.Stage].Coordinates
			if length, _ := at.Of("random-input-len"); strconv.Itoa(r.Input) != length {
				t.Errorf("level %v: a prompt of %d tokens", at, r.Input)
			}
		}
		if first, last := out.levels[0].Name, out.levels[7].Name; first != "--backend openai --burstiness 1 --random-input-len 20" || last != "--backend openai-chat --burstiness 2 --random-input-len 40" {
			t.Errorf("levels from %s to %s", first, last)
		}
		sent, models := map[string]int{}, 0
		got.mu.Lock()
		defer got.mu.Unlock()
		for _, path := range got.paths {
			sent[path]++
			if strings.HasSuffix(path, "/models") {
				models++
			}
		}
		if sent["/v1/completions"] != 8 || sent["/v1/chat/completions"] != 8 {
			t.Errorf("requests by path: %v", sent)
		}
		if models != 4 { // for the model name and the version
			t.Errorf("the server was asked %d times what it serves, want twice for each protocol", models)
		}
	})
}

// Repeats run as rounds with different prompts. Shuffled levels keep their
// numbers.
func TestOrderOfLevels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, nil)
		order := func(shuffle bool) (out []int) {
			for _, l := range do(t, planFor(url, func(p *plan.Plan) {
				p.Repeat, p.ShuffleLevels = 2, shuffle
				list(p, "num-prompts", "1,2,3,4,5")
			})).levels {
				if want := l.Index/2 + 1; l.Prompts != want || l.Repeat != l.Index%2+1 || l.Summary.Completed != want {
					t.Errorf("level %d has %d prompts, repeat %d, %d answers", l.Index, l.Prompts, l.Repeat, l.Summary.Completed)
				}
				out = append(out, l.Index)
			}
			return out
		}
		if got, want := order(false), []int{0, 2, 4, 6, 8, 1, 3, 5, 7, 9}; !slices.Equal(got, want) {
			t.Errorf("order %v, want %v", got, want)
		}
		shuffled := order(true)
		if slices.Equal(shuffled, order(false)) {
			t.Errorf("not shuffled: %v", shuffled)
		}
		slices.Sort(shuffled)
		if want := []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}; !slices.Equal(shuffled, want) {
			t.Errorf("shuffled levels %v", shuffled)
		}
	})
}

// slow is a server with atOnce slots and a fixed service time.
func slow(atOnce int, each time.Duration) func(http.Handler) http.Handler {
	return func(h http.Handler) http.Handler {
		slots := make(chan struct{}, atOnce)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "completions") {
				slots <- struct{}{}
				defer func() { <-slots }()
				time.Sleep(each)
			}
			h.ServeHTTP(w, r)
		})
	}
}

func indexes(out result) (list []int) {
	for _, l := range out.levels {
		list = append(list, l.Index)
	}
	return list
}

// A list of loads ends when all requests fail.
func TestListEndsWhereAllFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		url, _ := serve(t, func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasSuffix(r.URL.Path, "completions") && n.Add(1) > 2 {
					http.Error(w, "out of memory", http.StatusInternalServerError)
					return
				}
				h.ServeHTTP(w, r)
			})
		})
		out := do(t, planFor(url, func(p *plan.Plan) { list(p, "num-prompts", "2,3,4,5") }))
		if want := []int{0, 1}; !slices.Equal(indexes(out), want) {
			t.Fatalf("levels %v, want %v", indexes(out), want)
		}
		if r := out.levels[1].Summary.Verdict.Reasons; !slices.ContainsFunc(r, func(r metric.Reason) bool {
			return strings.Contains(r.Text, "skipped levels with more load (2) because all requests failed")
		}) {
			t.Errorf("%v", r)
		}
	})
}

// A sweep goes from concurrency 1 past saturation and places the remaining
// levels in between.
func TestSweep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		url, _ := serve(t, slow(4, 50*time.Millisecond))
		for option, least := range map[string]float64{"max-concurrency": 4, "request-rate": 60} {
			out := do(t, planFor(url, func(p *plan.Plan) {
				p.NumPrompts, p.SweepPoints = 24, 5
				list(p, option, plan.Sweep)
			}))
			var loads []float64
			for i, l := range out.levels {
				load, ok := l.Coordinates[0].Number()
				if l.Index != i || !ok || len(l.Coordinates) != 1 || l.Coordinates[0].Name != option {
					t.Errorf("level %d: %+v", i, l.Setting)
				}
				loads = append(loads, load)
			}
			if len(loads) > 5 || slices.Max(loads) < least || option == "max-concurrency" && loads[0] != 1 || loads[0] > slices.Max(loads)/3 {
				t.Errorf("--%s sweep: %v", option, loads)
			}
		}
	})
}
