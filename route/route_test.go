package route

import (
	"slices"
	"testing"

	"tacho"
)

func routerOf(t *testing.T, name string, n int) *Router {
	t.Helper()
	p, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	r := New(p, 1)
	for i := range n {
		r.Open(i)
	}
	return r
}

// Every policy uses all servers, none that is closed, and says so when there is
// none at all.
func TestPolicies(t *testing.T) {
	for _, p := range Policies {
		r := routerOf(t, p.Name, 4)
		r.Close(2)
		seen := map[int]int{}
		for i := range uint64(400) {
			at, ok := r.Choose(&Ask{Session: i, Prefix: []uint64{i}})
			if !ok {
				t.Fatal(p.Name)
			}
			seen[at]++
			if p.ByLoad {
				r.Begin(at)
			}
		}
		if len(seen) != 3 || seen[2] > 0 {
			t.Errorf("%s: %v", p.Name, seen)
		}
		for i := range 4 {
			r.Close(i)
		}
		if _, ok := r.Choose(&Ask{}); ok {
			t.Errorf("%s chose a server where there is none", p.Name)
		}
		r.Open(2)
		if at, _ := r.Choose(&Ask{Session: 7}); at != 2 {
			t.Errorf("%s chose %d, and only 2 is open", p.Name, at)
		}
	}
	if _, err := Find("nearest"); err == nil {
		t.Error("a policy that is not there was found")
	}
}

// Those that go by load send nothing to a server that has far more than others,
// and those that go by the request send it where they sent its like.
func TestWhatPoliciesGoBy(t *testing.T) {
	for _, p := range Policies {
		r := routerOf(t, p.Name, 3)
		first, _ := r.Choose(&Ask{Session: 5, Prefix: []uint64{1, 2, 3}})
		for range 2 {
			next, _ := r.Choose(&Ask{Session: 5, Turn: 1, Prefix: []uint64{1, 2, 9}})
			if (p.Name == "sticky" || p.Name == "prefix") && next != first {
				t.Errorf("%s: the first went to %d, its like to %d", p.Name, first, next)
			}
		}
		for range overloaded + 10 {
			r.Begin(first)
		}
		busy := 0
		for i := range uint64(300) {
			if at, _ := r.Choose(&Ask{Session: 100 + i, Prefix: []uint64{1, i}}); at == first {
				busy++
			}
		}
		if p.ByLoad != (busy == 0) {
			t.Errorf("%s: %d of 300 went to the server that has much to do", p.Name, busy)
		}
	}
}

// Prompts that begin alike have the same numbers as far as they are alike, in
// every form.
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

// What was told lately is remembered, and memory has a bound.
func TestMemory(t *testing.T) {
	var m memory
	for i := range uint64(3 * remembered) {
		m.put(i, int(i))
	}
	if v, ok := m.get(2 * remembered); !ok || v != 2*remembered {
		t.Error("what was told lately is forgotten")
	}
	if n := len(m.young) + len(m.old); n > 2*remembered {
		t.Errorf("%d things are remembered", n)
	}
}
