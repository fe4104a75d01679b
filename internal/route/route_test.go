package route

import (
	"slices"
	"testing"

	"github.com/tacho-bench/tacho"
	"github.com/tacho-bench/tacho/internal/must"
)

func routerOf(t *testing.T, name string, n int) *Router {
	t.Helper()
	p := must.Get(Find(name))(t)
	return New(p, 1, n)
}

// Every policy uses all servers, also if there is one server only.
func TestPolicies(t *testing.T) {
	for _, p := range Policies {
		for _, n := range []int{1, 4} {
			r := routerOf(t, p.Name, n)
			seen := map[int]int{}
			for i := range uint64(400) {
				at := r.Choose(&Request{Session: i, Prefix: []uint64{i}})
				seen[at]++
				if p.ByLoad {
					r.Begin(at)
				}
			}
			if len(seen) != n {
				t.Errorf("%s, %d servers: %v", p.Name, n, seen)
			}
		}
	}
	if _, err := Find("nearest"); err == nil {
		t.Error("found a policy that does not exist")
	}
}

// Policies with ByLoad send no request to an overloaded server. Policies by session or prefix send similar requests
// to the same server.
func TestPoliciesByLoadAndByRequest(t *testing.T) {
	for _, p := range Policies {
		r := routerOf(t, p.Name, 3)
		first := r.Choose(&Request{Session: 5, Prefix: []uint64{1, 2, 3}})
		for range 2 {
			next := r.Choose(&Request{Session: 5, Turn: 1, Prefix: []uint64{1, 2, 9}})
			if (p.Name == "sticky" || p.Name == "prefix") && next != first {
				t.Errorf("%s: the first went to %d, a similar request to %d", p.Name, first, next)
			}
		}
		for range maxExtraLoad + 10 {
			r.Begin(first)
		}
		busy := 0
		for i := range uint64(300) {
			if at := r.Choose(&Request{Session: 100 + i, Prefix: []uint64{1, i}}); at == first {
				busy++
			}
		}
		if p.ByLoad != (busy == 0) {
			t.Errorf("%s: %d of 300 went to the overloaded server", p.Name, busy)
		}
	}
}

// Prompts with a common beginning share hashes up to the piece in which they differ, as tokens, text and messages.
func TestPrefix(t *testing.T) {
	ids := func(n int, last int32) (out tacho.Input) {
		for i := range n {
			out.IDs = append(out.IDs, int32(i))
		}
		out.IDs[n-1] = last
		return out
	}
	a, b := ids(100, 1), ids(90, 2)
	x, y := Prefix(&a), Prefix(&b)
	if len(x) != 6 || !slices.Equal(x[:5], y) {
		t.Errorf("%v and %v", x, y)
	}
	b.IDs[40] = 7
	if z := Prefix(&b); !slices.Equal(z[:2], y[:2]) || z[2] == y[2] || z[4] == y[4] {
		t.Errorf("one token in the third piece is another: %v and %v", z, y)
	}
	talk := tacho.Input{Messages: []tacho.Message{{Content: string(make([]byte, 200))}}}
	longer := tacho.Input{Messages: append(talk.Messages[:1:1], tacho.Message{Content: string(make([]byte, 300))})}
	x, y = Prefix(&talk), Prefix(&longer)
	if len(x) != 3 || len(y) != 7 || y[2] != x[2] {
		t.Errorf("%v and %v", x, y)
	}
}

// A recentMap keeps recent entries and bounds its size.
func TestRecentMap(t *testing.T) {
	var m recentMap
	for i := range uint64(3 * recentSize) {
		m.put(i, int(i))
	}
	if v, ok := m.get(2 * recentSize); !ok || v != 2*recentSize {
		t.Error("a recent entry is missing")
	}
	if n := len(m.young) + len(m.old); n > 2*recentSize {
		t.Errorf("%d entries are stored", n)
	}
}
