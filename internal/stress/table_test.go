//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTable(t *testing.T) {
	tl := newTally([]condition{quiet, busy, quota})
	tl.unavailable["quota"] = "there is no cgroup"
	for range 3 {
		tl.add("run", "quiet", verdict{ended: []string{"TestA", "TestB", "TestC"}})
	}
	first := tl.add("run", "busy", verdict{ended: []string{"TestA", "TestA/x", "TestB"}, failed: []string{"TestA/x", "TestB"}})
	if diff := cmp.Diff([]string{"TestA/x", "TestB"}, first); diff != "" {
		t.Errorf("first failures (-want +got)\n%s", diff)
	}
	first = tl.add("run", "busy", verdict{ended: []string{"TestA", "TestA/x"}, failed: []string{"TestA/x"}})
	if len(first) > 0 {
		t.Errorf("%v failed for the second time, not the first", first)
	}
	tl.add("cli", "busy", verdict{ended: []string{"TestA"}, failed: []string{outsideTests}})
	var b strings.Builder
	if err := tl.write(&b); err != nil {
		t.Fatal(err)
	}
	const want = `Failures/runs:

| package | test | quiet | busy | quota |
|---|---|---|---|---|
| cli | (outside tests) | 0 | 1 | n/a |
| run | TestA/x | 0/0 | 2/2 | n/a |
| run | TestB | 0/3 | 1/1 | n/a |

Tests that never failed: 2.
The condition quota is unavailable: there is no cgroup.
`
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestTableWithoutFailures(t *testing.T) {
	tl := newTally([]condition{quiet})
	tl.add("run", "quiet", verdict{ended: []string{"TestA", "TestA/x"}})
	var b strings.Builder
	if err := tl.write(&b); err != nil {
		t.Fatal(err)
	}
	if want := "Tests that never failed: 1.\n"; b.String() != want {
		t.Errorf("got %q, want %q", b.String(), want)
	}
}

func TestOptions(t *testing.T) {
	for _, c := range []struct {
		args, want string // the conditions, or the error
	}{
		{"./run", "quiet busy one-proc crowded quota pulse"},
		{"-cond pulse,busy ./run", "pulse busy"},
		{"-cond calm ./run", `unknown condition "calm"; choose from quiet,busy,one-proc,crowded,quota,pulse`},
		{"-n 0 ./run", "-n and -timeout must be positive"},
		{"-race", "no package: name one or more, such as ./run"},
	} {
		o, err := parse(strings.Fields(c.args), t.Output())
		var names []string
		for _, condition := range o.conditions {
			names = append(names, condition.name)
		}
		got := strings.Join(names, " ")
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.args, got, c.want)
		}
	}
}

func TestNamesOfFiles(t *testing.T) {
	if got, want := fileName("TestA/a b:c|d=1.5"), "TestA_a_b_c_d=1.5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := fileName(strings.Repeat("a", 1000)); len(got) > 100 {
		t.Errorf("a file name has %d bytes", len(got))
	}
}

func TestParentsOfAControlGroup(t *testing.T) {
	const mounts = "proc /proc proc rw 0 0\ncgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"
	for _, c := range []struct {
		mounts, own string
		want        []string
	}{
		{mounts, "0::/user.slice/a.scope\n", []string{"/sys/fs/cgroup/user.slice/a.scope", "/sys/fs/cgroup/user.slice", "/sys/fs/cgroup"}},
		{mounts, "1:cpu:/a\n0::/\n", []string{"/sys/fs/cgroup"}},
		{"proc /proc proc rw 0 0\n", "0::/\n", nil},
	} {
		if diff := cmp.Diff(c.want, parents(c.mounts, c.own)); diff != "" {
			t.Errorf("%q: (-want +got)\n%s", c.own, diff)
		}
	}
}
